"""The command `commonhold` against a real server, as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import commonhold
import pytest
from commonhold import Commonhold

from project.env import BASE_DIR
from tests.builders import Person
from tests.patience import PATIENCE
from tests.project.running import Running, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def env(web: Running, alice: Person) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(BASE_DIR / "clients" / "python" / "src"),
        "COMMONHOLD_URL": f"http://127.0.0.1:{web.port}",
        "COMMONHOLD_TOKEN": alice.token,
    }


@pytest.fixture
def command(env: dict[str, str], state: Commonhold) -> Command:
    state.namespaces.register("notes")

    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "commonhold", *arguments],
            capture_output=True,
            text=True,
            input=stdin,
            env={**env, **more},
            timeout=PATIENCE,
            check=False,
        )

    return run


def test_version__printed__is_that_of_the_package(command: Command) -> None:
    done = command("--version", COMMONHOLD_URL="")
    assert (done.returncode, done.stdout) == (0, f"commonhold {commonhold.__version__}\n")


def test_put_get_diff_export__values__are_passed_unchanged(command: Command) -> None:
    assert command("put", "notes", "a/b", '{"n": 1.10, "big": 1' + "0" * 30 + "}").returncode == 0
    shown = command("get", "notes", "a/b")
    assert '"n": 1.10' in shown.stdout
    assert "1" + "0" * 30 in shown.stdout
    put = command("put", "notes", "a/b", "-", "--if-version", "1", stdin='{"n": 2}')
    assert json.loads(put.stdout) == {"version": 2}
    assert json.loads(command("get", "notes", "a/b", "--version", "1").stdout)["n"] == 1.1
    assert json.loads(command("get", "notes", "a/b", "--entry").stdout)["version"] == 2
    assert "/n  1.10 -> 2" in command("diff", "notes", "a/b", "1", "2").stdout
    (line,) = command("export", "notes").stdout.splitlines()
    assert json.loads(line)["value"] == {"n": 2}


def test_import__of_an_export__stores_what_does_not_exist_exactly(
    command: Command, state: Commonhold, tmp_path: Path
) -> None:
    state.namespaces.register("copy", schema={"properties": {"n": {"type": "number"}}})
    state.put("notes", "a", {"n": 1}, tags=["x"], pinned=True, ttl_seconds=3600)
    command("put", "notes", "b", '{"n": 1.10}')
    state.put("notes", "c", {"n": "text"})
    file = tmp_path / "entries.ndjson"
    file.write_text(command("export", "notes").stdout, encoding="utf-8")

    done = command("import", str(file), "--namespace", "copy")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"stored": 2, "existing": 0, "expired": 0, "refused": 1}
    assert done.stderr.startswith("commonhold: line 3: copy/c: ")
    assert "/n" in done.stderr
    copy, original = state.get("copy", "a"), state.get("notes", "a")
    assert (copy.value, copy.tags, copy.pinned) == ({"n": 1}, ["x"], True)
    assert copy.expires_at is not None
    assert original.expires_at is not None
    assert abs(copy.expires_at - original.expires_at).total_seconds() < 60
    assert '"n": 1.10' in command("get", "copy", "b").stdout

    # The same again replaces nothing, so that an interrupted import can be repeated.
    command("put", "copy", "b", '{"n": 5}')
    again = command("import", "-", "--namespace", "copy", stdin=file.read_text("utf-8"))
    assert json.loads(again.stdout)["existing"] == 2
    assert state.get("copy", "b").value == {"n": 5}
    command("import", str(file), "--namespace", "copy", "--replace", "--reason", "back")
    assert state.get("copy", "b").value == {"n": 1.1}
    assert state.history("copy", "b").items[0].reason == "back"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not an entry"),
        ('{"namespace": "notes", "key": "k"}', "line 2 is not an entry"),
        ('{"namespace": "notes", "key": "k\\u0000", "value": 1}', "line 2: "),
        (
            '{"namespace": "notes", "key": "k", "value": 1, "expires_at": "soon"}',
            "line 2: expires_at",
        ),
    ],
)
def test_import__of_another_line__names_it_and_stores_nothing_of_its_batch(
    command: Command, state: Commonhold, line: str, told: str
) -> None:
    good = '{"namespace": "notes", "key": "good", "value": 1}'
    done = command("import", "-", stdin=f"{good}\n{line}\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert not state.get("notes", "good").exists


def test_import__of_an_expired_line__leaves_it_out(command: Command) -> None:
    line = '{"namespace": "notes", "key": "k", "value": 1, "expires_at": "2020-01-01T00:00:00Z"}'
    done = command("import", "-", stdin=line)
    assert (done.returncode, json.loads(done.stdout)["expired"]) == (0, 1)


def test_refusals__of_the_server__are_printed_to_stderr_with_exit_code_1(command: Command) -> None:
    missing = command("get", "nobody", "k")
    assert missing.returncode == 1
    assert missing.stderr.startswith("commonhold: profile key not registered: nobody")
    command("put", "notes", "k", "1")
    stale = command("put", "notes", "k", "2", "--if-version", "0")
    assert (stale.returncode, stale.stdout) == (1, "")
    assert "version conflict: expected 0, actual 1" in stale.stderr
    assert "the value is not JSON" in command("put", "notes", "k", "{").stderr
    assert "set COMMONHOLD_TOKEN" in command("get", "n", "k", COMMONHOLD_TOKEN="").stderr
    assert command("nonsense").returncode == 2


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("NaN", "not JSON"),
        ('"\\ud800"', "not JSON: /: the string contains a lone surrogate"),
        ("[" * 100_000 + "]" * 100_000, "not JSON: too deep"),
    ],
)
def test_put__invalid_json__is_an_error_message_without_traceback(
    command: Command, value: str, told: str
) -> None:
    refused = command("put", "notes", "k", "-", stdin=value)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("commonhold: the value is")
    assert told in refused.stderr


def test_arguments_and_stdin__not_utf8__are_an_error_message(
    env: dict[str, str], command: Command
) -> None:
    for arguments, stdin in (([b"notes", b"\xff", b"1"], b""), ([b"notes", b"k", b"-"], b"\xff")):
        refused = subprocess.run(
            [sys.executable, "-m", "commonhold", "put", *arguments],
            capture_output=True,
            input=stdin,
            env=env,
            timeout=PATIENCE,
            check=False,
        )
        assert refused.returncode == 1
        assert refused.stderr.startswith(b"commonhold: ")


def test_output__any_terminal_encoding__is_utf8(
    env: dict[str, str], command: Command, state: Commonhold
) -> None:
    state.put("notes", "k", "ü😀")
    shown = subprocess.run(
        [sys.executable, "-m", "commonhold", "get", "notes", "k"],
        capture_output=True,
        env={**env, "PYTHONIOENCODING": "ascii"},
        timeout=PATIENCE,
        check=True,
    )
    assert json.loads(shown.stdout.decode()) == "ü😀"


def test_address__invalid__is_an_error_message(command: Command) -> None:
    for url in ("nonsense", "http://x:y"):
        refused = command("get", "notes", "k", COMMONHOLD_URL=url)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"commonhold: not an address: {url!r}")


def edits(tmp_path: Path, source: str) -> str:
    """An editor that runs a program on the file's JSON, named `it`."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import json, os, sys, urllib.request\n"
        "it = json.load(open(sys.argv[1]))\n"
        f"{source}\n"
        "json.dump(it, open(sys.argv[1], 'w'))\n"
    )
    return f"{sys.executable} {script}"


