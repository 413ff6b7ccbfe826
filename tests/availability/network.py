"""Machines of a network that the tests can partition: network namespaces of Linux.

Each machine has two links: an inner one to the other machines, and an outer one to this machine, where the
clients are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

import pytest

Side = Literal["inner", "outer"]
SIDES: Final[tuple[Side, ...]] = ("inner", "outer")
_IP: Final = "/usr/sbin/ip"


@dataclass(frozen=True)
class Machine:
    """`inner`: its address for the other machines. `outer`: for clients. `listens`: for both.
    `command`: what precedes a command that runs on it."""

    inner: str = "127.0.0.1"
    outer: str = "127.0.0.1"
    listens: str = "127.0.0.1"
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Network:
    name: str
    machines: Sequence[Machine]

    def _link(self, number: int, side: Side) -> str:
        return f"{self.name}{side[0]}{number}"

    @contextmanager
    def cut(self, sides: Sequence[Side], *numbers: int) -> Iterator[None]:
        """Disconnect these machines from all other machines (inner), from the clients (outer), or from
        both, for a while."""
        links = [self._link(number, side) for number in numbers for side in sides]
        try:
            for link in links:
                _run(f"link set {link} down")
            yield
        finally:
            for link in links:
                _run(f"link set {link} up")


# All on this machine, without links.
LOOPBACK: Final = Network("", [Machine()] * 3)


@contextmanager
def open_network(count: int) -> Iterator[Network]:
    """A network of machines. Its addresses are from 198.18.0.0/15, which RFC 2544 reserves for tests."""
    if os.geteuid() != 0 or shutil.which(_IP) is None:
        pytest.skip("network namespaces need root and iproute2")
    name, third = f"ch{os.getpid() % 100_000}", os.getpid() % 256
    net = {"inner": f"198.18.{third}", "outer": f"198.19.{third}"}
    machines = [
        Machine(
            inner=f"{net['inner']}.{number}",
            outer=f"{net['outer']}.{number}",
            listens="*",
            command=(_IP, "netns", "exec", f"{name}n{number}"),
        )
        for number in range(1, count + 1)
    ]
    network = Network(name, machines)
    try:
        for side in SIDES:
            _run(f"link add {name}{side[0]} type bridge")
            _run(f"link set {name}{side[0]} up")
        _run(f"address add {net['outer']}.254/24 dev {name}o")
        for number in range(1, count + 1):
            space = f"{name}n{number}"
            _run(f"netns add {space}")
            _run(f"-n {space} link set lo up")
            for side in SIDES:
                link = network._link(number, side)
                _run(f"link add {link} type veth peer name {side} netns {space}")
                _run(f"link set {link} master {name}{side[0]} up")
                _run(f"-n {space} address add {net[side]}.{number}/24 dev {side}")
                _run(f"-n {space} link set {side} up")
        yield network
    finally:
        for number in range(1, count + 1):
            _run(f"netns delete {name}n{number}", check=False)
        for side in SIDES:
            _run(f"link delete {name}{side[0]}", check=False)


def _run(command: str, *, check: bool = True) -> None:
    done = subprocess.run([_IP, *command.split()], check=False, capture_output=True, text=True)
    if check and done.returncode:
        if "not permitted" in done.stderr:
            pytest.skip(f"network namespaces: {done.stderr.strip()}")
        raise AssertionError(f"ip {command}: {done.stderr}")
