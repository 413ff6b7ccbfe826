"""Editing an entry: saved, refused, in conflict, undone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from state_admin.models import AuditRow
from state_admin.services import journal, reverts
from state_admin.services.entries import delete_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.services.redactions import redact_entry
from state_admin.web.addresses import run_url
from tests.builders import TEAM_SCHEMA, Person, make_namespace, put
from tests.services.racing import interleave

EDIT = "/entry/edit/team/global"


@pytest.fixture
def team(alice: Person) -> EntryView:
    make_namespace(alice.actor, "team", schema=TEAM_SCHEMA, default={"goal": ""})
    value = {"goal": "ship", "count": 1, "constraints": ["eu"]}
    return put(alice.actor, "team", "global", value, tags=["vip"], pinned=True)


def stored(alice: Person, key: str = "global") -> EntryView:
    return read_entry(actor=alice.actor, namespace="team", key=key)


def save(client: Client, value: Any, base: int, **fields: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    data = {"value": text, "base": base, "lifetime": "keep", "tags": "vip", "pinned": "on"}
    return client.post(fields.pop("path", EDIT), data | fields)


def undo_fields(client: Client, path: str) -> tuple[str, dict[str, str]]:
    """The fields that the Undo button on the page at `path` posts."""
    page = client.get(path).content.decode()
    form = re.search(r'<form method="post" action="([^"]+)" data-undo>(.*?)</form>', page, re.S)
    assert form, page
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form[2])
    return unescape(form[1]), {n: unescape(v) for n, v in fields if n != "csrfmiddlewaretoken"}


def test_edit__valid__writes_with_reason_and_keeps_spelling(
    admin: Client, alice: Person, team: EntryView
) -> None:
    text = '{\r\n  "goal": "ship",\r\n  "count": 10000000000000000000000001\r\n}'
    response = save(admin, text, team.version, reason="because", tags="vip, eu ,vip")
    assert response.status_code == 302
    assert response["Location"] == "/state/team/global"
    now = stored(alice)
    assert now.value == '{"goal":"ship","count":10000000000000000000000001}'
    assert list(now.tags) == ["vip", "eu"]
    history = admin.get("/state/team/global?tab=history").content.decode()
    assert "because" in history


def test_edit__nothing_changed__writes_nothing(
    admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, '{ "goal": "ship", "count": 1, "constraints": ["eu"] }', team.version)
    assert stored(alice).version == team.version
    assert b"No changes" in admin.get("/state/team/global").content


def test_edit__invalid_value__is_located_and_the_text_is_kept(
    admin: Client, alice: Person, team: EntryView
) -> None:
    text = '{\n  "goal": "ship",\n  "count": "many"\n}'
    response = save(admin, text, team.version)
    page = response.content.decode()
    assert response.status_code == 422
    assert "line 3" in page
    assert "<code>/count</code>" in page
    assert "&quot;many&quot;" in page
    assert stored(alice).version == team.version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "The value is not valid JSON"),
        ("", "The value is not valid JSON"),
        ('{"goal": 1, "goal": 2}', "twice"),
        ('{"goal": "\\u0000"}', "NUL"),
        ("1e999", "outside the range"),
        ("[" * 80 + "]" * 80, "too deep"),
    ],
)
def test_edit__text_that_cannot_be_stored__states_the_reason(
    text: str, said: str, admin: Client, team: EntryView
) -> None:
    response = save(admin, text, team.version)
    assert response.status_code == 422
    assert said in response.content.decode()


@pytest.mark.parametrize("ttl", ["", "0", "-1", "1.5", "ten", "9" * 30])
def test_edit__invalid_lifetime__is_refused(ttl: str, admin: Client, team: EntryView) -> None:
    response = save(admin, {"goal": "x"}, team.version, lifetime="seconds", ttl=ttl)
    assert response.status_code == 422
    assert b"lifetime" in response.content


def test_edit__keep_lifetime__keeps_the_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team", ttl_seconds=10)
    before = put(alice.actor, "team", "global", 1, ttl_seconds=5000)
    save(admin, "2", before.version)
    now = stored(alice)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 3


def test_create__missing__writes_once(admin: Client, alice: Person, team: EntryView) -> None:
    path = "/entry/edit/team/thread::new"
    assert b"Create" in admin.get(path).content
    assert save(admin, {"goal": "a"}, 0, path=path).status_code == 302
    assert stored(alice, "thread::new").version == 1
    assert save(admin, {"goal": "b"}, 0, path=path).status_code == 409


def check(client: Client, text: str, path: str = "/entry/check/team/global") -> Any:
    return client.post(path, {"value": text})


def test_check__error_positions__are_in_utf16_and_nothing_is_written(
    admin: Client, alice: Person, team: EntryView
) -> None:
    before = AuditRow.objects.count()
    text = '{\n  "constraints": ["\U0001f680"],\n  "count": "many"\n}'
    told = check(admin, text.replace("\n", "\r\n")).json()
    assert told["message"] == "The value does not satisfy the schema of team"
    (error,) = told["errors"]
    assert (error["pointer"], error["line"]) == ("/count", 3)
    sent = text.encode("utf-16-le")
    assert sent[2 * error["start"] : 2 * error["end"]].decode("utf-16-le") == '"many"'
    assert check(admin, '{"goal": "fine"}').json() == {"message": "", "errors": []}
    assert AuditRow.objects.count() == before
    assert stored(alice).version == team.version


@pytest.mark.parametrize(
    ("text", "line", "start"),
    [('{"goal": }', 1, 9), ('\n\n {"goal":\n tru}', 4, 13), ('["a"', 1, 4)],
)
def test_check__not_json__is_located(
    text: str, line: int, start: int, admin: Client, team: EntryView
) -> None:
    told = check(admin, text).json()
    assert told["message"] == "The value is not valid JSON"
    (error,) = told["errors"]
    assert (error["line"], error["start"]) == (line, start)
    assert "char" not in error["message"]


@pytest.mark.parametrize("text", ["", "NaN", "[" * 300, '{"a": 1, "a": 2}', "1e999"])
def test_check__text_that_cannot_be_stored__is_reported(
    text: str, admin: Client, team: EntryView
) -> None:
    response = check(admin, text)
    assert response.status_code == 200
    assert response.json()["errors"]


def test_presence__another_editor__is_shown_after_a_heartbeat(
    admin: Client, editor: Client, team: EntryView
) -> None:
    editor.get(EDIT)
    beat = "/entry/presence/team/global"
    assert b"banner" not in admin.post(beat).content
    assert b"alice</strong> has been editing this" in editor.post(beat).content
    assert admin.get(beat).status_code == 405


def test_new__namespace_and_key__redirects_to_the_editor(admin: Client, team: EntryView) -> None:
    response = admin.get("/entries/new", {"namespace": "team", "at": "a/b c"})
    assert response["Location"] == "/entry/edit/team/a%2Fb%20c"
    bad = admin.get("/entries/new", {"namespace": "team", "at": "x" * 513})
    assert bad.status_code == 422
    assert b"1 to 512 bytes" in bad.content


def test_undo__edit__restores_the_previous_value(
    admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    assert stored(alice).value == team.value
    assert stored(alice).version == 3
    question = unescape(admin.get("/entry/restore/team/global?version=2").content.decode())
    assert '/constraints: ["eu"] removed' in question


def test_undo__edit__restores_tags_pin_and_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    tags = ["old", 'a "quoted" <tag>']
    before = put(alice.actor, "team", "global", 1, ttl_seconds=3600, tags=tags)
    save(admin, "2", before.version, tags="new", lifetime="default")
    edited = stored(alice)
    assert (edited.tags, edited.pinned, edited.expires_at) == (["new"], True, None)
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    now = stored(alice)
    assert (now.value, now.tags, now.pinned) == ("1", tags, False)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 60
    (made,) = AuditRow.objects.filter(action="entry.restore")
    assert made.reason == "undo of version 2"


def test_undo__edit_of_an_entry_without_expiry__removes_the_expiry(
    admin: Client, alice: Person
) -> None:
    before = put_before_the_namespace_expires_all(alice)
    save(admin, "2", before.version, lifetime="seconds", ttl="60")
    assert stored(alice).expires_at
    admin.post(*undo_fields(admin, "/state/team/global"))
    assert (stored(alice).value, stored(alice).expires_at) == ("1", None)


def test_edit__keep_no_lifetime__never_expires(admin: Client, alice: Person) -> None:
    before = put_before_the_namespace_expires_all(alice)
    save(admin, "2", before.version)
    assert (stored(alice).value, stored(alice).expires_at) == ("2", None)


def put_before_the_namespace_expires_all(alice: Person) -> EntryView:
    make_namespace(alice.actor, "team")
    before = put(alice.actor, "team", "global", 1)
    make_namespace(alice.actor, "team", ttl_seconds=600)
    return before


def test_undo__restore__restores_tags_pin_and_expiry(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "global", 1, tags=["old"])
    before = put(alice.actor, "team", "global", 2, ttl_seconds=3600, tags=["new"], pinned=True)
    admin.post("/entry/restore/team/global", {"version": 1, "expected_version": 2})
    restored = stored(alice)
    assert (restored.value, restored.expires_at) == ("1", before.expires_at)
    admin.post(*undo_fields(admin, "/state/team/global"))
    now = stored(alice)
    assert (now.value, now.tags, now.pinned) == ("2", ["new"], True)
    assert now.expires_at
    assert before.expires_at
    assert abs((now.expires_at - before.expires_at).total_seconds()) < 60


@pytest.mark.parametrize(
    "tags", ["[", "{}", "[1]", '["' + "x" * 65 + '"]', '["\\u0000"]', json.dumps(["t"] * 33)]
)
def test_undo__invalid_tags__writes_nothing(
    tags: str, admin: Client, alice: Person, team: EntryView
) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    assert admin.post(url, fields | {"tags": tags}).status_code in (400, 422)
    assert stored(alice).version == 2


def test_undo__written_since__is_refused(admin: Client, alice: Person, team: EntryView) -> None:
    save(admin, {"goal": "oops"}, team.version)
    url, fields = undo_fields(admin, "/state/team/global")
    put(alice.actor, "team", "global", {"goal": "later"})
    admin.post(url, fields)
    assert json.loads(stored(alice).value) == {"goal": "later"}
    assert b"Not undone" in admin.get("/state/team/global").content


def test_undo__creation__deletes(admin: Client, alice: Person, team: EntryView) -> None:
    save(admin, {"goal": "a"}, 0, path="/entry/edit/team/thread::new")
    url, fields = undo_fields(admin, "/state/team/thread::new")
    admin.post(url, fields)
    assert not stored(alice, "thread::new").exists


def test_delete__confirmed__undo_restores_value_tags_and_pin(
    admin: Client, alice: Person, team: EntryView
) -> None:
    question = admin.get("/entry/delete/team/global").content.decode()
    assert "Version 1 of team/global" in question
    assert 'name="reason"' in question
    admin.post("/entry/delete/team/global", {"expected_version": 1, "reason": "not needed"})
    assert not stored(alice).exists
    url, fields = undo_fields(admin, "/state/team/global")
    admin.post(url, fields)
    now = stored(alice)
    assert (now.value, list(now.tags), now.pinned) == (team.value, ["vip"], True)


def test_delete__undo_after_another_write__is_refused(
    admin: Client, alice: Person, team: EntryView
) -> None:
    admin.post("/entry/delete/team/global", {"expected_version": 1})
    url, fields = undo_fields(admin, "/state/team/global")
    put(alice.actor, "team", "global", {"goal": "new life"})
    delete_entry(actor=alice.actor, namespace="team", key="global")
    admin.post(url, fields)
    assert not stored(alice).exists


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("owner", "name"), [(journal, "parameters"), (reverts, "new_entry")])
def test_delete__undo_while_the_entry_is_redacted__does_not_restore_the_secret(
    admin: Client,
    alice: Person,
    team: EntryView,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
) -> None:
    admin.post("/entry/delete/team/global", {"expected_version": 1})
    url, fields = undo_fields(admin, "/state/team/global")
    address: Any = {"actor": alice.actor, "namespace": "team", "key": "global"}
    redact = partial(redact_entry, **address, reason="leaked", pointers=["/goal"])
    with interleave(monkeypatch, owner, name, redact):
        admin.post(url, fields)
    assert "ship" not in stored(alice).value


def test_delete__changed_since_shown__does_nothing(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "newer"})
    admin.post("/entry/delete/team/global", {"expected_version": 1})
    assert stored(alice).exists
    assert b"Nothing was done" in admin.get("/state/team/global").content


def test_restore__old_version__writes_it_again(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(alice.actor, "team", "global", {"goal": "<worse>", "count": 1})
    question = unescape(admin.get("/entry/restore/team/global?version=1").content.decode())
    assert "/goal: <worse> → ship" in question
    assert '/constraints: ["eu"] added' in question
    admin.post("/entry/restore/team/global", {"version": 1, "expected_version": 2})
    assert stored(alice).value == team.value
    assert stored(alice).version == 3


def test_htmx__save__shows_the_entry_in_place(admin: Client, team: EntryView) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#entry"}
    data = {"value": '{"goal": "x"}', "base": 1, "lifetime": "keep"}
    response = admin.post(EDIT, data, headers=headers)
    assert json.loads(response["HX-Location"]) == {
        "path": "/state/team/global",
        "target": "#entry",
        "swap": "outerHTML show:top",
    }
    part = admin.get("/state/team/global", headers=headers)
    (toast,) = json.loads(part["HX-Trigger"])["toast"]["toasts"]
    assert toast["text"] == "Saved version 2"
    fields = {"written": 2, "before": 1, "tags": '["vip"]', "pinned": 1}
    assert toast["undo"]["fields"] == fields


@pytest.mark.parametrize("action", ["edit", "delete", "restore", "undo", "check", "presence"])
def test_write__viewer__is_refused(
    action: str, viewer: Client, alice: Person, team: EntryView
) -> None:
    data = {"value": "1", "base": 1, "expected_version": 1, "version": 1, "written": 1}
    assert viewer.post(f"/entry/{action}/team/global", data).status_code == 403
    assert stored(alice).version == team.version


@pytest.mark.parametrize("action", ["edit", "delete", "restore", "undo", "check", "presence"])
def test_write__other_workspace__looks_absent(
    action: str, stranger: Client, alice: Person, team: EntryView
) -> None:
    data = {"value": "1", "base": 1, "expected_version": 1, "version": 1, "written": 1}
    assert stranger.post(f"/entry/{action}/team/global", data).status_code == 404
    assert stored(alice).version == team.version


def test_write__without_csrf_token__is_refused(alice: Person, team: EntryView) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)
    assert client.post(EDIT, {"value": "1", "base": 1}).status_code == 403
    assert stored(alice).version == team.version


@pytest.mark.parametrize(
    ("origin", "status"), [(settings.SITE_URL, 302), ("https://elsewhere.example", 403)]
)
def test_write__origin_is_not_the_address_of_the_request__is_that_of_the_site_or_refused(
    origin: str, status: int, alice: Person, team: EntryView
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)
    client.get(EDIT)
    token = client.cookies[settings.CSRF_COOKIE_NAME].value
    form = {"value": '{"goal": "ship"}', "base": team.version, "csrfmiddlewaretoken": token}

    answer = client.post(EDIT, form, headers={"Origin": origin})

    assert answer.status_code == status
    says = "The server received the request for http://testserver. The page was opened at an address that is"
    assert (says in answer.content.decode()) == (status == 403)


def test_history__version_of_a_run__links_to_the_run(
    admin: Client, alice: Person, team: EntryView
) -> None:
    put(replace(alice.actor, run_id="r/1"), "team", "global", {"goal": "x"})
    page = admin.get("/state/team/global?tab=history").content.decode()
    assert re.findall(r'<a class="muted" href="([^"]+)">run</a>', page) == [run_url("r/1")]
