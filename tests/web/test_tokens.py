"""The page of API tokens: the secret is shown once, restrictions apply, revoking is final."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from state_admin.domain.access import Role
from state_admin.models import ApiToken, AuditRow
from state_admin.services.actors import actor_of_token, system_actor
from state_admin.services.tokens import create_token
from state_admin.web import choosers
from tests.builders import Person, make_namespace, make_person, make_thread
from tests.web.stories import HOSTILE
from tests.web.test_threads import htmx, page

FORM = {"name": "ci", "role": "editor", "namespaces": "", "thread_prefixes": "", "lives": "30"}


def make(client: Client, **changes: str) -> tuple[str, str]:
    """Create a token on the page; returns the page and the secret on it."""
    response = client.post("/tokens/+new", FORM | changes)
    assert response.status_code == 201
    shown = response.content.decode()
    found = re.search(r"ch_[0-9a-f]{12}_[0-9a-f]{64}", shown)
    assert found
    return shown, found[0]


def form_id(client: Client, url: str) -> str:
    """The id of the form on a new page."""
    found = re.search(r'name="form_id" value="([^"]+)"', page(client, url))
    assert found
    return found[1]


def test_token__created__works_and_is_shown_exactly_once(admin: Client) -> None:
    shown, secret = make(admin)
    assert "Copy the token now" in shown
    assert f"Authorization: Bearer {secret}" in shown
    assert actor_of_token(secret) is not None
    assert secret not in page(admin, "/tokens")
    assert secret.rpartition("_")[2] not in page(admin, "/tokens")
    token = ApiToken.objects.latest("pk")
    assert token.created_by == "alice"
    assert token.expires_at is not None


def test_token__response_with_the_secret__is_not_stored_anywhere(admin: Client) -> None:
    response = admin.post("/tokens/+new", FORM, headers=htmx("tokens"))
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    title, _, rest = response.content.decode().partition("</title>")
    assert title == "<title>Tokens · acme"
    assert rest.lstrip().startswith('<div class="stack" id="tokens"')


def test_token__restricted__has_globs_and_prefixes(admin: Client) -> None:
    _, secret = make(admin, namespaces="team_* notes", thread_prefixes="order-", role="viewer")
    actor = actor_of_token(secret)
    assert actor is not None
    assert actor.namespaces == ("team_*", "notes")
    assert actor.thread_prefixes == ("order-",)
    assert actor.role == "viewer"
    assert "team_*" in page(admin, "/tokens")


def test_token_form__opened_from_a_namespace__is_limited_to_it(
    admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "orders")
    assert "/tokens/+new?namespaces=orders" in page(admin, "/namespaces/orders")
    form = page(admin, "/tokens/+new?namespaces=orders")
    assert 'name="namespaces" value="orders"' in form
    assert 'name="name" value="orders"' in form


@pytest.mark.parametrize(
    ("globs", "words"),
    [
        ("", ""),
        ("order*", "Matches 2 namespaces: orders, orders-old"),
        ("orders notes", "Matches 2 namespaces: notes, orders"),
        ("none*", "Matches no namespace yet."),
        ("*", "Matches 10 namespaces: config.agents, config.models, config.providers, n0, n1, …"),
        ("<b> '", "Matches no namespace yet."),
    ],
)
def test_globs__typed__say_what_they_match(
    viewer: Client, alice: Person, mallory: Person, globs: str, words: str
) -> None:
    for name in ("orders", "orders-old", "notes", *(f"n{number}" for number in range(4))):
        make_namespace(alice.actor, name)
    make_namespace(mallory.actor, "orders-of-others")
    response = viewer.get("/namespaces/+matches", {"namespaces": globs})
    assert response.content.decode() == words


def test_token__glob_without_a_namespace__is_named(admin: Client, alice: Person) -> None:
    make_namespace(alice.actor, "team_context")
    shown, _ = make(admin, namespaces="team_* taem_*")
    assert shown.count("No namespace matches") == 1
    assert "No namespace matches taem_* yet." in shown


@pytest.mark.parametrize(
    "changes", [{"name": ""}, {"name": "   "}, {"role": "emperor"}, {"lives": "forever"}]
)
def test_token__invalid_form__creates_none_and_keeps_the_typed_fields(
    changes: dict[str, str], admin: Client
) -> None:
    before = ApiToken.objects.count()
    response = admin.post("/tokens/+new", FORM | {"namespaces": "kept_*"} | changes)
    assert response.status_code == 422
    assert "kept_*" in response.content.decode()
    assert ApiToken.objects.count() == before


def test_token_form__sent_twice__creates_one_token(admin: Client) -> None:
    before = ApiToken.objects.count()
    form = FORM | {"form_id": form_id(admin, "/tokens/+new")}
    assert admin.post("/tokens/+new", form | {"name": ""}).status_code == 422  # creates nothing
    assert admin.post("/tokens/+new", form).status_code == 201
    again = admin.post("/tokens/+new", form)
    assert (again.status_code, again.content.count(b"ch_")) == (409, 0)
    assert "This form was already sent" in again.content.decode()
    assert ApiToken.objects.count() == before + 1
    other = make_person("carol", "acme", Role.ADMIN).browser()
    assert other.post("/tokens/+new", form).status_code == 201
    assert (
        admin.post("/tokens/+new", form | {"form_id": form_id(admin, "/tokens/+new")}).status_code
        == 201
    )


def test_token__hostile_name__is_escaped(admin: Client) -> None:
    for hostile in HOSTILE:
        make(admin, name=hostile, namespaces="x")
    shown = page(admin, "/tokens")
    for tag in ("<script>alert", "<img src=x", "<svg onload"):
        assert tag not in shown


def test_token__revoked__is_refused_and_marked(admin: Client) -> None:
    _, secret = make(admin)
    token = ApiToken.objects.latest("pk")
    assert f"ch_{token.lookup}_" in page(admin, f"/tokens/{token.pk}/revoke")
    response = admin.post(f"/tokens/{token.pk}/revoke", {"reason": "leaked"})
    assert response["Location"] == "/tokens"
    assert actor_of_token(secret) is None
    assert "revoked" in page(admin, "/tokens")
    assert AuditRow.objects.filter(action="token.revoke", reason="leaked").exists()


def test_token__of_another_workspace__is_404(
    admin: Client, stranger: Client, mallory: Person
) -> None:
    theirs = ApiToken.objects.get(workspace=mallory.workspace)
    assert admin.get(f"/tokens/{theirs.pk}/revoke").status_code == 404
    assert admin.post(f"/tokens/{theirs.pk}/revoke").status_code == 404
    theirs.refresh_from_db()
    assert theirs.revoked_at is None
    assert "mallory" not in page(admin, "/tokens")


def test_token__of_an_operator__is_marked(admin: Client, alice: Person) -> None:
    assert "operator</span>" not in page(admin, "/tokens")
    shell = system_actor(alice.workspace.pk, "shell")
    create_token(actor=shell, name="terraform", role=Role.ADMIN, operator=True)
    assert "operator</span>" in page(admin, "/tokens")


def edit_form(client: Client, token: ApiToken) -> dict[str, str]:
    """The fields of the form, also the hidden ones."""
    shown = page(client, f"/tokens/{token.pk}/edit")
    fields = dict(
        re.findall(r'<input type="(?:text|number|hidden)" name="([^"]+)" value="([^"]*)"', shown)
    )
    names = ("name", "role", "namespaces", "thread_prefixes", "rate_per_minute", "lives")
    fields = {name: fields.get(name, "") for name in [*names, *(f"initial-{n}" for n in names)]}
    return fields | {name: fields[f"initial-{name}"] for name in ("role", "lives")}


def test_token__edited__only_the_changed_fields_are_saved(admin: Client) -> None:
    _, secret = make(admin, namespaces="team_*", rate_per_minute="60")
    token = ApiToken.objects.latest("pk")
    assert f"/tokens/{token.pk}/edit" in page(admin, "/tokens")
    form = edit_form(admin, token)
    assert (form["name"], form["namespaces"], form["rate_per_minute"]) == ("ci", "team_*", "60")
    ApiToken.objects.filter(pk=token.pk).update(role="viewer")  # another admin, meanwhile
    response = admin.post(
        f"/tokens/{token.pk}/edit", form | {"name": "deploy", "rate_per_minute": ""}
    )
    assert (response.status_code, response["Location"]) == (302, "/tokens")
    ends = token.expires_at
    token.refresh_from_db()
    assert (token.name, token.rate_per_minute, token.role) == ("deploy", None, "viewer")
    assert (token.namespaces, token.expires_at) == (["team_*"], ends)
    assert set(AuditRow.objects.get(action="token.change").detail["to"]) == {
        "name",
        "rate_per_minute",
    }
    assert actor_of_token(secret) is not None


def test_token__edited_lifetime__begins_now(admin: Client) -> None:
    make(admin)
    token = ApiToken.objects.latest("pk")
    for lives, days in (("7", 7), ("", None)):
        form = edit_form(admin, token) | {"lives": lives}
        assert admin.post(f"/tokens/{token.pk}/edit", form).status_code == 302
        token.refresh_from_db()
        left = token.expires_at and (token.expires_at - timezone.now()) / timedelta(days=1)
        assert left == (days and pytest.approx(days, abs=0.1))


@pytest.mark.parametrize("changes", [{"name": ""}, {"rate_per_minute": "0"}, {"lives": "forever"}])
def test_token_edit__invalid__saves_nothing(admin: Client, changes: dict[str, str]) -> None:
    make(admin)
    token = ApiToken.objects.latest("pk")
    form = edit_form(admin, token) | {"namespaces": "kept_*"} | changes
    response = admin.post(f"/tokens/{token.pk}/edit", form)
    assert response.status_code == 422
    assert "kept_*" in response.content.decode()
    assert not AuditRow.objects.filter(action="token.change").exists()


def test_token_edit__prefix_with_a_space__is_not_split(admin: Client, alice: Person) -> None:
    token, _ = create_token(
        actor=alice.actor, name="ci", role=Role.VIEWER, thread_prefixes=["order 1"]
    )
    form = edit_form(admin, token)
    assert admin.post(f"/tokens/{token.pk}/edit", form | {"name": "x"}).status_code == 302
    response = admin.post(f"/tokens/{token.pk}/edit", form | {"thread_prefixes": "order 1 b"})
    assert response.status_code == 422
    assert "contains a space" in response.content.decode()
    token.refresh_from_db()
    assert (token.name, token.thread_prefixes) == ("x", ["order 1"])


def test_token_edit__revoked__says_so(admin: Client) -> None:
    make(admin)
    token = ApiToken.objects.latest("pk")
    form = edit_form(admin, token)
    admin.post(f"/tokens/{token.pk}/revoke")
    response = admin.post(f"/tokens/{token.pk}/edit", form | {"name": "x"})
    assert response.status_code == 422
    assert "Token is revoked" in response.content.decode()
    assert admin.get(f"/tokens/{token.pk}/edit").status_code == 409
    assert f"/tokens/{token.pk}/edit" not in page(admin, "/tokens")


def offered(client: Client, path: str, **query: str) -> list[str]:
    return re.findall(r'data-(?:add|choose)="([^"]*)"', client.get(path, query).content.decode())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["order_*", "notes", "order_lines", "order_notes"]),
        ("ORDER", ["order_*", "order_lines", "order_notes"]),
        ("notes ", ["order_*", "order_lines", "order_notes"]),
        ("order_* not", ["notes", "order_notes"]),
        ("nothing", []),
    ],
)
def test_globs__typed__offer_names_and_what_they_share(
    viewer: Client, alice: Person, mallory: Person, text: str, names: list[str]
) -> None:
    for name in ("order_lines", "order_notes", "notes"):
        make_namespace(alice.actor, name)
    make_namespace(mallory.actor, "order_of_others")
    assert offered(viewer, "/namespaces/+offers", namespaces=text) == names


def conditions(plan: dict[str, Any]) -> list[str]:
    """The index conditions of the scans of threads in a plan, "" for a scan without one."""
    condition = plan.get("Index Cond") or plan.get("Recheck Cond", "")
    own = [condition] if plan.get("Relation Name") == "threads" else []
    return own + [each for node in plan.get("Plans", []) for each in conditions(node)]


def test_prefixes__several__are_ranges_of_the_index(alice: Person) -> None:
    for number in range(300):
        make_thread(alice.actor, f"{'abc'[number % 3]}-{number:03}")
    matching = choosers.matching_ids(alice.actor, ["c-1", "a-", "a-29", "b-00", "none"])
    found = list(matching[:1000])
    numbers = range(300)
    expected = [f"{'abc'[n % 3]}-{n:03}" for n in numbers]
    starts = ("c-1", "a-", "b-00")
    # Of each prefix, as many as are counted.
    assert found == sorted(each for each in expected if each.startswith(starts))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE threads")
        # As large to the planner as a table of 300,000 threads (test_plans.py).
        cursor.execute(
            "UPDATE pg_class SET reltuples = reltuples * 1000 WHERE oid IN (SELECT unnest(ARRAY["
            "indrelid, indexrelid]) FROM pg_index WHERE indrelid = 'threads'::regclass)"
        )
    rare = choosers.matching_ids(alice.actor, ["a-00", "b-00", "c-29", "none"])
    plan = json.loads(rare[:101].explain(format="json"))[0]["Plan"]
    ranges = conditions(plan)
    assert len(ranges) == 4
    assert all("public_id >=" in each and "public_id <" in each for each in ranges), ranges


def test_prefixes__typed__say_what_they_match_and_offer_threads(
    viewer: Client, alice: Person, mallory: Person
) -> None:
    for name, title in (("trip-1", "Lisbon"), ("trip-2", "<Porto>"), ("misc", "")):
        make_thread(alice.actor, name, title=title)
    make_thread(mallory.actor, "trip-3", title="Lisbon")
    said = [
        viewer.get("/tokens/+matches", {"thread_prefixes": text}).content.decode()
        for text in ("", "trip-", "m trip-2", "none")
    ]
    assert said == [
        "", "Matches 2 threads: trip-1, trip-2", "Matches 2 threads: misc, trip-2",
        "Matches no thread yet.",
    ]  # fmt: skip
    offers = [
        offered(viewer, "/tokens/+offers", thread_prefixes=text)
        for text in ("", "trip", "trip-1 mi", "lis", "nothing")
    ]
    assert offers == [
        ["trip-", "misc", "trip-2", "trip-1"], ["trip-", "trip-1", "trip-2"], ["misc"], ["trip-1"], [],
    ]  # fmt: skip
    page = viewer.get("/tokens/+offers", {"thread_prefixes": "trip-"}).content.decode()
    assert "&lt;Porto&gt;" in page


@pytest.mark.parametrize("text", ["", "***", "nothing"])
def test_threads__none_matches__none_is_offered(viewer: Client, text: str) -> None:
    assert offered(viewer, "/tokens/+offers", thread_prefixes=text) == []
    assert offered(viewer, "/webhooks/+offers", thread=text) == []


def test_thread__typed__is_named(viewer: Client, alice: Person, mallory: Person) -> None:
    make_thread(alice.actor, "trip-1", title="Lisbon & Porto")
    make_thread(mallory.actor, "trip-2")
    said = [
        viewer.get("/webhooks/+thread", {"thread": text}).content.decode()
        for text in ("", "trip-1", "trip-2", "trip-1 trip-2")
    ]
    unknown = "No thread has this id yet."
    assert said == ["", "Matches Lisbon &amp; Porto.", unknown, unknown]


def test_thread__typed__is_offered_as_one_id_without_prefixes(
    viewer: Client, alice: Person, mallory: Person
) -> None:
    for person, name in ((alice, "trip-1"), (alice, "trip-2"), (mallory, "trip-3")):
        make_thread(person.actor, name, title="Lisbon")
    offers = [
        offered(viewer, "/webhooks/+offers", thread=text)
        for text in ("", "trip-", "trip-1", "lisbon", "trip-1 ")
    ]
    assert offers == [["trip-2", "trip-1"], ["trip-1", "trip-2"], [], ["trip-2", "trip-1"], []]
    page = viewer.get("/webhooks/+offers", {"thread": "trip-"}).content.decode()
    assert 'aria-label="Choose trip-1"' in page
