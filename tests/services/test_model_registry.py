"""Summaries by the models of the config registry: how they are found, and the message if something
is missing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from state_admin.models import Compaction, Thread
from state_admin.services import compaction_jobs, compactions, config, policies, summaries
from state_admin.services.policies import effective_policy
from state_admin.summarizers import SummaryFailed
from tests import builders
from tests.builders import Person, append, conversation, make_record, make_run, make_thread, raw
from tests.modelling import anthropic_response, completion, replies
from tests.receiving import receiving

KEY = "sk-registry-1234567890"


@pytest.fixture(autouse=True)
def local_providers(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True


def provider(person: Person, name: str = "acme", **fields: Any) -> None:
    make_record(person.actor, "providers", name, {"adapter": "openai", "api_key": KEY, **fields})


def model(person: Person, name: str = "small", **fields: Any) -> None:
    spec = {"provider_id": "acme", "upstream_model": "small-1", **fields}
    make_record(person.actor, "models", name, spec)


def problem(person: Person, name: str = "small") -> str:
    with pytest.raises(SummaryFailed) as failed:
        summaries.find_model(person.workspace.pk, name)
    assert not failed.value.retry
    assert KEY not in str(failed.value)
    return str(failed.value)


def test_find_model__configured__has_url_key_timeout_and_prices(alice: Person) -> None:
    provider(alice, adapter="Gemini", timeout_secs=7)
    model(alice, context_window=9_000, max_output_tokens=80, input_token_price_per_million_usd=0.1)
    found, which = summaries.find_model(alice.workspace.pk, "small")
    assert (found.id, found.adapter) == ("acme", "openai_compatible")
    assert found.base_url == "https://generativelanguage.googleapis.com/v1beta/openai"
    assert (found.api_key, found.timeout.total, found.timeout.connect) == (KEY, 7.0, 5.0)
    assert (which.upstream_model, which.context_window, which.max_output_tokens) == (
        "small-1",
        9_000,
        80,
    )
    assert (str(which.input_price), which.output_price) == ("0.1", None)


def test_find_model__provider_without_timeout__uses_the_documented_default(
    alice: Person,
) -> None:
    provider(alice, base_url="http://gpu:8000/v1", api_key=None, adapter="vllm")
    model(alice)
    found, _ = summaries.find_model(alice.workspace.pk, "small")
    assert (found.base_url, found.api_key) == ("http://gpu:8000/v1", "")
    assert found.timeout.total == found.timeout.read == 300.0


def test_find_model__missing_record__is_reported(alice: Person, mallory: Person) -> None:
    assert problem(alice) == "provider not configured: small"
    provider(mallory)
    model(mallory)
    assert problem(alice) == "provider not configured: small", "it is another workspace's"
    provider(alice, adapter="smoke-signals")
    model(alice)
    assert problem(alice) == (
        "provider acme: unknown adapter smoke-signals; must be one of anthropic, deepseek, gemini, "
        "ollama, openai, openai_compatible, vllm"
    )
    provider(alice, adapter="openai_compatible")
    assert problem(alice) == "provider acme: base_url is not set"
    config.delete_record(actor=alice.actor, kind=config.Kind.PROVIDERS, identity="acme", force=True)
    assert problem(alice) == "provider not configured: acme"


def test_find_model__undecryptable_key__is_reported(alice: Person, settings: Any) -> None:
    provider(alice)
    model(alice)
    settings.CONFIG_SECRET_KEYS, settings.SECRET_KEY = ["k" * 50], "another" * 9
    settings.SECRET_KEY_FALLBACKS = []
    assert problem(alice) == (
        "provider acme: the secret at config.providers/acme /api_key cannot be decrypted"
    )


def test_job__nothing_configured__fails_with_a_message(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "model"}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    asked = compactions.request_compaction(actor=alice.actor, thread_id="t1")
    assert compaction_jobs.run_compaction(asked.public_id) == "failed"
    asked.refresh_from_db()
    assert asked.detail == "provider not configured: the policy sets no model"
    seen = compactions.preview_compaction(actor=alice.actor, thread_id="t1")
    assert seen.problem == asked.detail


@pytest.mark.parametrize(
    ("adapter", "path", "answer"),
    [("deepseek", "/chat/completions", completion("All booked.")),
     ("anthropic", "/v1/messages", anthropic_response("All booked."))],
)  # fmt: skip
def test_job__model_of_the_registry__writes_the_summary(
    alice: Person, adapter: str, path: str, answer: Any
) -> None:
    policy = {"summarizer": "model", "summary_model": "small"}
    make_thread(alice.actor, "t1", policy=raw(policy))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    with receiving(replies(answer)) as receiver:
        provider(alice, adapter=adapter, base_url=f"http://127.0.0.1:{receiver.port}")
        model(alice)
        assert compactions.preview_compaction(actor=alice.actor, thread_id="t1").problem == ""
        asked = compactions.request_compaction(actor=alice.actor, thread_id="t1")
        assert compaction_jobs.run_compaction(asked.public_id) == "done"
    assert receiver.received[0].path == path
    assert KEY in " ".join(receiver.received[0].headers.values())
    done = Compaction.objects.get()
    assert (done.summary_text, done.provider, done.model) == ("All booked.", "acme", "small-1")


@pytest.mark.parametrize(
    ("prices", "warned"),
    [({}, True), ({"input": 1.5}, True), ({"input": 1.5, "output": 6}, False),
     ({"input": 0, "output": 0}, False)],
)  # fmt: skip
def test_preview__model_without_a_price__warns_that_no_cap_applies(
    alice: Person, settings: Any, prices: dict[str, float], warned: bool
) -> None:
    settings.SUMMARY_DAILY_USD = Decimal(7)
    make_thread(alice.actor, "t1", policy=raw({"summarizer": "model", "summary_model": "small"}))
    append(alice.actor, "t1", *conversation(6, rounds=2))
    provider(alice)
    model(alice, **{f"{side}_token_price_per_million_usd": usd for side, usd in prices.items()})
    seen = alice.api("GET", "/threads/t1/compactions").json()
    assert seen["problem"] is None
    assert seen["warning"] == (
        "no price is set: the cost of small-1 counts as $0, so the daily budget of $7.00 cannot be enforced"
        if warned
        else None
    )


def test_preview__without_a_model__has_no_warning(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(6, rounds=2))
    assert alice.api("GET", "/threads/t1/compactions").json()["warning"] is None


# The window of the agent's model --------------------------------------------------------------


def test_policy__agents_model_has_a_window__is_limited_by_it(
    alice: Person, mallory: Person
) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": 100_000}))
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    for person, window in ((alice, 8_000), (mallory, 50)):
        provider(person)
        model(person, context_window=window, max_output_tokens=1_000)
    make_record(mallory.actor, "agents", "planner", {"model_id": "small"})
    thread = Thread.objects.get()
    assert effective_policy(thread).sources["autocompact_threshold"] == "thread"
    make_record(alice.actor, "agents", "planner", {"model_id": "small"})
    found = effective_policy(thread)
    assert found.policy.autocompact_threshold == 7_000
    assert found.policy.max_output_tokens == 1_000
    assert found.sources["autocompact_threshold"] == found.sources["max_context_tokens"] == "model"
    seen = alice.api("GET", "/threads/t1/compactions").json()
    assert seen["policy"]["autocompact_threshold"] == 7_000
    assert seen["sources"]["autocompact_threshold"] == "model"


def test_policy__model_leaves_no_room__removes_the_threshold(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": 10}))
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    provider(alice)
    model(alice, context_window=500)  # all of it is for the response
    make_record(alice.actor, "agents", "planner", {"model_id": "small"})
    append(alice.actor, "t1", {"role": "user", "content": "x" * 900})
    assert effective_policy(Thread.objects.get()).policy.autocompact_threshold is None
    assert not Compaction.objects.exists()


def test_trigger__window_of_the_model__is_used(alice: Person) -> None:
    make_thread(alice.actor, "t1", policy=raw({"autocompact_threshold": 100_000}))
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    provider(alice)
    model(alice, context_window=1_000, max_output_tokens=900)
    make_record(alice.actor, "agents", "planner", {"model_id": "small"})
    builders.commit(alice.actor, "r1", messages=[{"role": "user", "content": "x" * 380}])
    assert not Compaction.objects.exists(), "99 tokens"
    builders.commit(alice.actor, "r1", messages=[{"role": "user", "content": ""}])
    assert Compaction.objects.get().trigger == "threshold"


def test_append__policy_without_threshold__reads_no_model(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1", agent_id="planner")
    monkeypatch.setattr(summaries, "find_window", lambda *_: pytest.fail("asked for nothing"))
    append(alice.actor, "t1", {"role": "user", "content": "hi"})
    assert policies.autocompact_policy(Thread.objects.get()) is None
