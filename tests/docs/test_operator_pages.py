"""The code blocks of the pages for operators.

Those pages are about other machines, so their blocks cannot all run here, as those of the guides do
(test_pages.py). Each has a test below that gives it to the program that reads it, or a reason why it
has none.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command, get_commands, load_command_class

from project.env import BASE_DIR, list_settings, read_environment
from project.postgres.cluster import Cluster
from tests.builders import Person, make_namespace, put
from tests.docs.pages import Block, read_blocks
from tests.patience import PATIENCE
from tests.project.conftest import folder
from tests.project.sites import connect
from tests.project.test_deployment import kustomize
from tests.services.workspace_copying import digests

__all__ = ["folder"]

PAGES = [f"docs/{name}.md" for name in ("deployment", "scaling", "traces", "workspace-files")]
BLOCKS = {(block.page, block.first_line): block for page in PAGES for block in read_blocks(page)}
SHELL = [block for block in BLOCKS.values() if block.language == "sh"]
ENVIRONMENTS = [block for block in BLOCKS.values() if block.language == "ini"]

# Shell blocks that are only parsed, by page and first line, each with the reason.
ONLY_PARSED = {
    ("docs/deployment.md", "docker compose up --build"): "needs Docker, and builds an image;"
    " `make check-deploy` checks the file, tests/project/test_deployment.py what it starts",
    ("docs/deployment.md", "umask 022"): "creates a user and writes to /opt and /etc;"
    " tests/project/test_deployment.py verifies the units by systemd",
    ("docs/deployment.md", "commonhold-manage setup"): "needs the services of a running systemd",
    ("docs/deployment.md", "kubectl create secret generic commonhold \\"): "needs a cluster",
    (
        "docs/deployment.md",
        "kubectl delete job commonhold-upgrade-check --ignore-not-found",
    ): "needs a cluster",
    (
        "docs/deployment.md",
        "docker compose -f deploy/ha/compose.yaml up --build",
    ): "needs Docker; tests/availability starts the same processes without it",
    (
        "docs/traces.md",
        ".venv/bin/pip install --require-hashes -r requirements-otel.txt",
    ): "needs the network; tests/project/test_tracing_extra.py uses these packages",
    (
        "docs/workspace-files.md",
        ".venv/bin/python manage.py export_workspace acme | ssh root@other.example commonhold-manage import_workspace -",
    ): "needs a second machine",
    (
        "docs/scaling.md",
        ".venv/bin/python -m benchmarks.capacity",
    ): "writes hundreds of thousands of entries; the numbers of the page are its output",
}
# Blocks of other languages that no program reads.
NOT_READ = {
    ("docs/deployment.md", "ok       database: PostgreSQL 18.6 (commonhold at db.internal:5432), 34 MiB, 12 of 100 connections"):
        "is an excerpt of a report; tests/management/test_doctor.py tests its lines",
    ("docs/deployment.md", "find /tmp/heartbeat -mmin -2 | grep -q ."):
        "is a probe; tests/project/test_heartbeat.py runs it beside a worker and beat",
    ("docs/workspace-files.md", '{"format": "commonhold-workspace", "format_version": 1, "commonhold_version": "0.1.0", "migration": "…", "exported_at": "…", "workspace": "acme", "workspace_id": 1, "clock": 5120, "secrets": false, "tables": {"entries": {"rows": 2, "columns": ["id", "key", …]}, …}}'):
        "is shortened by `…`; tests/domain/test_workspace_files.py tests the format",
}  # fmt: skip
# Each of the others has its own test below.
RUN_HERE = {
    ("docs/workspace-files.md", ".venv/bin/python manage.py export_workspace acme --to acme.ndjson.gz"),
    ("docs/scaling.md", ".venv/bin/python manage.py cells --output /etc/haproxy/maps"),
    ("docs/scaling.md", "# tokens.map"),
    ("docs/deployment.md", "CREATE ROLE commonhold LOGIN PASSWORD '…';"),
    ("docs/deployment.md", "resources: [../deploy/kubernetes, ingress.yaml]"),
    ("docs/deployment.md", "resources: [../OVERLAY]"),
    ("docs/deployment.md", "components: [../deploy/kubernetes/network-policy]"),
    ("docs/traces.md", "Commonhold.fromEnv({"),
}  # fmt: skip

INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: commonhold}
spec: {defaultBackend: {service: {name: commonhold, port: {number: 8000}}}}
"""


def block(page: str, first_words: str) -> Block:
    """The block of docs/<page>.md that begins with these words."""
    (found,) = [
        each
        for (path, line), each in BLOCKS.items()
        if path == f"docs/{page}.md" and line.strip().startswith(first_words)
    ]
    return found


def commands_in(text: str) -> list[list[str]]:
    """The arguments of each call of manage.py in a shell block."""
    calls = re.findall(r"(?:manage\.py|commonhold-manage) ([a-z_]+\b[^|&\n']*)", text)
    return [shlex.split(each) for each in calls]


def test_blocks__each__is_checked_or_has_a_reason() -> None:
    read = {(each.page, each.first_line) for each in ENVIRONMENTS}
    listed = [read, ONLY_PARSED.keys(), NOT_READ.keys(), RUN_HERE]
    names = {(page, line.strip()) for page, line in BLOCKS}
    assert len(names) == len([each for page in PAGES for each in read_blocks(page)])
    assert {each for part in listed for each in part} == names
    assert sum(len(part) for part in listed) == len(names)
    assert all(len(each.split()) > 2 for each in [*ONLY_PARSED.values(), *NOT_READ.values()])