def test_edit__in_the_editor__is_stored(
    command: Command, state: Commonhold, tmp_path: Path
) -> None:
    state.put("notes", "k", {"a": 1, "b": 1})
    done = command("edit", "notes", "k", EDITOR=edits(tmp_path, "it['a'] = 2"), VISUAL="")
    assert done.returncode == 0, done.stderr
    assert state.get("notes", "k").value == {"a": 2, "b": 1}
    unchanged = command("edit", "notes", "k", EDITOR="true", VISUAL="")
    assert (unchanged.returncode, state.get("notes", "k").version) == (1, 2)


@pytest.mark.parametrize("editor", ["no-such-editor", "'"])
def test_edit__no_editor__is_an_error_message(command: Command, editor: str) -> None:
    done = command("edit", "notes", "k", EDITOR=editor, VISUAL="")
    assert done.returncode == 1
    assert done.stderr.startswith(f"commonhold: nothing was changed; {editor}: ")


def test_edit__editor_fails__keeps_the_text(
    command: Command, state: Commonhold, tmp_path: Path
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; open(sys.argv[1], 'w').write('[1]'); sys.exit(3)")
    done = command("edit", "notes", "k", EDITOR=f"{sys.executable} {script}", VISUAL="")
    assert done.returncode == 1
    assert "ended with 3; nothing was written" in done.stderr
    draft = Path(done.stderr.strip().rpartition("your draft: ")[2])
    assert draft.read_text() == "[1]"
    draft.unlink()
    assert not state.get("notes", "k").exists


@pytest.mark.parametrize(("theirs", "lands"), [("b", True), ("a", False)])
def test_edit__concurrent_change__merges_or_keeps_the_draft(
    command: Command, state: Commonhold, tmp_path: Path, theirs: str, lands: bool
) -> None:
    state.put("notes", "k", {"a": 1, "b": 1})
    meanwhile = f"""
it["a"] = 2
urllib.request.urlopen(urllib.request.Request(
    os.environ["COMMONHOLD_URL"] + "/api/v1/state/notes/k", method="PATCH",
    data=b'{{"{theirs}": 9}}',
    headers={{"Authorization": "Bearer " + os.environ["COMMONHOLD_TOKEN"],
             "Content-Type": "application/merge-patch+json"}}))
"""
    done = command("edit", "notes", "k", EDITOR=edits(tmp_path, meanwhile), VISUAL="")
    value = state.get("notes", "k").value
    if lands:
        assert (done.returncode, value) == (0, {"a": 2, "b": 9})
    else:
        assert (done.returncode, value) == (1, {"a": 9, "b": 1})
        draft = Path(done.stderr.strip().rpartition("your draft: ")[2])
        assert "both changed: /a" in done.stderr
        assert json.loads(draft.read_text()) == {"a": 2, "b": 1}
        draft.unlink()


def test_watch__running__prints_changes_until_it_is_stopped(
    command: Command, env: dict[str, str], state: Commonhold, tmp_path: Path
) -> None:
    printed = tmp_path / "printed"
    arguments = [sys.executable, "-m", "commonhold", "watch", "--namespace", "notes"]
    with printed.open("w") as out:
        watching = subprocess.Popen(arguments, env=env, stdout=out, stderr=subprocess.STDOUT)

    def seen() -> bool:
        assert watching.poll() is None, printed.read_text()
        state.put("notes", "k", 1)
        return '"kind":"entry.put"' in printed.read_text()

    try:
        wait_for(seen, "a change is printed")
    finally:
        watching.kill()
        watching.wait()
