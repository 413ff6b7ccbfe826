"""manage.py export_workspace and import_workspace."""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import signal
import stat
import sys
import termios
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest
from django.core.management import CommandError, call_command

from state_admin.models import MoveSide, MoveState, Workspace, WorkspaceMove
from tests.builders import Person, make_namespace, make_token, put
from tests.project.running import Running
from tests.services.workspace_copying import digests

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme(alice: Person) -> Person:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    make_token(alice)
    return alice


def run(command: str, *arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(command, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def standard_input(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))


@pytest.mark.parametrize("state", [MoveState.FROZEN, MoveState.MOVED, MoveState.UNDONE])
def test_export__of_a_moved_workspace__names_its_new_cell(
    acme: Person, tmp_path: Path, state: MoveState
) -> None:
    WorkspaceMove.objects.create(
        move_id="m", side=MoveSide.SOURCE, state=state, slug="acme", cell="c2"
    )
    _, err = run("export_workspace", "acme", "--to", str(tmp_path / "file"))
    assert ("was moved to the cell c2" in err) == (state is MoveState.MOVED)


def test_export__rows_are_being_deleted__is_refused(acme: Person, tmp_path: Path) -> None:
    WorkspaceMove.objects.create(
        move_id="m", side=MoveSide.SOURCE, state=MoveState.REMOVING, slug="acme", cell="c2"
    )
    with pytest.raises(CommandError, match="Export it in that cell"):
        run("export_workspace", "acme", "--to", str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["acme.ndjson", "acme.ndjson.gz"])
def test_export_and_import__file__is_equal(acme: Person, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    out, err = run("export_workspace", "acme", "--to", str(file))
    assert (out, err.startswith("exported acme: ")) == ("", True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_bytes()
    lines = gzip.decompress(content) if name.endswith(".gz") else content
    assert lines.startswith(b'{"format":"commonhold-workspace"')

    out, _ = run("import_workspace", str(file), "--as", "copy")

    assert digests("copy") == digests("acme")
    assert out.splitlines()[0].startswith("imported copy: ")
    assert out.splitlines()[1:] == [
        "tokens without a secret (rotate or revoke them): alice's token, narrow",
        "members that were not added: alice",
    ]


def test_export_and_import__standard_streams_and_members__is_equal(
    acme: Person, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export_workspace", "acme", "--secrets")
    content = capfdbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", standard_input(content))
    out, _ = run("import_workspace", "-", "--as", "copy", "--members")
    assert digests("copy") == digests("acme")
    assert "members" not in out


def test_import__compressed_or_not__is_read_from_the_content(
    acme: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, plain = tmp_path / "acme.ndjson.gz", tmp_path / "unpacked.gz"
    run("export_workspace", "acme", "--to", str(packed))
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    renamed = packed.rename(tmp_path / "acme")

    run("import_workspace", str(renamed), "--as", "renamed")
    run("import_workspace", str(plain), "--as", "plain")
    monkeypatch.setattr(sys, "stdin", standard_input(renamed.read_bytes()))
    run("import_workspace", "-", "--as", "piped")

    assert digests("renamed") == digests("plain") == digests("piped") == digests("acme")


def test_import__pipe_that_has_one_byte_at_first__is_read_from_the_content(
    acme: Person, tmp_path: Path
) -> None:
    file, pipe = tmp_path / "acme.gz", tmp_path / "pipe"
    run("export_workspace", "acme", "--to", str(file))
    os.mkfifo(pipe)

    def write() -> None:
        content = file.read_bytes()
        with pipe.open("wb", buffering=0) as writer:
            writer.write(content[:1])
            while unread(writer):
                time.sleep(0.001)
            writer.write(content[1:])

    with ThreadPoolExecutor() as pool:
        written = pool.submit(write)
        run("import_workspace", str(pipe), "--as", "copy")
        written.result()

    assert digests("copy") == digests("acme")


def unread(pipe: IO[bytes]) -> int:
    """The bytes in the pipe that were not read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_export__fails__leaves_no_file(acme: Person, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="workspace not found: none"):
        run("export_workspace", "none", "--to", str(tmp_path / "file"))
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(CommandError, match=r"cannot write .*/none/file: No such file"):
        run("export_workspace", "acme", "--to", str(tmp_path / "none" / "file"))
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(CommandError, match=rf"cannot write {folder}: Is a directory"):
        run("export_workspace", "acme", "--to", str(folder))


def test_export__reader_of_standard_output_has_left__is_left_to_manage_py(
    acme: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    # Closing writes what is left.
    with suppress(BrokenPipeError), open(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with pytest.raises(BrokenPipeError):
            run("export_workspace", "acme")


def test_export__another_one_writes_the_file__is_refused(acme: Person, tmp_path: Path) -> None:
    part = tmp_path / "file.part"
    part.write_text("of the other")
    with pytest.raises(CommandError, match=r"file\.part exists: .* delete it\."):
        run("export_workspace", "acme", "--to", str(tmp_path / "file"))
    assert part.read_text() == "of the other"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell lets jobs in the background ignore SIGINT, and their commands inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.system
@pytest.mark.usefixtures("interruptible")
def test_import__interrupted__is_one_word_without_a_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = Running(tmp_path, "manage.py", "import_workspace", str(pipe))
    with pipe.open("wb"):  # waits until the command reads
        command.signal(signal.SIGINT)
        assert command.wait() == 128 + signal.SIGINT
    assert command.output() == "Interrupted.\n"


def test_import__refused__is_one_sentence(acme: Person, tmp_path: Path) -> None:
    file = tmp_path / "file"
    run("export_workspace", "acme", "--to", str(file))
    with pytest.raises(CommandError, match=r"already exists: acme\. Choose another name with --as"):
        run("import_workspace", str(file))
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CommandError, match=r"line \d+: the file is truncated"):
        run("import_workspace", str(file), "--as", "copy")
    with pytest.raises(CommandError, match="cannot read"):
        run("import_workspace", str(tmp_path / "none"))
    packed = tmp_path / "file.gz"
    packed.write_bytes(b"\x1f\x8b" + b"damaged" * 9)
    with pytest.raises(CommandError, match="cannot be imported: line 1: cannot read the file"):
        run("import_workspace", str(packed))
    assert Workspace.objects.count() == 1
