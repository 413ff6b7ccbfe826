"""The command `commonhold`: entries from a shell, and the bridge of ACP. The environment variables
COMMONHOLD_URL and COMMONHOLD_TOKEN are the address of the server and an API token."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from commonhold import documents
from commonhold.acp import run as run_bridge
from commonhold.client import AsyncCommonhold, Commonhold
from commonhold.feed import Filters
from commonhold.importing import import_entries
from commonhold.problems import CommonholdError, VersionConflict
from commonhold.version import __version__

_RECALL = (
    "tokens of a loaded session for the next prompt, if the agent cannot load sessions; 0: none"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0 on success, and 1 for an error, with its message on stderr. Exits
    with 2 for invalid arguments."""
    options = _parser().parse_args(arguments)
    # JSON is UTF-8, also in terminals with another encoding.
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    try:
        # Decimals, so that numbers keep all of their digits.
        with Commonhold.from_env(decimals=True) as state:
            code: int | None = options.verb(state, options)
            return code or 0
    except KeyError as missing:
        return _complain(str(missing.args[0]))
    except UnicodeEncodeError:
        return _complain("an argument or the value is not valid UTF-8")
    except (CommonholdError, ValueError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, the interpreter would flush stdout at exit
        # and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def get(state: Commonhold, options: argparse.Namespace) -> None:
    entry = state.get(options.namespace, options.key, at_version=options.version)
    _show(entry.document if options.entry else entry.value, indent=2)


def put(state: Commonhold, options: argparse.Namespace) -> int | None:
    try:
        text = sys.stdin.read() if options.value == "-" else options.value
        value = _value(text)
    except ValueError as error:
        return _complain(f"the value is not JSON: {error}")
    entry = state.put(
        options.namespace, options.key, value, if_version=options.if_version, reason=options.reason
    )
    _show({"version": entry.version})
    return None


def edit(state: Commonhold, options: argparse.Namespace) -> int | None:
    entry = state.get(options.namespace, options.key)
    before = documents.dump(entry.value, indent=2) + "\n"
    handle, name = tempfile.mkstemp(prefix="commonhold-", suffix=".json")
    draft = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(before)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*(shlex.split(editor) or ["vi"]), name], check=False)
        after = draft.read_bytes()
    except (OSError, ValueError) as error:
        draft.unlink(missing_ok=True)
        return _complain(f"nothing was changed; {editor}: {error}")
    if after == before.encode():
        draft.unlink()
        return _complain("nothing was changed")
    if done.returncode:
        return _complain(
            f"{editor} ended with {done.returncode}; nothing was written; your draft: {draft}"
        )
    try:
        value = _value(after)
        written = state.put(
            options.namespace,
            options.key,
            value,
            if_version=entry.version if entry.exists else 0,
            merge=True,
            reason=options.reason,
        )
    except VersionConflict as conflict:
        places = ", ".join(clash["pointer"] or "/" for clash in conflict.clashes)
        return _complain(f"{conflict.detail}; both changed: {places}; your draft: {draft}")
    except (CommonholdError, ValueError) as error:
        return _complain(f"{error}; your draft: {draft}")
    draft.unlink()
    _show({"version": written.version})
    return None


def watch(state: Commonhold, options: argparse.Namespace) -> None:
    given = {name: value for name, value in vars(options).items() if value is not None}
    filters = cast(Filters, {n: v for n, v in given.items() if n in Filters.__annotations__})
    with state.watch(cursor=options.cursor, **filters) as changes:
        for change in changes:
            _show(change.document)


def diff(state: Commonhold, options: argparse.Namespace) -> None:
    found = state.diff(options.namespace, options.key, options.old, options.new)
    if options.patch:
        return _show(found.patch, indent=2)
    for row in found.rows:
        before, after = documents.dump(row["before"]), documents.dump(row["after"])
        _line(f"{row['kind']:8} {row['pointer'] or '/'}  {before} -> {after}")
    return None


def export(state: Commonhold, options: argparse.Namespace) -> None:
    listed = Commonhold.list(options.namespace, prefix=options.prefix, values=True)
    for entry in state.every(listed):
        _show(entry.document)


def import_(state: Commonhold, options: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        file: Iterable[str] = sys.stdin
        if options.file != "-":
            try:
                file = stack.enter_context(open(options.file, encoding="utf-8"))
            except OSError as error:
                return _complain(f"{options.file}: {error.strerror}")
        counts = import_entries(
            state,
            file,
            namespace=options.namespace,
            replace=options.replace,
            reason=options.reason,
            complain=_complain,
        )
    _show(vars(counts))
    return 1 if counts.refused else 0


def acp(_: Commonhold, options: argparse.Namespace) -> int:
    async def serve() -> int:
        async with AsyncCommonhold.from_env() as state:
            return await run_bridge(state, options.command, recall_tokens=options.recall)

    try:
        return asyncio.run(serve())
    except OSError as error:
        return _complain(f"{options.command[0]}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="commonhold", description=__doc__)
    parser.add_argument("--version", action="version", version=f"commonhold {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(run: Any, about: str, *positional: str) -> argparse.ArgumentParser:
        subparser = verbs.add_parser(run.__name__.rstrip("_"), help=about, description=about)
        subparser.set_defaults(verb=run)
        for name in positional:
            subparser.add_argument(name)
        return subparser

    one = verb(get, "print a value", "namespace", "key")
    one.add_argument("--version", type=int, help="as of that version")
    one.add_argument("--entry", action="store_true", help="with version, times, tags")

    one = verb(put, "write a value", "namespace", "key")
    one.add_argument("value", help="JSON, or - to read it from stdin")
    one.add_argument("--if-version", type=int, help="only over that version; 0: only if missing")
    one.add_argument("--reason", default="", help="why; kept in the history")

    one = verb(
        edit, "edit a value in $VISUAL or $EDITOR and compare-and-set it", "namespace", "key"
    )
    one.add_argument("--reason", default="", help="why; kept in the history")

    one = verb(watch, "print changes as they happen, a line each, until interrupted")
    for name in Filters.__annotations__:
        one.add_argument(f"--{name}")
    one.add_argument("--cursor", default="", help="continue after that change")

    one = verb(diff, "print what changed between two versions", "namespace", "key")
    one.add_argument("old", type=int)
    one.add_argument("new", type=int)
    one.add_argument("--patch", action="store_true", help="as JSON Patch")

    one = verb(export, "print every entry of a namespace, a line each", "namespace")
    one.add_argument("--prefix", help="only keys with this prefix")

    one = verb(import_, "store the lines of an export as entries; those that exist are left alone")
    one.add_argument("file", help="the exported lines, or - to read them from stdin")
    one.add_argument("--namespace", help="store them in this namespace, not in that of each line")
    one.add_argument("--replace", action="store_true", help="also replace entries that exist")
    one.add_argument("--reason", default="import", help="why; kept in the history")

    one = verb(acp, "keep the sessions of an ACP agent in threads: acp -- AGENT [ARGUMENT …]")
    one.add_argument("--recall", type=int, default=8000, metavar="TOKENS", help=_RECALL)
    one.add_argument("command", nargs="+", metavar="AGENT")
    return parser


def _value(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is not JSON. Encoding it refuses NaN and
    Infinity, which Python's parser accepts."""
    try:
        value = documents.load(text, decimals=True)
        documents.encode(value)
    except RecursionError as error:
        raise ValueError("too deep") from error
    return value


def _show(value: Any, *, indent: int = 0) -> None:
    _line(documents.dump(value, indent=indent))


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(text: str) -> int:
    sys.stderr.write(f"commonhold: {text}\n")
    return 1
