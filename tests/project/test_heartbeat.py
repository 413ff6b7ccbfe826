"""The probes of deploy/kubernetes and of the Compose files see whether worker and beat work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from project.env import BASE_DIR
from project.postgres.cluster import Cluster
from tests.project.conftest import Start
from tests.project.running import Running, free_port, run_python, wait_for
from tests.project.sites import SETTINGS, url_of

ROLES = ("worker", "beat")
FILE = "/tmp/heartbeat"


def container(role: str) -> dict[str, Any]:
    pod = yaml.safe_load((BASE_DIR / f"deploy/kubernetes/{role}.yaml").read_text())
    (found,) = pod["spec"]["template"]["spec"]["containers"]
    return dict(found)


class Probed:
    """A worker or beat, and the probe of its container."""

    def __init__(self, start: Start, folder: Path, cluster: Cluster, role: str, **env: str) -> None:
        self.file = folder / "heartbeat"
        environment = {"DATABASE_URL": url_of(cluster), **SETTINGS}
        done = run_python(folder, "manage.py", "setup", **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        self.command = container(role)["livenessProbe"]["exec"]["command"]
        self.process: Running = start(
            *("-m", "project.processes", role), HEARTBEAT_FILE=str(self.file), **environment, **env
        )
        self.process.wait_for_output("process.started")
        wait_for(self.works, self.process.output)

    def works(self) -> bool:
        """Whether the probe succeeds."""
        command = [part.replace(FILE, str(self.file)) for part in self.command]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def backdate(self) -> None:
        """As if the process had last changed the file three minutes ago."""
        moment = time.time() - 180
        os.utime(self.file, (moment, moment))

    def is_stopped(self) -> bool:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("role", ROLES)
def test_probe__process_hangs__fails_until_it_continues(
    role: str, start: Start, folder: Path, cluster: Cluster
) -> None:
    probed = Probed(start, folder, cluster, role)
    probed.backdate()
    wait_for(probed.works, "the heartbeat is updated repeatedly")

    os.kill(probed.process.pid, signal.SIGSTOP)
    wait_for(probed.is_stopped, "the process is stopped")
    probed.backdate()
    assert not probed.works()

    os.kill(probed.process.pid, signal.SIGCONT)
    wait_for(probed.works, "the process works")


@pytest.mark.parametrize("role", ROLES)
def test_probe__broker_is_down__succeeds(
    role: str, start: Start, folder: Path, cluster: Cluster
) -> None:
    """To restart the process would interrupt its jobs and repair nothing."""
    broker = f"redis://127.0.0.1:{free_port()}"
    probed = Probed(start, folder, cluster, role, BROKER_URL=broker)
    probed.backdate()
    wait_for(probed.works, probed.process.output)


@pytest.mark.parametrize("role", ROLES)
def test_probe__broker_accepts_and_never_responds__succeeds(
    role: str, start: Start, folder: Path, cluster: Cluster
) -> None:
    """As a host that has disappeared from the network."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        probed = Probed(start, folder, cluster, role, BROKER_URL=broker)
        probed.backdate()
        wait_for(probed.works, probed.process.output)


@pytest.mark.parametrize("role", ROLES)
def test_start__file_in_a_folder_that_does_not_exist__is_refused(
    role: str, start: Start, folder: Path, cluster: Cluster
) -> None:
    file = folder / "none" / "heartbeat"
    process = start(
        *("-m", "project.processes", role), HEARTBEAT_FILE=str(file), DATABASE_URL=url_of(cluster)
    )
    assert process.wait() == 1
    expected = f"Cannot write {file}, which HEARTBEAT_FILE names: No such file or directory"
    assert expected in process.output()


@pytest.mark.parametrize("file", ["compose.yaml", "deploy/ha/compose.yaml"])
@pytest.mark.parametrize("role", ROLES)
def test_files__probe_of_a_role__is_the_same_in_each_and_reads_the_file_of_the_setting(
    role: str, file: str
) -> None:
    service = yaml.safe_load((BASE_DIR / file).read_text())["services"][role]
    pod = container(role)

    assert service["healthcheck"]["test"] == [
        "CMD-SHELL",
        pod["livenessProbe"]["exec"]["command"][-1],
    ]
    assert service["environment"]["HEARTBEAT_FILE"] == FILE
    assert {"name": "HEARTBEAT_FILE", "value": FILE} in pod["env"]
    assert FILE in service["healthcheck"]["test"][-1]
    guide = (BASE_DIR / "docs/deployment.md").read_text()
    assert service["healthcheck"]["test"][-1] in guide
