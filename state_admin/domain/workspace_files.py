"""The format of an exported workspace: lines of JSON (docs/workspace-files.md).

The first line describes the file, each further line is one row of a table, and the last line has
the number of rows and a digest of all lines before it. Which tables and columns there are, and what
they mean, is in models/workspace_tables.py.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Final, NamedTuple, TypeVar

import msgspec

from state_admin.domain.json_terms import in_json_terms

FORMAT: Final = "commonhold-workspace"
# Increased when an older server would misread a file.
FORMAT_VERSION: Final = 1

T = TypeVar("T")

# A column as PostgreSQL writes it in text format, or NULL.
Value = str | None


class BadFile(ValueError):
    """The file cannot be read: where, and why."""

    def __init__(self, line: int, cause: str) -> None:
        super().__init__(f"line {line}: {cause}")


class TableSummary(msgspec.Struct, frozen=True):
    """The rows of a table in the file, and the columns that each of them has."""

    rows: int
    columns: tuple[str, ...]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `clock`: all transaction ids in the file are lower (models/feed_eras.py).
    `secrets`: whether the file contains the digests and encrypted secrets."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    commonhold_version: str
    migration: str
    exported_at: str
    workspace: str
    workspace_id: int
    clock: int
    secrets: bool
    tables: dict[str, TableSummary]


class Footer(msgspec.Struct, frozen=True):
    """The last line: the number of rows, and the SHA-256 of all lines before it in hex."""

    rows: int
    sha256: str


class Row(NamedTuple):
    """One row of the file."""

    line: int
    table: str
    values: Sequence[Value]


class _Kind(msgspec.Struct):
    """What is read first, because a later version may have another header."""

    format: str
    format_version: int


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A row, or the footer."""

    table: str = ""
    row: dict[str, Value] = {}
    end: Footer | None = None


class Writer:
    """Writes a file: the header, the rows of each table, the footer."""

    def __init__(self, stream: BinaryIO, header: Header) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._encoder = msgspec.json.Encoder()
        self.rows = 0
        self._write(header)

    def write_row(self, table: str, columns: Sequence[str], values: Sequence[Value]) -> None:
        self._write({"table": table, "row": dict(zip(columns, values, strict=True))})
        self.rows += 1

    def finish(self) -> None:
        self._write({"end": Footer(self.rows, self._digest.hexdigest())})

    def _write(self, content: object) -> None:
        line = self._encoder.encode(content) + b"\n"
        self._digest.update(line)
        self._stream.write(line)


class Reader:
    """Reads a file. Keeps one line in memory. All methods raise BadFile."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._line = 0
        first = self._read()
        kind = _decode(1, first, msgspec.json.Decoder(_Kind))
        if kind.format != FORMAT:
            raise BadFile(1, f"the format is {kind.format!r}, not {FORMAT!r}")
        if kind.format_version != FORMAT_VERSION:
            raise BadFile(
                1,
                f"the format version is {kind.format_version}; this server reads {FORMAT_VERSION}",
            )
        self.header = _decode(1, first, msgspec.json.Decoder(Header))
        self._digest.update(first)

    def read_rows(self) -> Iterator[Row]:
        """The rows. The numbers of rows and the digest are compared at the end: do not use the rows
        before this has returned."""
        decoder = msgspec.json.Decoder(_Line)
        counts = dict.fromkeys(self.header.tables, 0)
        while True:
            text = self._read()
            line = _decode(self._line, text, decoder)
            if line.end is not None:
                return self._finish(line.end, counts)
            yield Row(self._line, line.table, self._values(line))
            counts[line.table] += 1
            self._digest.update(text)

    def _values(self, line: _Line) -> list[Value]:
        summary = self.header.tables.get(line.table)
        if summary is None:
            raise BadFile(self._line, f"the first line has no table {line.table!r}")
        if line.row.keys() != set(summary.columns):
            differing = ", ".join(sorted(line.row.keys() ^ set(summary.columns)))
            raise BadFile(
                self._line, f"{line.table} has other columns than in the first line: {differing}"
            )
        return [line.row[column] for column in summary.columns]

    def _finish(self, footer: Footer, counts: Mapping[str, int]) -> None:
        for table, summary in self.header.tables.items():
            if counts[table] != summary.rows:
                raise BadFile(
                    self._line,
                    f"the file has {counts[table]:,} rows of {table}, not {summary.rows:,}"
                    " as in the first line",
                )
        if footer.rows != sum(counts.values()) or footer.sha256 != self._digest.hexdigest():
            raise BadFile(self._line, "the file was changed: its digest differs")
        self._line += 1
        if self._read_bytes():
            raise BadFile(self._line, "the file continues after its last line")

    def _read(self) -> bytes:
        self._line += 1
        text = self._read_bytes()
        if not text.endswith(b"\n"):
            raise BadFile(self._line, "the file is truncated: it ends here")
        return text

    def _read_bytes(self) -> bytes:
        try:
            return self._stream.readline()
        except EOFError:  # of gzip
            raise BadFile(self._line, "the file is truncated: it ends here") from None
        except (OSError, zlib.error) as error:
            raise BadFile(self._line, f"cannot read the file: {error}") from error


def _decode(line: int, text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = in_json_terms(str(error))
        raise BadFile(line, f"not a line of an exported workspace: {message}") from None
