"""One PostgreSQL server in one folder: its state, start and stop. No locks here."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from project.postgres import binaries
from project.postgres.binaries import ClusterError
from project.postgres.session import PRIVATE_LOG

PORT = 5432
# The shortest limit of sockaddr_un among the supported systems (macOS: 104 with the final zero).
_LONGEST_SOCKET_PATH = 103
# Above Linux's largest pid, so that PostgreSQL never takes another process for the owner.
_NOBODYS_PID = "4194305"
# Crash recovery after kill -9 replays at most max_wal_size, which takes minutes on a slow disk.
_START_TIMEOUT = 300.0
_STOP_TIMEOUT = 60.0
_LOG_LIMIT = 10 * 1024 * 1024

# Written at every start and included last; lines after the include in postgresql.conf override it.
_CONF = """\
# Written by Commonhold at every start. Your own settings go after the include in postgresql.conf.
shared_buffers = 256MB
max_connections = 100
jit = off
random_page_cost = 1.1
wal_compression = on
max_wal_size = 2GB
timezone = 'UTC'
log_timezone = 'UTC'
"""
# On the command line, so that no configuration file can disable them.
_ALWAYS = (
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "listen_addresses=",
    "unix_socket_permissions=0700",
    *(f"{name}={value}" for name, value in PRIVATE_LOG.items()),
)


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read; an existing file gets this mode too."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


class Server:
    """The server whose files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.data = self.folder / "pg"
        self.log = self.folder / "postgres.log"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def socket_folder(self) -> Path:
        """`folder/run`, or a short private folder if that path is too long for a socket."""
        folder = self.folder / "run"
        if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > _LONGEST_SOCKET_PATH:
            digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
            return Path(tempfile.gettempdir()) / f"commonhold-{os.getuid()}-{digest}"
        return folder

    # State ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the files were created."""
        return (self.data / "PG_VERSION").exists()

    def is_up(self) -> bool:
        """Whether the server listens and is not starting or stopping."""
        if self._status() != "ready" or not self._listens():
            return False
        if self.postmaster() is None:
            # Either the server is ending and its socket will disappear, or it runs in another
            # container that shares the folder and must not be replaced.
            time.sleep(0.2)
            return self._listens()
        return True

    def postmaster(self) -> int | None:
        """The pid of this cluster's running server; None for a dead one, a zombie and a reused
        pid."""
        try:
            pid = int(self._pidfile()[0])
        except (OSError, ValueError, IndexError):
            return None
        state, command = self._process(pid)
        ours = b"postgres" in command and os.fsencode(self.data) in command
        return pid if ours and state not in "ZX" else None

    def _process(self, pid: int) -> tuple[str, bytes]:
        """The process's state letter (X: gone) and its command line, which is empty once it is
        ending."""
        if self._child is not None:
            self._child.poll()  # reap it if it has ended, or it appears to be alive
        if sys.platform == "linux":
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except (OSError, IndexError):
                state, command = "X", b""
        else:
            command = subprocess.run(
                ["ps", "-o", "stat=,command=", "-p", str(pid)],  # noqa: S607
                check=False,
                capture_output=True,
            ).stdout
            state = command[:1].decode() or "X"
        return state, command

    def _pidfile(self) -> list[str]:
        return (self.data / "postmaster.pid").read_text().splitlines()

    def _status(self) -> str | None:
        """starting, stopping, ready or standby, as in the server's pid file; None without one."""
        try:
            return self._pidfile()[7].strip() or None
        except (OSError, IndexError):
            return None

    def _listens(self) -> bool:
        probe = socket.socket(socket.AF_UNIX)
        try:
            probe.settimeout(1)
            probe.connect(str(self.socket_folder / f".s.PGSQL.{PORT}"))
        except OSError as error:
            # Any other error, such as a full backlog, means that the server runs.
            return error.errno not in (errno.ENOENT, errno.ECONNREFUSED)
        else:
            return True
        finally:
            probe.close()

    # Start and stop ------------------------------------------------------------------------

    def start_or_wait(self) -> None:
        """Start the server, or wait for one that is starting or stopping."""
        who, programs = binaries.identity(), binaries.find()
        if not self.exists():
            self._initialise(who, programs)
        self._check_version(who, programs)
        (self.data / "commonhold.conf").write_text(_CONF)
        self._private_folder(self.socket_folder, who)
        deadline = time.monotonic() + _START_TIMEOUT
        child: subprocess.Popen[bytes] | None = None
        while time.monotonic() < deadline:
            pid = self.postmaster()
            if pid is not None:
                if self.is_up():
                    return
                if self._status() == "ready" and not self._listens():
                    os.kill(pid, signal.SIGINT)  # its socket was deleted: no client can connect
            elif child is None:
                child = self._spawn(who, programs)
            elif child.poll() is not None:
                self._raise_unless_orphans(child)
                child = None
            time.sleep(0.02 if child else 0.1)
        raise ClusterError(f"PostgreSQL is not ready after {_START_TIMEOUT:.0f} s; see {self.log}")

    def _initialise(self, who: binaries.Identity, programs: Path) -> None:
        """Run initdb in a temporary folder, then rename it, so that a killed initdb leaves no
        partial cluster."""
        draft = self.folder / "pg.init"
        shutil.rmtree(draft, ignore_errors=True)
        if who.uid is not None:
            for folder in (self.folder, self.folder.parent):  # that user may traverse, not read it
                folder.chmod(folder.stat().st_mode | 0o011)
        self._private_folder(draft, who)
        for locale in ("--locale=C.UTF-8", "--no-locale"):  # older macOS has no C.UTF-8
            output = who.run(
                *(programs / "initdb", "-D", draft, "-U", "postgres"),
                *("--auth=trust", "-E", "UTF8", "-N", locale),
            )
            if output.returncode == 0:
                break
        else:
            reason = (output.stdout.strip().splitlines() or ["no reason given"])[-1]
            raise ClusterError(f"PostgreSQL cannot create its files: {reason}")
        with (draft / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude_if_exists = 'commonhold.conf'\n")
        os.sync()  # initdb ran without syncing: one sync is cheaper than hundreds
        draft.rename(self.data)

    def _check_version(self, who: binaries.Identity, programs: Path) -> None:
        want = (self.data / "PG_VERSION").read_text().strip()
        have = binaries.major_version(programs, who)
        if want != have:
            raise ClusterError(
                f"{self.data} was made by PostgreSQL {want}, but the programs in {programs} are "
                f"version {have}: set EMBEDDED_PG_BIN to version {want}, or pg_upgrade the folder"
            )

    def _private_folder(self, folder: Path, who: binaries.Identity) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        owners = {os.geteuid(), os.geteuid() if who.uid is None else who.uid}
        if status.st_uid not in owners or not stat.S_ISDIR(status.st_mode):
            raise ClusterError(f"{folder} belongs to another user")
        if who.uid is not None:
            os.chown(folder, who.uid, who.gid or 0)
        folder.chmod(0o700)

    def _spawn(self, who: binaries.Identity, programs: Path) -> subprocess.Popen[bytes]:
        (self.socket_folder / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            # Keep the shared memory line, because of which PostgreSQL refuses to start while a
            # backend of the dead server still writes.
            pidfile = self.data / "postmaster.pid"
            draft = pidfile.with_suffix(".draft")  # a kill must not leave an empty pid file
            draft.write_text("\n".join([_NOBODYS_PID, *self._pidfile()[1:]]) + "\n")
            os.chown(draft, who.uid if who.uid is not None else -1, who.gid or -1)
            draft.replace(pidfile)
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.rename(self.log.with_suffix(".log.1"))
        options = [part for setting in _ALWAYS for part in ("-c", setting)]
        command = ["-D", self.data, "-k", self.socket_folder, "-p", PORT, *options]
        with open(self.log, "ab", opener=_open_private) as log:
            self._child = subprocess.Popen(
                [*who.prefix, *map(str, [programs / "postgres", *command])],
                stdout=log,
                stderr=log,
                **who.popen_options(),
            )
        return self._child

    def _raise_unless_orphans(self, child: subprocess.Popen[bytes]) -> None:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 4000))
            tail = log.read().decode(errors="replace")
        if "pre-existing shared memory block" not in tail.rpartition("starting PostgreSQL")[2]:
            lines = [line for line in tail.splitlines() if "FATAL" in line or "ERROR" in line]
            reason = (lines or tail.splitlines() or [""])[-1]
            raise ClusterError(
                f"PostgreSQL exited with {child.returncode}: {reason}; see {self.log}"
            )

    def stop(self) -> None:
        """Fast shutdown, which rolls back open transactions; SIGQUIT if it takes more than a
        minute."""
        pid = self.postmaster()
        if pid is None and self._child is not None and self._child.poll() is None:
            pid = self._child.pid  # it has just been started, and has no pid file yet
        if pid is None:
            return
        os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + _STOP_TIMEOUT
        while self._process(pid)[0] not in "ZX":  # its pid file is deleted before it ends
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGQUIT)
                return
            time.sleep(0.02)
