"""manage.py import_transcripts: real conversations become threads."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from state_admin.domain import diffs, values
from state_admin.domain.access import Actor
from state_admin.domain.patches import json_patch
from state_admin.models import Message, Revision, Run, RunStatus, Thread
from state_admin.services import snapshots, transcripts
from state_admin.services.actors import system_actor
from state_admin.services.errors import Conflict
from state_admin.services.workspaces import ensure_workspace
from tests.builders import conversation

pytestmark = pytest.mark.django_db


def write(path: Path, *episodes: tuple[str, list[Any]]) -> Path:
    file = path / "chats.jsonl"
    lines = [json.dumps({"episode": name, "messages": log}) for name, log in episodes]
    file.write_text("\n".join(lines) + "\n")
    return file


def run(file: Path) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import_transcripts", file, workspace="tr", stdout=out, stderr=err)
    finally:
        err.seek(0)
    return out.getvalue(), err.getvalue()


def test_import__conversation__is_stored_byte_for_byte(tmp_path: Path) -> None:
    log = conversation(3, rounds=2)
    log[1]["content"] = "Zoë said: 1.10 🙂"
    out, _ = run(write(tmp_path, ("one", log)))
    assert f"threads: 1, messages: {len(log)} ({len(log)} new)" in out
    assert out.startswith("Imported into the workspace tr, ")
    bodies = Message.objects.in_order().values_list("body", flat=True)
    assert list(bodies) == [json.dumps(message) for message in log]


def test_import__each_turn__is_a_finished_run_with_a_commit_per_step(tmp_path: Path) -> None:
    run(write(tmp_path, ("one", conversation(3, rounds=2))))
    runs = Run.objects.order_by("id")
    assert [r.public_id for r in runs] == ["one/1", "one/2", "one/3"]
    assert {r.status for r in runs} == {RunStatus.DONE}
    # input, two rounds of calls and results, answer
    assert [r.last_revision - r.start_revision for r in runs] == [6, 6, 6]
    thread = Thread.objects.get()
    assert thread.revision == runs[2].last_revision
    assert thread.active_run is None


def test_import__tool_calls__are_running_until_their_result(tmp_path: Path) -> None:
    run(write(tmp_path, ("one", conversation(1, rounds=1))))
    workspace, _ = ensure_workspace("tr")
    actor = system_actor(workspace.pk, "test")

    def status(revision: int) -> str:
        state = snapshots.read_snapshot(actor=actor, thread_id="one", revision=revision)
        calls = values.load(state.extensions[transcripts.TOOL_CALLS])
        return str(calls["c0-0"]["status"])

    assert (status(3), status(4)) == ("running", "succeeded")


def calls_after(log: list[Any]) -> dict[str, str]:
    """The tool calls after the first `len(log)` messages of a conversation: those of the last
    message that called tools."""
    calls: dict[str, str] = {}
    for message in log:
        if message.get("tool_calls"):
            calls = {call["id"]: "running" for call in message["tool_calls"]}
        elif message["role"] == "tool":
            calls[message["tool_call_id"]] = "succeeded"
    return calls


def check_every_revision(actor: Actor, episode: str, log: list[Any]) -> int:
    """Compare the state at each revision with the conversation; returns the number of revisions."""
    thread = Thread.objects.get(public_id=episode)
    rows = list(Revision.objects.filter(thread=thread).select_related("run").order_by("number"))
    assert [row.number for row in rows] == list(range(1, thread.revision + 1))
    assert rows[-1].message_count == len(log)
    before: Any = {}
    for row in rows:
        assert row.run is not None
        now = snapshots.read_snapshot(actor=actor, thread_id=episode, revision=row.number).parsed()
        life = now[snapshots.LIFECYCLE]
        assert life["run_id"] == row.run.public_id
        assert life["status"] == ("done" if row.kind == "end" else "running")
        assert life["step_count"] == row.number - row.run.start_revision
        calls = now.get(transcripts.TOOL_CALLS, {})
        found = {name: call["status"] for name, call in calls.items()}
        # A run starts without calls: earlier ones belong to a run that has ended.
        said = rows[row.run.start_revision - 1].message_count
        assert found == calls_after(log[said : row.message_count]), f"{episode} at {row.number}"
        patch = diffs.json_patch(before, now)
        assert values.same(json_patch(before, patch), now)
        before = now
    return len(rows)


def test_import__every_revision__matches_the_conversation(tmp_path: Path) -> None:
    logs = {"one": conversation(5, rounds=3), "two": conversation(1, rounds=0)}
    run(write(tmp_path, *logs.items()))
    workspace, _ = ensure_workspace("tr")
    actor = system_actor(workspace.pk, "test")
    counts = [check_every_revision(actor, episode, log) for episode, log in logs.items()]
    # A start, the question, rounds of calls and results, and the answer, for each turn.
    assert counts == [5 * 9, 3]


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.skipif("TRANSCRIPTS" not in os.environ, reason="TRANSCRIPTS=FILE names recorded chats")
def test_import__recorded_conversations__match_at_every_revision() -> None:
    file = Path(os.environ["TRANSCRIPTS"])
    logs = {}
    for line in file.read_bytes().splitlines():
        episode, raws = transcripts.read_line(line)
        logs[episode] = raws
    assert logs, f"{file} is empty"
    out, _ = run(file)
    count = sum(map(len, logs.values()))
    assert f"threads: {len(logs)}, messages: {count} ({count} new)" in out
    workspace, _ = ensure_workspace("tr")
    actor = system_actor(workspace.pk, "test")
    for episode, raws in logs.items():
        thread = Message.objects.filter(thread__public_id=episode).in_order()
        assert list(thread.values_list("body", flat=True)) == [raw.text for raw in raws]
        assert check_every_revision(actor, episode, [raw.value for raw in raws]) > 0
    again, _ = run(file)
    assert "(0 new)" in again


def test_import__again__changes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, ("one", conversation(2)))
    run(file)
    revision = Thread.objects.get().revision
    out, _ = run(file)
    assert "(0 new)" in out
    assert Thread.objects.get().revision == revision


def test_import__interrupted__continues_where_it_stopped(tmp_path: Path) -> None:
    log = conversation(3)
    whole = write(tmp_path, ("one", log))
    _, raws = transcripts.read_line(whole.read_bytes().splitlines()[0])
    workspace, _ = ensure_workspace("tr")
    actor = system_actor(workspace.pk, "test")
    transcripts.import_transcript(actor=actor, episode="one", log=raws[:5])
    out, _ = run(whole)
    assert f"({len(log) - 5} new)" in out
    assert Thread.objects.get().message_count == len(log)


def test_import__other_conversation_under_the_same_name__is_refused(tmp_path: Path) -> None:
    run(write(tmp_path, ("one", conversation(1))))
    other = conversation(1)
    other[-1]["content"] = "Something else."
    _, raws = transcripts.read_line(write(tmp_path, ("one", other)).read_bytes().splitlines()[0])
    workspace, _ = ensure_workspace("tr")
    with pytest.raises(Conflict, match="contains a different conversation"):
        transcripts.import_transcript(
            actor=system_actor(workspace.pk, "test"), episode="one", log=raws
        )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a JSON object"),
        ("{}", "line 2: episode must be a string"),
        ('{"episode": "x"}', "line 2: messages must be a list"),
        ('{"episode": "x", "messages": []}', "line 2: an episode must have messages"),
        ('{"episode": "x", "messages": [{"role": "wizard"}]}', "/messages/0/role"),
        ('{"episode": "x", "messages": [{"role": "tool", "content": ""}]}', "tool_call_id"),
        ('{"episode": "a\\u0000", "messages": [{"role": "user", "content": ""}]}', "line 2"),
    ],
)
def test_import__invalid_line__is_reported_and_the_others_are_imported(
    tmp_path: Path, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, ("one", conversation(1)), ("two", conversation(1)))
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{line}\n{second}\n")
    err = io.StringIO()
    with pytest.raises(CommandError, match="1 of 3 lines"):
        call_command("import_transcripts", file, workspace="tr", stdout=io.StringIO(), stderr=err)
    _, reported = err.getvalue().splitlines()  # after that of the new workspace
    assert words in reported
    assert set(Thread.objects.values_list("public_id", flat=True)) == {"one", "two"}


def test_import__missing_file__is_one_sentence() -> None:
    with pytest.raises(CommandError, match="cannot read"):
        call_command("import_transcripts", "/nonexistent/x.jsonl")
