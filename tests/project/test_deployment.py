"""Dockerfile, compose.yaml and the files of deploy/: what they start, with the files that the image
has, without Docker."""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import signal
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from django.core.management import get_commands

from project.children import DRAIN_SECONDS
from project.env import BASE_DIR, list_settings
from project.postgres.cluster import Cluster
from project.postgres.server import PORT
from state_admin import egress
from state_admin.domain import isolation
from state_admin.domain.networks import is_public
from tests.patience import PATIENCE
from tests.project.running import Running, call_api, free_port, wait_for
from tests.project.sites import url_of
from tests.receiving import receiving

ROLES = ("web", "worker", "beat")
DOCKERFILE = (BASE_DIR / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((BASE_DIR / "compose.yaml").read_text())
HA = yaml.safe_load((BASE_DIR / "deploy/ha/compose.yaml").read_text())
UNIT = (BASE_DIR / "deploy/systemd/commonhold@.service").read_text()
KUBERNETES = BASE_DIR / "deploy/kubernetes"
# The services that run our image, of both Compose files.
SERVICES = [
    service
    for file in (COMPOSE, HA)
    for service in file["services"].values()
    if service.get("image") == "commonhold"
]


def resources() -> list[dict[str, Any]]:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(
        path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml"
    )
    return [one for name in listed for one in yaml.safe_load_all((KUBERNETES / name).read_text())]


def pods() -> dict[str, dict[str, Any]]:
    """The containers that Kubernetes runs, by role."""
    specs = [one["spec"]["template"]["spec"] for one in resources() if "template" in one["spec"]]
    return {spec["containers"][0]["args"][0]: spec["containers"][0] for spec in specs}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("key", ["", "PrivatTmp=yes"], ids=["as it is", "with a mistake"])
def test_unit__verified_by_systemd__has_only_keys_that_it_knows(key: str, tmp_path: Path) -> None:
    unit = UNIT.replace("/opt/commonhold/.venv/bin/python", "/bin/true")
    unit = unit.replace("[Install]", f"{key}\n[Install]")
    (file := tmp_path / "commonhold@web.service").write_text(unit)
    verify = ["systemd-analyze", "verify", "--man=no", file]
    done = subprocess.run(verify, capture_output=True, text=True, check=False, timeout=60)
    about = [line for line in done.stderr.splitlines() if file.name in line]
    assert bool(about) == bool(key), about


@pytest.mark.skipif(shutil.which("systemd-run") is None, reason="systemd is not installed")
def test_manage__run_by_systemd__has_user_environment_and_folders_of_the_unit(
    tmp_path: Path,
) -> None:
    script = (BASE_DIR / "deploy/systemd/commonhold-manage").read_text()
    unit = dict(line.split("=", 1) for line in UNIT.splitlines() if "=" in line)
    named = re.search(r"--uid=(\S+) --working-directory=(\S+)", script)
    assert named
    assert named.groups() == (unit["User"], unit["WorkingDirectory"])
    for name in ("EnvironmentFile", "StateDirectory", "StateDirectoryMode"):
        assert f"--property={name}={unit[name]} " in script
    assert re.findall(r"--setenv=(\S+)", script) == unit["Environment"].split()
    assert f'  {unit["ExecStart"].removesuffix("%i")}"$@"\n' in script
    if not Path("/run/systemd/system").exists():  # it accepts the options, and finds no systemd
        (file := tmp_path / "manage").write_text(
            script.replace("/opt/commonhold/.venv/bin/python", "/bin/true")
        )
        done = subprocess.run(
            ["/bin/sh", file, "doctor"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 1
        assert "unrecognized" not in done.stderr
        assert "systemd" in done.stderr or "bus" in done.stderr, done.stderr


MISTAKES = {
    "compose.yaml": ("read_only:", "readonly:"),
    "deploy/ha/compose.yaml": ("healthcheck:", "healthchek:"),
    "deploy/kubernetes/kustomization.yaml": ("newTag:", "tag:"),
    "deploy/kubernetes/beat.yaml": ("kind: Deployment", "kind: Deploiment"),
    "deploy/kubernetes/network-policy/network-policy.yaml": ("podSelector:", "podSelect:"),
    "deploy/kubernetes/web.yaml": ("failureThreshold:", "failureTreshold:"),
    "deploy/observability/alerts.yml": ("annotations:", "anotations:"),
    "deploy/observability/prometheus.yml": ("scrape_interval:", "interval:"),
}


@pytest.mark.parametrize("name", [None, *MISTAKES], ids=["as they are", *MISTAKES])
@pytest.mark.system
def test_files__checked_by_make__must_match_their_schemas(name: str | None, tmp_path: Path) -> None:
    if name and "observability" in name and shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    shutil.copytree(BASE_DIR / "deploy", tmp_path / "deploy")
    for file in ("Makefile", "compose.yaml"):
        shutil.copy(BASE_DIR / file, tmp_path)
    (tmp_path / ".venv").symlink_to(BASE_DIR / ".venv")
    if name:
        right, wrong = MISTAKES[name]
        text = (tmp_path / name).read_text()
        assert right in text
        (tmp_path / name).write_text(text.replace(right, wrong, 1))

    make = ["make", "-C", tmp_path, "--old-file=.venv/dev.stamp", "check-deploy"]
    done = subprocess.run(make, capture_output=True, text=True, check=False, timeout=PATIENCE)

    output = done.stdout + done.stderr
    assert (done.returncode == 0) == (name is None), output
    if name:
        assert wrong.rstrip(":").split()[-1] in output


def kustomize(folder: Path) -> list[dict[str, Any]]:
    """The resources of a kustomization."""
    kubectl = [BASE_DIR / ".venv/bin/kubectl", "kustomize", folder]
    done = subprocess.run(kubectl, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return list(yaml.safe_load_all(done.stdout))


def overlay(folder: Path, name: str, *lines: str) -> Path:
    """A kustomization of an operator, beside a copy of `deploy`."""
    (folder / name).mkdir()
    (folder / name / "kustomization.yaml").write_text("\n".join(lines))
    return folder / name


def test_upgrade_check__with_an_overlay__is_one_job_of_the_new_version(tmp_path: Path) -> None:
    shutil.copytree(BASE_DIR / "deploy", tmp_path / "deploy")
    overlay(
        tmp_path,
        "OVERLAY",
        "resources: [../deploy/kubernetes]",
        'images: [{name: commonhold, newName: registry.example.com/commonhold, newTag: "2"}]',
    )
    check = overlay(
        tmp_path,
        "CHECK",
        "resources: [../OVERLAY]",
        "components: [../deploy/kubernetes/upgrade-check]",
    )

    config, job = sorted(kustomize(check), key=lambda each: str(each["kind"]))

    assert (config["kind"], job["kind"]) == ("ConfigMap", "Job")
    assert job["metadata"]["name"] == "commonhold-upgrade-check"
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (setup,) = [each for each in kustomize(tmp_path / "OVERLAY") if each["kind"] == "Job"]
    (original,) = setup["spec"]["template"]["spec"]["containers"]
    assert container == {**original, "args": ["upgrade", "--check"]}
    assert container["image"] == "registry.example.com/commonhold:2"
    # A refused upgrade is a failed Job, and not repeated.
    assert (job["spec"]["backoffLimit"], spec["restartPolicy"]) == (0, "Never")


def test_network_policies__traffic__is_denied_unless_listed() -> None:
    policies = {
        each["metadata"]["name"]: each["spec"] for each in kustomize(KUBERNETES / "network-policy")
    }
    everything = policies.pop("commonhold")
    assert everything["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "commonhold"}
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    for name, spec in policies.items():
        labels = spec["podSelector"]["matchLabels"]
        assert f"commonhold-{labels['app.kubernetes.io/component']}" == name
        assert labels["app.kubernetes.io/component"] in pods()


def test_network_policies__addresses_of_the_worker__are_those_that_the_server_permits() -> None:
    (spec,) = [
        each["spec"]
        for each in kustomize(KUBERNETES / "network-policy")
        if each["metadata"]["name"] == "commonhold-worker"
    ]
    (rule,) = spec["egress"]
    permitted = [ipaddress.ip_network(each["ipBlock"]["cidr"]) for each in rule["to"]]
    denied = [
        ipaddress.ip_network(each) for block in rule["to"] for each in block["ipBlock"]["except"]
    ]
    for network in denied:
        for address in (network[0], network[-1]):
            assert not is_public(str(address)), address
    for text in ("10.1.2.3", "100.100.100.200", "169.254.169.254", "192.168.0.1", "fd00::1"):
        address = ipaddress.ip_address(text)
        assert not any(address in each for each in permitted) or any(
            address in each for each in denied
        ), text
    for port in (22, 25, 80, 443, 1023, 1024, 8443, 65535):
        listed = any(
            each["port"] <= port <= each.get("endPort", each["port"]) for each in rule["ports"]
        )
        with nullcontext() if listed else pytest.raises(egress.Refused):
            egress.check_url(f"https://93.184.215.14:{port}/", allow_private=False)


def test_files__commands__exist() -> None:
    commands = [service["command"] for service in SERVICES]
    commands += [container["args"] for container in pods().values()]
    commands += re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.M)[-1:]
    assert "ExecStart=/opt/commonhold/.venv/bin/python manage.py %i\n" in UNIT

    for command in commands:
        name = command if isinstance(command, str) else command[0]
        assert get_commands()[name] == "state_admin"
    assert set(pods()) == {"setup", *ROLES} == {service["command"][0] for service in SERVICES}


def test_files__environment__has_declared_settings_only() -> None:
    declared = {setting.name for setting in list_settings()}
    names = {name for service in SERVICES for name in service["environment"]}
    names |= set(re.findall(r"\b([A-Z_]+)=", re.findall(r"^ENV (.*)$", DOCKERFILE, re.M)[0]))
    names |= set(re.findall(r"\b([A-Z_]+)=", re.findall(r"^Environment=(.*)$", UNIT, re.M)[0]))
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    names |= {one.partition("=")[0] for one in kustomization["configMapGenerator"][0]["literals"]}
    pythons_own = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}

    assert names - pythons_own <= declared
    assert {"DATABASE_URL", "COMMONHOLD_DATA_DIR", "HOST", "SITE_URL"} <= names


def test_containers__of_every_file__may_write_and_escalate_nothing() -> None:
    for service in SERVICES:
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    for container in pods().values():
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
    assert "\nUSER 10001\n" in DOCKERFILE


def test_pods__of_a_role_with_several__are_spread_over_the_nodes() -> None:
    specs = [one["spec"] for one in resources() if one["spec"].get("replicas", 1) > 1]
    assert len(specs) == 2
    for spec in specs:
        (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"] == spec["selector"]


def test_pods__limits__fit_what_their_processes_may_need() -> None:
    (grace,) = {
        one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        for one in resources()
        if "template" in one["spec"]
    }
    web = pods()["web"]
    assert int(web["lifecycle"]["preStop"]["exec"]["command"][1]) + DRAIN_SECONDS < grace
    # Each process may have a validation process.
    for role, processes in (("web", 2), ("worker", 1)):
        memory = pods()[role]["resources"]["limits"]["memory"]
        assert int(memory.removesuffix("Gi")) << 30 > processes * isolation.MEMORY_BYTES


def test_ha__files__name_the_same_nodes() -> None:
    haproxy = HA["services"]["haproxy"]["environment"]
    config = (BASE_DIR / "deploy/ha/haproxy.cfg").read_text()
    used = set(re.findall(r"\$\{(\w+)\}", config))
    assert used == set(haproxy)
    for name in ("DB1", "DB2", "DB3", "WEB1", "WEB2"):
        service = HA["services"][haproxy[name].partition(":")[0]]
        addresses = [value for key, value in service["environment"].items() if "CONNECT" in key]
        assert not name.startswith("DB") or addresses == [
            f"{name.lower()}:{haproxy[f'{name}_REST']}",
            haproxy[name],
        ]
    error = re.search(
        r"http-error status 503 content-type (\S+) string '(.*)' hdr Retry-After 1", config
    )
    assert error is not None
    assert error[1] == "application/problem+json"
    assert json.loads(error[2])["type"] == "/problems/unavailable"
    pinned = re.findall(r"^(patroni)", (BASE_DIR / "deploy/ha/requirements.txt").read_text(), re.M)
    assert pinned == ["patroni"]


@pytest.fixture
def image(folder: Path) -> Path:
    """The files of the image after its build, and nothing else of the repository."""
    root = folder / "app"
    kept = [line[1:] for line in (BASE_DIR / ".dockerignore").read_text().splitlines()
            if line.startswith("!")]  # fmt: skip
    for name in kept:
        source, target = BASE_DIR / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    collected = Running(folder, "manage.py", "collectstatic", "--noinput", cwd=root)
    assert collected.wait() == 0, collected.output()
    return root


def snapshot(root: Path) -> dict[str, int]:
    """The files below a folder, with the times of their last changes."""
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_image__every_role__works_without_a_write_to_its_files(folder: Path, image: Path) -> None:
    cluster = Cluster(folder / "database")
    cluster.acquire()
    started: list[Running] = []

    def run(command: str, **env: str) -> Running:
        settings = {
            "DATABASE_URL": url_of(cluster),
            "HOST": "127.0.0.1",
            "WEBHOOK_ALLOW_PRIVATE": "true",
        }
        settings |= {"PYTHONDONTWRITEBYTECODE": "1", **env}
        started.append(Running(folder, "manage.py", command, cwd=image, **settings))
        return started[-1]

    try:
        with psycopg.connect(
            host=str(cluster.socket_folder), port=PORT, user="postgres", autocommit=True
        ) as connection:
            connection.execute("CREATE DATABASE commonhold")
        before = snapshot(image)
        both = [run("setup"), run("setup")]
        assert [one.wait() for one in both] == [0, 0], [one.output() for one in both]
        (token,) = re.findall(r"API token +(ch_\S+)", "".join(one.output() for one in both))
        assert len(re.findall(r"Log in +http\S+", both[0].output())) == 1

        port = str(free_port())
        web, worker, beat = run("web", PORT=port), run("worker"), run("beat")
        web.wait_until_it_answers("/readyz")
        wait_for(lambda: json.loads(web.get("/readyz")[1])["status"] == "ok", "the worker sweeps")
        # Probes of an orchestrator name the address of the container.
        assert web.get("/healthz", Host="10.1.2.3:8000")[0] == 200
        assert web.get("/readyz", Host="10.1.2.3:8000")[0] == 200
        assert web.get("/login")[0] == 200
        check_jobs(web, token)

        began = time.monotonic()
        for running in (beat, worker, web):
            running.signal(signal.SIGTERM)
        assert [running.wait() for running in (web, worker, beat)] == [0, 0, 0]
        assert time.monotonic() - began < 30  # the period after which they are killed
        assert snapshot(image) == before
    finally:
        for running in started:
            running.kill_all()
        cluster.release()


def check_jobs(web: Running, token: str) -> None:
    """The worker sends what the web process queued."""

    def call(method: str, path: str, body: Any) -> int:
        return call_api(web.port, token, method, path, body)[0]

    with receiving() as receiver:
        assert call("PUT", "/namespaces/notes", {"schema": True}) in (200, 201)
        assert call("POST", "/webhooks", {"name": "hook", "url": receiver.url}) == 201
        assert call("PUT", "/state/notes/a", {"value": 1}) == 201
        receiver.wait_for(1)
