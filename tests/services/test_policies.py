"""Which compaction policy applies, who may change it, and what it would do now."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from state_admin.contract.policies import EffectivePolicy, PolicyFields
from state_admin.domain.policies import FIELDS
from state_admin.models import AuditRow, Change, Compaction, Thread
from state_admin.services import compaction_jobs, compactions, policies, summaries
from state_admin.services.compactions import preview_compaction
from state_admin.services.errors import (
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    VersionConflict,
)
from state_admin.services.policies import effective_policy
from tests import builders
from tests.builders import Person, append, conversation, make_run, make_thread, make_token, raw
from tests.services.racing import interleave, overlap, race, split


def put(person: Person, scope: Any, name: str = "", **body: Any) -> policies.PolicyView:
    return policies.put_policy(actor=person.actor, scope=scope, name=name, body=raw(body))


def set_fields(thread_id: str = "t1") -> dict[str, tuple[Any, str]]:
    """(value, source) of the fields that are not defaults."""
    found = effective_policy(Thread.objects.get(public_id=thread_id))
    policy = found.policy.to_json()
    return {name: (policy[name], said) for name, said in found.sources.items() if said != "default"}


def test_effective__workspace_agent_thread__nearest_wins_per_field(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"raw_suffix_messages": 3}))
    put(alice, "workspace", raw_suffix_messages=9, min_gain_tokens=5, autocompact_threshold=900)
    put(alice, "agent", "planner", min_gain_tokens=7, raw_suffix_messages=8)
    workspace = {"min_gain_tokens": (5, "workspace"), "autocompact_threshold": (900, "workspace")}
    assert set_fields() == {**workspace, "raw_suffix_messages": (3, "thread")}
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    assert set_fields() == {
        "autocompact_threshold": (900, "workspace"),
        "min_gain_tokens": (7, "agent"),
        "raw_suffix_messages": (3, "thread"),
    }
    builders.commit(alice.actor, "r1", run=builders.runs.RunChange(
        status="done", termination_reason={"type": "natural_end"}))  # fmt: skip
    make_run(alice.actor, "t1", "r2", agent_id="other")
    assert set_fields()["min_gain_tokens"] == (5, "workspace"), "it is the newest run's agent"


def test_effective__of_another_workspace__has_no_effect(alice: Person, mallory: Person) -> None:
    make_thread(alice.actor, "t1")
    put(mallory, "workspace", autocompact_threshold=1)
    assert set_fields() == {}
    assert policies.list_policies(alice.actor)[0].body == "{}"


def test_effective__model_of_the_agent__limits_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    windows = {"planner": (8_000, 1_000)}
    monkeypatch.setattr(summaries, "find_window", lambda _, agent: windows.get(agent, (None, None)))
    put(alice, "workspace", autocompact_threshold=100_000)
    assert set_fields()["autocompact_threshold"] == (7_000, "model")
    assert policies.read_policy(actor=alice.actor, scope="agent", name="planner").effective == (
        effective_policy(Thread.objects.get())
    )


def test_trigger__policy_of_the_workspace__applies_to_every_thread(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    put(alice, "workspace", autocompact_threshold=50)
    append(alice.actor, "t1", {"role": "user", "content": "x" * 400})
    job = Compaction.objects.get()
    assert job.trigger == "threshold"
    put(alice, "workspace", autocompact_threshold=60)
    job.refresh_from_db()
    assert '"autocompact_threshold": 50' in job.policy.replace('":50', '": 50'), "as it was asked"


def test_put__each_scope__is_recorded_and_increments_the_version(alice: Person) -> None:
    assert put(alice, "workspace", min_gain_tokens=5).version == 1
    again = put(alice, "workspace", min_gain_tokens=6)
    assert (again.version, again.updated_by, again.body) == (2, "alice", '{"min_gain_tokens": 6}')
    assert put(alice, "workspace").version == 3, "taken back; an old ETag never fits again"
    put(alice, "agent", "planner", min_gain_tokens=5)
    assert AuditRow.objects.filter(action="compaction_policy.put").count() == 4
    assert Change.objects.filter(kind="compaction_policy.put").count() == 4
    assert [view.name for view in policies.list_policies(alice.actor)] == ["", "planner"]
    put(alice, "agent", "planner")
    assert [view.name for view in policies.list_policies(alice.actor)] == [""]


def test_put__invalid_fields__are_all_reported_and_nothing_changes(alice: Person) -> None:
    with pytest.raises(Invalid) as refused:
        put(alice, "agent", "planner", min_savings_ratio=2, mode="all", nope=1)
    pointers = [error["pointer"] for error in refused.value.data["errors"]]
    assert pointers == ["/min_savings_ratio", "/mode", "/nope"]
    assert len(policies.list_policies(alice.actor)) == 1
    with pytest.raises(Invalid):
        put(alice, "agent", "", min_gain_tokens=1)


def test_put__by_editors_and_restricted_admins__is_permitted_for_threads_only(
    alice: Person, bob: Person
) -> None:
    make_thread(alice.actor, "t1")
    _, editor = make_token(alice)
    _, narrow = make_token(alice, builders.Role.ADMIN, thread_prefixes=["t"])
    for actor in (bob.actor, editor, narrow):
        for scope in ("workspace", "agent"):
            with pytest.raises(Forbidden):
                policies.put_policy(actor=actor, scope=scope, name="a", body=raw({}))  # type: ignore[arg-type]
    for actor in (editor, narrow):
        policies.put_policy(
            actor=actor, scope="thread", name="t1", body=raw({"min_gain_tokens": 1})
        )
    with pytest.raises(Forbidden):
        policies.put_policy(actor=bob.actor, scope="thread", name="t1", body=raw({}))
    assert set_fields() == {"min_gain_tokens": (1, "thread")}


def test_read__inaccessible_thread__appears_absent(alice: Person, mallory: Person) -> None:
    make_thread(alice.actor, "t1")
    with pytest.raises(NotFound):
        policies.read_policy(actor=mallory.actor, scope="thread", name="t1")
    with pytest.raises(NotFound):
        put(mallory, "thread", "t1")


def test_put__expected_version__is_checked(alice: Person) -> None:
    write = partial(policies.put_policy, actor=alice.actor, scope="workspace", body=raw({}))
    with pytest.raises(VersionConflict, match="version conflict: expected 3, actual 0"):
        write(expected_version=3)
    assert write(expected_version=0).version == 1
    with pytest.raises(VersionConflict):
        write(expected_version=0)
    assert write(expected_version=1).version == 2
    assert AuditRow.objects.filter(action="compaction_policy.put").count() == 2


@pytest.mark.django_db(transaction=True)
def test_race__writers_of_one_version__one_wins(alice: Person) -> None:
    write = partial(
        policies.put_policy, actor=alice.actor, scope="agent", name="a", body=raw({"prompt": "x"})
    )
    for expected in (0, 1):
        won, lost = split(race([partial(write, expected_version=expected)] * 6))
        assert (len(won), len(lost)) == (1, 5)
        assert all(isinstance(error, VersionConflict) for error in lost)
    assert AuditRow.objects.filter(action="compaction_policy.put").count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scope", ["workspace", "agent", "thread"])
def test_put__another_follows_at_once__returns_its_own_version(
    alice: Person, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "" if scope == "workspace" else "t1"
    make_thread(alice.actor, "t1")
    second = partial(put, alice, scope, name, prompt="second")
    with interleave(monkeypatch, policies, "read_policy", second):
        written = put(alice, scope, name, prompt="first")
    assert raw({"prompt": "first"}).text == written.body
    newest = policies.read_policy(actor=alice.actor, scope=scope, name=name)  # type: ignore[arg-type]
    assert newest.version == written.version + 1


def test_put__more_agents_than_allowed__is_refused(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "MOST_AGENTS", 2)
    for agent in ("a", "b"):
        put(alice, "agent", agent, min_gain_tokens=1)
    with pytest.raises(QuotaExceeded):
        put(alice, "agent", "c", min_gain_tokens=1)
    put(alice, "agent", "b", min_gain_tokens=2)
    put(alice, "workspace", min_gain_tokens=2)


@pytest.mark.django_db(transaction=True)
def test_put__two_agents_for_the_last_place__one_is_refused(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "MOST_AGENTS", 1)
    with pytest.raises(QuotaExceeded):
        overlap(partial(put, alice, "agent", "a", prompt="x"), partial(put, alice, "agent", "b"))


# The preview ----------------------------------------------------------------------------------


def test_preview__long_thread__reports_the_plan_and_changes_nothing(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"summary_max_tokens": 300}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    seen = preview_compaction(actor=alice.actor, thread_id="t1")
    assert seen.plan is not None
    assert seen.tokens_after is not None
    assert seen.savings_ratio is not None
    assert (seen.skip, seen.problem) == ("", "")
    assert seen.effective.sources["summary_max_tokens"] == "thread"
    assert not Compaction.objects.exists()
    job = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    assert compaction_jobs.run_compaction(job.public_id) == "done"
    job.refresh_from_db()
    assert (job.boundary_seq, job.tokens_before) == (
        seen.plan.boundary_seq,
        seen.plan.tokens_before,
    )
    assert job.tokens_after is not None
    assert job.tokens_after <= seen.tokens_after
    assert 1 - job.tokens_after / seen.plan.tokens_before >= seen.savings_ratio


def test_preview__over_the_api__has_the_same_result(alice: Person, bob: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "model", "summary_model": "gpt-7"}))
    short = bob.api("GET", "/threads/t1/compactions").json()
    assert (short["would_fold"], short["tokens_after"], short["savings_ratio"]) == (None,) * 3
    assert "fewer than 2 messages" in short["skip"]
    append(alice.actor, "t1", *conversation(6, rounds=2))
    seen = bob.api("GET", "/threads/t1/compactions").json()
    assert seen["problem"] == "provider not configured: gpt-7"
    assert seen["sources"]["summary_model"] == "thread"
    assert 0 < seen["savings_ratio"] < 1
    assert seen["would_fold"]["boundary_message_id"]


# The API --------------------------------------------------------------------------------------


def test_api__policies__can_be_stored_read_and_deleted(alice: Person) -> None:
    path = "/compaction-policies/agents/team%2Fplanner"
    made = alice.api("PUT", path, {"autocompact_threshold": 9_000, "prompt": "Only prices."})
    assert made.status_code == 200
    assert made["ETag"] == '"1"'
    body = alice.api("GET", path).json()
    assert body["agent_id"] == "team/planner"
    assert body["policy"] == {"autocompact_threshold": 9_000, "prompt": "Only prices."}
    assert body["effective"]["autocompact_threshold"] == 9_000
    assert body["sources"]["prompt"] == "agent"
    assert alice.api("PUT", path, {}, If_Match='"7"').status_code == 412
    assert alice.api("DELETE", path, If_Match='"1"').status_code == 204
    assert alice.api("GET", path).json()["policy"] == {}


def test_api__thread_policy__is_the_threads_own(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    path = "/compaction-policies/threads/t1"
    written = alice.api("PUT", path, {"min_gain_tokens": 7}, If_Match='"1"')
    assert (written["ETag"], written.json()["version"]) == ('"2"', 2)
    thread = alice.api("GET", "/threads/t1")
    assert (thread["ETag"], thread.json()["version"]) == ('"2"', 2)
    assert thread.json()["compaction_policy"] == {"min_gain_tokens": 7}
    stale = alice.api("PUT", path, {}, If_Match='"1"')
    assert (stale.status_code, stale["ETag"]) == (412, '"2"')
    assert alice.api("DELETE", path, If_Match='"1"').status_code == 412
    assert alice.api("DELETE", path, If_Match='"2"').status_code == 204
    assert alice.api("GET", path).json()["policy"] == {}


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"nope": 1}, 400, "/nope"),
        ({"autocompact_threshold": "9"}, 422, "/autocompact_threshold"),
        ({"every_hours": 0}, 422, "/every_hours"),
        ({"every_hours": 8_761}, 422, "/every_hours"),
        ({"min_savings_ratio": "0.3"}, 422, "/min_savings_ratio"),
        ({"prompt": "x" * 8_001}, 422, "/prompt"),
        ({"prompt": "nul \0"}, 422, "/prompt"),
        ({"fallback": "none"}, 422, "/fallback"),
        ({"summarizer": "gpt"}, 422, "/summarizer"),
        ([], 400, None),
    ],
)
def test_api__invalid_policy__is_located(
    alice: Person, body: Any, status: int, pointer: str | None
) -> None:
    answer = alice.api("PUT", "/compaction-policies/workspace", body)
    assert answer.status_code == status
    if pointer:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_api__unknown_summarizer__is_refused_with_the_known_ones(alice: Person) -> None:
    for path, body in (
        ("/compaction-policies/workspace", {"summarizer": "gpt"}),
        ("/threads", {"compaction_policy": {"summarizer": "gpt"}}),
    ):
        answer = alice.api("PUT" if path.startswith("/comp") else "POST", path, body)
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert "extractive" in error["message"]
        assert "model" in error["message"]


def test_api__fields__are_those_of_a_policy() -> None:
    assert PolicyFields.__struct_fields__ == EffectivePolicy.__struct_fields__ == FIELDS


@pytest.mark.parametrize("hours", [1, 8_760, None])
def test_api__every_hours__can_be_set_in_each_scope(alice: Person, hours: int | None) -> None:
    make_thread(alice.actor, "t1")
    for scope in ("workspace", "agents/a1", "threads/t1"):
        made = alice.api("PUT", f"/compaction-policies/{scope}", {"every_hours": hours})
        assert made.status_code == 200, made.content
        assert made.json()["effective"]["every_hours"] == hours
    shown = alice.api("GET", "/threads/t1").json()
    assert shown["compaction_policy"] == {"every_hours": hours}


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("every_hours", 0),
        ("every_hours", 8_761),
        ("prompt", "x" * 8_001),
        ("summarizer", "gpt"),
    ],
)
def test_api__policy_in_a_thread__is_validated_by_the_same_rules(
    alice: Person, method: str, field: str, wrong: Any
) -> None:
    make_thread(alice.actor, "t1")
    path = "/threads" if method == "POST" else "/threads/t1"
    answer = alice.api(method, path, {"compaction_policy": {field: wrong}})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [
        f"/compaction_policy/{field}"
    ]


def test_api__policy_of_a_new_thread__is_located_below_its_field(alice: Person) -> None:
    answer = alice.api("POST", "/threads", {"compaction_policy": {"mode": "x", "nope": 1}})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [
        "/compaction_policy/mode",
        "/compaction_policy/nope",
    ]
