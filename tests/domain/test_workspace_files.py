"""The file of an exported workspace: what is written is read, and a damaged file is refused."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.workspace_files import BadFile, Header, Reader, TableSummary, Value, Writer

ROWS: list[tuple[str, list[Value]]] = [
    ("entries", ["1", "a"]),
    ("entries", ["2", None]),
    ("threads", ["7"]),
]
COLUMNS = {"entries": ("id", "key"), "threads": ("id",)}


def write(rows: list[tuple[str, list[Value]]]) -> bytes:
    counted = {name: sum(table == name for table, _ in rows) for name in COLUMNS}
    header = Header(
        commonhold_version="0.1.0",
        migration="0001_initial",
        exported_at="2026-01-01T00:00:00Z",
        workspace="acme",
        workspace_id=1,
        clock=1000,
        secrets=False,
        tables={name: TableSummary(counted[name], columns) for name, columns in COLUMNS.items()},
    )
    stream = io.BytesIO()
    writer = Writer(stream, header)
    for table, values in rows:
        writer.write_row(table, COLUMNS[table], values)
    writer.finish()
    return stream.getvalue()


def read(file: bytes | BinaryIO) -> list[tuple[str, list[Value]]]:
    stream = io.BytesIO(file) if isinstance(file, bytes) else file
    return [(row.table, list(row.values)) for row in Reader(stream).read_rows()]


FILE = write(ROWS)
VALUES = st.none() | st.text(max_size=10)


@given(
    st.lists(st.tuples(st.just("entries"), st.lists(VALUES, min_size=2, max_size=2)), max_size=5)
)
def test_read__any_rows__are_as_written(rows: list[tuple[str, list[Value]]]) -> None:
    assert read(write(rows)) == rows


def test_read__header__is_as_written() -> None:
    header = Reader(io.BytesIO(FILE)).header
    assert (header.workspace, header.clock, header.secrets) == ("acme", 1000, False)
    assert header.tables["entries"] == TableSummary(2, ("id", "key"))


@pytest.mark.parametrize("length", range(len(FILE)))
def test_read__truncated_anywhere__is_refused(length: int) -> None:
    line = FILE[:length].count(b"\n") + 1
    with pytest.raises(BadFile, match=f"^line {line}: the file is truncated: it ends here$"):
        read(FILE[:length])


def unpack(packed: bytes) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=io.BytesIO(packed)))


def test_read__truncated_gzip__is_refused() -> None:
    packed = gzip.compress(FILE)
    for length in range(len(packed)):
        with pytest.raises(BadFile, match=r"line \d: .*(truncated|Not a gzipped)"):
            read(unpack(packed[:length]))


def test_read__other_bytes_in_gzip__are_refused() -> None:
    packed = gzip.compress(FILE)
    broken = packed[:100] + bytes([packed[100] ^ 255]) + packed[101:]
    for file in (broken, FILE):
        with pytest.raises(BadFile):
            read(unpack(file))


def replace(old: str, new: str) -> Callable[[list[str]], None]:
    def change(lines: list[str]) -> None:
        before = "\n".join(lines)
        assert old in before
        lines[:] = before.replace(old, new, 1).split("\n")

    return change


def shift(first: int, second: int) -> Callable[[list[str]], None]:
    def change(lines: list[str]) -> None:
        lines[first], lines[second] = lines[second], lines[first]

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (replace('"a"', '"b"'), "line 5: the file was changed: its digest differs"),
        (replace('"acme"', '"acma"'), "line 5: the file was changed: its digest differs"),
        (shift(1, 2), "line 5: the file was changed: its digest differs"),
        (lambda lines: lines.pop(1), "line 4: the file has 1 rows of entries, not 2 as in the"),
        (lambda lines: lines.insert(1, lines[1]), "line 6: the file has 3 rows of entries, not 2"),
        (lambda lines: lines.insert(5, lines[1]), "line 6: the file continues after its last line"),
        (lambda lines: lines.insert(5, ""), "line 6: the file continues after its last line"),
        (replace('"entries","row"', '"users","row"'), "line 2: the first line has no table 'users'"),
        (replace('"key":"a"', '"Key":"a"'), "line 2: entries has other columns than in the first line: Key, key"),
        (replace('"key":"a"', '"key":1'), "line 2: not a line of an exported workspace: Expected string or null, got integer"),
        (replace('{"id":"7"', '{"id":"7'), "line 4: not a line of an exported workspace"),
        (replace('{"table":"threads"', '{"x":1,"table":"threads"'), "line 4: not a line of an exported"),
        (lambda lines: lines.insert(1, "hello"), "line 2: not a line of an exported workspace"),
        (replace('"commonhold-workspace"', '"other"'), "line 1: the format is 'other', not 'commonhold-workspace'"),
        (replace('"format_version":1', '"format_version":2'), "line 1: the format version is 2; this server reads 1"),
        (replace('"clock":1000,', ""), "line 1: not a line of an exported workspace: Object missing required field `clock`"),
        (lambda lines: lines.insert(0, '{"namespace": "notes"}'), "line 1: not a line of an exported"),
    ],
)  # fmt: skip
def test_read__changed_file__is_refused_with_line_and_cause(
    change: Callable[[list[str]], None], expected: str
) -> None:
    lines = FILE.decode().split("\n")[:-1]
    change(lines)
    with pytest.raises(BadFile, match=f"^{re.escape(expected)}"):
        read("".join(f"{line}\n" for line in lines).encode())


def test_read__other_bytes__are_refused() -> None:
    for file in (b"\xff\xfe\n", b"[]\n", b"\n", b"1\n"):
        with pytest.raises(BadFile, match="line 1: not a line of an exported"):
            read(file)


def test_write__each_line__is_one_json_object() -> None:
    lines = [json.loads(line) for line in FILE.splitlines()]
    assert lines[1] == {"table": "entries", "row": {"id": "1", "key": "a"}}
    assert lines[-1]["end"]["rows"] == 3
