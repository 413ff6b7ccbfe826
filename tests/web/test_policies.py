"""The pages of compaction policies: what is set, what applies, changing it, and the preview."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import AuditRow, CompactionPolicy
from state_admin.models.presence import Presence
from state_admin.services import policies, policy_previews
from tests.builders import (
    Person,
    append,
    commit,
    conversation,
    make_person,
    make_run,
    make_state_key,
    make_thread,
    raw,
)
from tests.web.stories import HOSTILE
from tests.web.test_threads import page

AGENT = "/policy?scope=agent&name=planner"


def say(person: Person, scope: Any, name: str = "", **body: Any) -> None:
    policies.put_policy(actor=person.actor, scope=scope, name=name, body=raw(body))


def test_policies__none__shows_the_workspace_and_how_to_begin(admin: Client) -> None:
    shown = page(admin, "/policies")
    assert "none: defaults apply" in shown
    assert 'href="/policies/+new"' in shown
    assert re.search(
        r'method="get" action="/policy">\s*<input type="hidden" name="scope" value="agent">',
        page(admin, "/policies/+new"),
    )


def test_policies__set__are_listed_with_their_fields(viewer: Client, alice: Person) -> None:
    say(alice, "workspace", autocompact_threshold=900)
    say(alice, "agent", HOSTILE[0], prompt="secret recipe", fallback=None)
    shown = page(viewer, "/policies")
    assert "Compact automatically at: 900 tokens" in shown
    assert "Summarizer if the model is unavailable: none" in shown
    assert HOSTILE[0] not in shown
    assert "New agent policy" not in shown, "a viewer changes nothing"


def test_policy__of_an_agent__shows_effective_values_and_their_sources(
    admin: Client, alice: Person
) -> None:
    say(alice, "workspace", min_gain_tokens=77)
    say(alice, "agent", "planner", autocompact_threshold=None, prompt="Only prices.")
    shown = page(admin, AGENT)
    assert "Compaction policy of agent planner" in shown
    assert '77 tokens<div class="muted">from the workspace</div>' in shown
    assert 'none<div class="muted">set here; else none (default)</div>' in shown
    assert 'name="autocompact_threshold" value="none"' in shown
    assert "Only prices.</textarea>" in shown


def test_policy__values_of_the_api__have_names_and_are_sent_as_before(
    admin: Client, alice: Person
) -> None:
    say(alice, "workspace", mode="compact_to_safe_frontier")
    assert "Boundary mode: keep a minimum<" in page(admin, "/policies")
    shown = page(admin, AGENT)
    options = re.findall(r'<option value="([^"]+)"[^>]*>([^<]+)<', shown)
    assert ("keep_recent_raw_suffix", "keep the newest messages") in options
    assert 'keep a minimum<div class="muted">from the workspace</div>' in shown
    assert ("none", "default (extractive)") in options
    outside = re.sub(r"<option.*?>", "", shown)
    assert "keep_recent_raw_suffix" not in outside
    assert "compact_to_safe_frontier" not in outside


def test_policy__saved__contains_only_filled_in_fields(admin: Client) -> None:
    fields = {
        "autocompact_threshold": "60000",
        "min_savings_ratio": "0.5",
        "summarizer": "model",
        "summary_model": "small",
        "prompt": "none",
        "fallback": "extractive",
        "mode": "",
        "version": "0",
        "reason": "long talks",
    }
    response = admin.post(AGENT, fields)
    assert response["Location"] == "/policies"
    view = policies.values.load(CompactionPolicy.objects.get(agent_id="planner").body)
    assert view == {
        "autocompact_threshold": 60000,
        "min_savings_ratio": 0.5,
        "summarizer": "model",
        "summary_model": "small",
        "prompt": None,
        "fallback": "extractive",
    }
    assert AuditRow.objects.filter(action="compaction_policy.put", reason="long talks").exists()


def test_policy__saved_with_htmx__loads_the_list_as_a_page(admin: Client) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#policy"}
    response = admin.post("/policy", {"min_gain_tokens": "2", "version": "0"}, headers=headers)
    assert "HX-Location" not in response.headers, "the form is on a page without the list"
    assert response["HX-Redirect"] == "/policies"
    assert "Policy saved" in page(admin, "/policies")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"autocompact_threshold": "soon"}, "must be an integer of at least 1"),
        ({"autocompact_threshold": "0"}, "must be an integer of at least 1"),
        ({"min_savings_ratio": "2"}, "less than or equal to 1"),
        ({"prompt": "x" * 8_001}, "at most 8000 characters"),
        ({"fallback": "hope"}, "not one of the available choices"),
    ],
)
def test_policy__invalid_field__is_reported_beside_it(
    admin: Client, fields: dict[str, str], words: str
) -> None:
    response = admin.post("/policy", fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not CompactionPolicy.objects.exists()


def test_policy__changed_meanwhile__is_not_overwritten(admin: Client, alice: Person) -> None:
    say(alice, "workspace", min_gain_tokens=1)
    response = admin.post("/policy", {"min_gain_tokens": "2", "version": "0"})
    assert response.status_code == 409
    assert "This policy was changed since you opened the form" in response.content.decode()


def test_policy__of_a_thread__can_be_changed_by_editors(
    editor: Client, viewer: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    url = "/policy?scope=thread&name=t1"
    assert viewer.post(url, {"min_gain_tokens": "2"}).status_code == 403
    assert "Set here" not in page(viewer, url)
    assert viewer.post(url, {"preview": "yes"}).status_code == 403
    response = editor.post(url, {"min_gain_tokens": "2"})
    assert response["Location"] == "/threads/t1?tab=compactions"
    assert editor.post("/policy", {"min_gain_tokens": "2"}).status_code == 403
    assert editor.post(AGENT, {"min_gain_tokens": "2"}).status_code == 403


def test_policy__of_a_thread_changed_meanwhile__is_not_overwritten(
    editor: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    url = "/policy?scope=thread&name=t1"
    assert 'name="version" value="1"' in page(editor, url)
    say(alice, "thread", "t1", min_gain_tokens=1)
    response = editor.post(url, {"min_gain_tokens": "2", "version": "1"})
    assert response.status_code == 409
    assert "This thread was changed since you opened the form" in response.content.decode()
    assert policies.read_policy(actor=alice.actor, scope="thread", name="t1").body == (
        '{"min_gain_tokens": 1}'
    )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("/policy?scope=workspace", "in each thread of this workspace"),
        (AGENT, "in each thread of the agent planner"),
        ("/policy?scope=thread&name=t1", "now 3 of 5 snapshots."),
    ],
)
def test_policy__removes_snapshots__is_saved_after_a_warning(
    admin: Client, alice: Person, url: str, text: str
) -> None:
    make_thread(alice.actor, "t1")
    make_state_key(alice.actor, "plan")
    make_run(alice.actor, "t1", "r1")
    for number in range(4):
        commit(alice.actor, "r1", {"plan": number})
    (version,) = re.findall(r'name="version" value="(\d+)"', page(admin, url))
    fields = {"snapshot_keep_last": "2", "version": version}
    warned = admin.post(url, fields).content.decode()
    assert text in warned, re.findall("Compactions will[^<]*", warned)
    assert "Save and remove snapshots" in warned
    assert "snapshot_keep_last 2" not in page(admin, "/policies")

    (rule,) = re.findall(r'name="accepted" value="([^"]+)"', warned)
    other = admin.post(url, {**fields, "accepted": rule, "snapshot_keep_last": "1"})
    assert "Save and remove snapshots" in other.content.decode()
    assert admin.post(url, {**fields, "accepted": rule}).status_code == 302
    again = {**fields, "version": str(int(version) + 1)}
    assert admin.post(url, again).status_code == 302, "the same rule"


PREVIEW = {
    "HX-Request": "true",
    "HX-Request-Type": "partial",
    "HX-Target": "section#policy-preview",
}


def test_preview__of_the_workspace__shows_what_changes_for_the_largest_threads(
    admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "small", title="Short talk")
    for thread in ("own", "large"):
        make_thread(alice.actor, thread)
        append(alice.actor, thread, *conversation(8))
    say(alice, "thread", "own", autocompact_threshold=None)
    response = admin.post("/policy", {"autocompact_threshold": "20"}, headers=PREVIEW)
    shown = " ".join(response.content.decode().split())
    assert shown.startswith('<section class="card sticky" id="policy-preview"')
    assert re.findall(r'tab=compactions">([^<]*)</a>', shown) == ["large", "own", "Short talk"]
    large, own, small = shown.split("<li>")[1:]
    assert '<del class="muted">only on request</del> <ins>with the next message</ins>' in large
    assert '<dd><span class="muted">summarizes up to message' in large
    assert "no difference" not in large
    assert "no difference" in own, "its own policy overrides"
    assert "<ins>from 20 tokens</ins>" in small
    assert "nothing to compact" in small
    assert not CompactionPolicy.objects.exists()


def test_preview__of_an_agent__shows_its_threads_only(admin: Client, alice: Person) -> None:
    for thread, agent in (("a", "planner"), ("b", "other")):
        make_thread(alice.actor, thread)
        make_run(alice.actor, thread, thread, agent_id=agent)
    shown = admin.post(AGENT, {"every_hours": "2"}, headers=PREVIEW).content.decode()
    assert re.findall(r'tab=compactions">([^<]*)</a>', shown) == ["a"]
    assert "every 2 hours" in shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"min_savings_ratio": "2"}, "Minimum savings, from 0 to 1: Ensure this value is less"),
        ({"autocompact_threshold": "soon"}, "must be an integer of at least 1"),
    ],
)
def test_preview__invalid__says_which_field(
    admin: Client, fields: dict[str, str], words: str
) -> None:
    response = admin.post("/policy", fields, headers=PREVIEW)
    assert words in response.content.decode()


def test_preview__long_thread__is_named_without_a_plan(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_previews, "MOST_MESSAGES", 3)
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *conversation(8))
    url = "/policy?scope=thread&name=t1"
    shown = page(admin, url)
    assert "Change a setting to see" in shown
    response = admin.post(url, {"min_gain_tokens": "1", "preview": "yes"}).content.decode()
    assert "more than 3 messages are not planned here" in response
    assert 'name="min_gain_tokens" value="1"' in response, "without JavaScript, the form is kept"


@pytest.mark.parametrize("url", ["/policy?scope=nobody", "/policy?scope=thread&name=none"])
def test_policy__of_a_missing_thread__is_404(admin: Client, url: str) -> None:
    assert admin.get(url).status_code == 404


def test_thread__preview__shows_savings_and_obstacles(admin: Client, alice: Person) -> None:
    policy = {"summarizer": "model", "summary_model": "gpt-7", "fallback": "extractive"}
    make_thread(alice.actor, "t1", policy=raw({**policy, "summary_max_tokens": 200}))
    append(alice.actor, "t1", *conversation(8))
    shown = page(admin, "/threads/t1?tab=compactions")
    assert "Summarizes messages 1 to" in shown
    assert "% less" in shown
    assert "provider not configured: gpt-7" in shown
    assert "The extractive summarizer will be used instead" in shown
    assert "/policy?scope=thread&amp;name=t1" in shown


def test_presence__another_editor_of_the_policy__is_shown(
    admin: Client, editor: Client, viewer: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    frank = make_person("frank", "acme", Role.ADMIN).browser()
    scopes = ("scope=workspace", "scope=agent&name=a", "scope=thread&name=t1")
    for number, scope in enumerate(scopes):
        beat = f"/policy/presence?{scope}"
        assert html.escape(beat) in page(admin, f"/policy?{scope}")
        assert "/policy/presence" not in page(viewer, f"/policy?{scope}")
        assert b"banner" not in admin.post(beat).content
        shown = frank.post(beat).content.decode()
        assert "alice</strong> has been editing this" in shown
        assert "is asked to open the form again" in shown
        assert editor.post(beat).status_code == (200 if number == 2 else 403)
        assert viewer.post(beat).status_code == 403
    assert Presence.objects.count() == 7
    assert admin.post("/policy/presence?scope=thread&name=nothing").status_code == 404
    assert admin.post("/policy/presence?scope=planet").status_code == 404