@pytest.mark.parametrize("shell", SHELL, ids=lambda each: each.place)
def test_shell_block__is_valid_and_calls_commands_with_arguments_that_they_accept(
    shell: Block,
) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=shell.text, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name, *arguments in commands_in(shell.text):
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        parser.parse_args(arguments)  # CommandError if it has no such argument
    for module in re.findall(r"python -m (benchmarks\S*)", shell.text):
        assert find_spec(module)
    for path in re.findall(r"(?<![\w/.])(?:deploy/\S+|requirements\S*\.txt)", shell.text):
        assert (BASE_DIR / path).is_file(), path


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda each: each.place)
def test_environment__of_a_page__is_accepted(
    environment: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = dict(line.split("=", 1) for line in environment.text.splitlines())
    assert given.keys() <= {setting.name for setting in list_settings()}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    read = read_environment()
    assert all(getattr(read, name.lower()) for name in given)


def test_role_and_database__created_as_the_page_says__are_owned_and_monitored(
    folder: Path,
) -> None:
    cluster = Cluster(folder / "database")
    cluster.acquire()
    try:
        with connect(cluster, "postgres") as database:
            for statement in block("deployment", "CREATE ROLE").text.splitlines():
                database.execute(statement.encode())
            found = database.execute(
                "SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding),"
                " pg_has_role('commonhold', 'pg_monitor', 'member')"
                " FROM pg_database WHERE datname = 'commonhold'"
            ).fetchone()
    finally:
        cluster.release()
    assert found == ("commonhold", "UTF8", True)


def test_kustomizations__of_the_page__change_what_it_says(tmp_path: Path) -> None:
    shutil.copytree(BASE_DIR / "deploy", tmp_path / "deploy")
    overlay = block("deployment", "resources: [../deploy/kubernetes").text
    policies = block("deployment", "components: [../deploy/kubernetes/network").text
    files = {
        "OVERLAY": overlay,
        "CHECK": block("deployment", "resources: [../OVERLAY]").text,
        "POLICIES": overlay + policies,
    }
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text(text)
        (tmp_path / name / "ingress.yaml").write_text(INGRESS)

    plain = kustomize(tmp_path / "OVERLAY")
    kinds = {each["kind"] for each in plain}
    assert {"Deployment", "Job", "Service", "Ingress", "ConfigMap"} <= kinds
    assert "registry.example.com/commonhold:1" in yaml.safe_dump_all(plain)
    (config,) = [each for each in plain if each["kind"] == "ConfigMap"]
    assert config["data"]["SITE_URL"] == "https://state.example.com"
    check = {each["kind"]: each["metadata"]["name"] for each in kustomize(tmp_path / "CHECK")}
    assert check.keys() == {"ConfigMap", "Ingress", "Job"}
    assert check["Job"] == "commonhold-upgrade-check"
    added = {each["kind"] for each in kustomize(tmp_path / "POLICIES")} - kinds
    assert added == {"NetworkPolicy"}


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")
def test_maps__of_the_page__are_accepted_by_haproxy(tmp_path: Path) -> None:
    maps = re.split(r"^# (\S+\.map)\n", block("scaling", "# tokens.map").text, flags=re.M)[1:]
    assert maps[::2] == ["tokens.map", "hosts.map"]
    for name, text in zip(maps[::2], maps[1::2], strict=True):
        (tmp_path / name).write_text(text)
    names = ("EU1_WEB", "US1_WEB")
    env = {**os.environ, **dict.fromkeys(names, "127.0.0.1:8000"), "MAPS": str(tmp_path)}
    env |= {"BIND": "127.0.0.1", "WEB_PORT": "8080", "STATUS_PORT": "8081"}
    check = ["haproxy", "-c", "-f", BASE_DIR / "deploy/cells/haproxy.cfg"]
    done = subprocess.run(
        check, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.django_db
def test_cells__called_as_the_page_says__writes_the_maps(
    alice: Person, settings: Any, tmp_path: Path
) -> None:
    environment = block("scaling", "CELL=").text.splitlines()
    given = dict(line.split("=", 1) for line in environment)
    settings.CELL, settings.SITE_URL = given["CELL"], given["SITE_URL"]
    ((name, *arguments),) = commands_in(block("scaling", ".venv/bin/python manage.py cells").text)
    there = [each.replace("/etc/haproxy/maps", str(tmp_path)) for each in arguments]
    call_command(name, *there)
    shown = block("scaling", "# tokens.map").text.splitlines()
    assert shown[1] in (tmp_path / "tokens.map").read_text().splitlines()
    assert shown[-1] in (tmp_path / "hosts.map").read_text().splitlines()


@pytest.mark.django_db
def test_workspace__exported_and_imported_as_the_page_says__is_equal(
    alice: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"a": 1})
    monkeypatch.chdir(tmp_path)
    for name, *arguments in commands_in(block("workspace-files", ".venv/bin/python manage.py export_workspace acme --to").text):  # fmt: skip
        call_command(name, *arguments)
    assert digests("acme-copy") == digests("acme") != []


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_example__of_a_trace__is_javascript(tmp_path: Path) -> None:
    (file := tmp_path / "example.mjs").write_text(block("traces", "Commonhold.fromEnv({").text)
    done = subprocess.run(
        ["node", "--check", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
