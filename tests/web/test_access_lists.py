"""The lists of members, tokens, webhooks and policies: search, filters, orders, and their number."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import ApiToken, Webhook
from state_admin.services.policies import put_policy
from state_admin.services.webhooks import create_webhook
from state_admin.web import members, paging, policies, tables, tokens
from tests.builders import Person, make_person, make_token, raw
from tests.web.test_list_filters import headings
from tests.web.test_threads import page, walk

NOW = datetime.now(UTC)


@pytest.fixture
def four(alice: Person) -> list[ApiToken]:
    """Tokens a, b, b and c, of which only the first b and c were used."""
    ApiToken.objects.all().delete()
    for _ in range(4):
        make_token(alice)
    created = list(ApiToken.objects.order_by("pk"))
    uses = (None, NOW, None, NOW - timedelta(1))
    for number, (token, name, used) in enumerate(zip(created, "abbc", uses, strict=True)):
        # A random beginning would sometimes match the text of a search.
        token.name, token.last_used_at, token.lookup = name, used, f"{number}23456789abc"
        token.save(update_fields=["name", "last_used_at", "lookup"])
    return created


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("", [3, 2, 1, 0]),
        ("oldest", [0, 1, 2, 3]),
        ("name", [0, 1, 2, 3]),
        ("-name", [3, 2, 1, 0]),
        ("used", [1, 3, 2, 0]),
        ("unused", [0, 2, 3, 1]),
        ("nonsense", [3, 2, 1, 0]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_tokens__sorted__pages_have_each_token_once(
    sort: str, order: list[int], size: int, admin: Client, four: list[ApiToken],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(tokens, "PAGE", size)
    pages = walk(admin, f"/tokens.json?sort={sort}")
    assert [four.index(ApiToken.objects.get(pk=pk)) for each in pages for pk in each] == order
    assert {len(each) for each in pages[:-1]} == {size}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=B", ["b", "b"]),
        ("text=x", []),
        ("state=live", ["c"]),
        ("state=rotated", ["b"]),
        ("state=expired", ["b"]),
        ("state=revoked", ["a"]),
        ("role=editor&text=a", ["a"]),
        ("role=viewer", []),
    ],
)
def test_tokens__filtered__contain_only_matches(
    query: str, found: list[str], admin: Client, four: list[ApiToken]
) -> None:
    past = NOW - timedelta(1)
    for token, changes in zip(
        four,
        ({"revoked_at": past, "expires_at": past}, {"expires_at": past, "rotated_at": past},
         {"expires_at": NOW + timedelta(1), "rotated_at": past}, {}),
        strict=True,
    ):  # fmt: skip
        ApiToken.objects.filter(pk=token.pk).update(**changes)
    assert walk(admin, f"/tokens.json?{query}", "name") == [found]
    shown = page(admin, f"/tokens?{query}")
    assert len(re.findall(r"<a data-row", shown)) == len(found)
    assert ("No tokens match." in shown) == (not found)
    assert f"{len(found)} token{'' if len(found) == 1 else 's'}</span>" in shown


def test_tokens__beginning__finds_the_token(admin: Client, four: list[ApiToken]) -> None:
    token = four[0]
    for text in (token.beginning, f"ch_{token.lookup[:6]}", f"{token.beginning}…", token.lookup):
        assert walk(admin, f"/tokens.json?text={text}") == [[str(token.pk)]]


@pytest.mark.parametrize("path", ["/tokens", "/tokens.json", "/members", "/members.json"])
@pytest.mark.parametrize("after", ["x~7", "7~x", "7~7~", "~", "1e3~1", "x", "1e3"])
@pytest.mark.parametrize("sort", ["", "unused"])
def test_list__malformed_cursor__is_refused(
    path: str, after: str, sort: str, admin: Client
) -> None:
    assert admin.get(f"{path}?sort={sort}&after={after}").status_code == 400


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("", ["alice", "bob", "carl", "zoe", "anna"]),
        ("newest", ["anna", "zoe", "carl", "bob", "alice"]),
        ("name", ["alice", "anna", "bob", "carl", "zoe"]),
        ("-name", ["zoe", "carl", "bob", "anna", "alice"]),
    ],
)
def test_members__sorted__pages_have_each_member_once(
    sort: str, order: list[str], admin: Client, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("carl", "zoe", "anna"):
        make_person(name, "acme", Role.EDITOR)
    monkeypatch.setattr(members, "PAGE", 2)
    pages = walk(admin, f"/members.json?sort={sort}", "username")
    assert pages == [order[:2], order[2:4], order[4:]]
    shown = page(admin, f"/members?sort={sort}")
    assert "5 members</span>" in shown
    assert 'rel="next"' in shown
    monkeypatch.setattr(tables, "COUNTED", 3)
    assert "3+ members</span>" in page(admin, "/members")


def test_members__filtered__contain_only_matches(admin: Client, bob: Person) -> None:
    make_person("Bobby", "acme", Role.EDITOR)
    make_person("bobo", "other", Role.EDITOR)
    assert walk(admin, "/members.json?text=BOB", "username") == [["bob", "Bobby"]]
    assert walk(admin, "/members.json?text=bob&role=viewer", "username") == [["bob"]]
    assert walk(admin, "/members.json?role=editor", "username") == [["Bobby"]]
    shown = page(admin, "/members?text=nobody")
    assert "No members match." in shown
    assert "0 members</span>" in shown


def make_webhooks(alice: Person) -> None:
    for name in ("b", "a", "c"):
        create_webhook(
            actor=alice.actor, name=name, url=f"https://{name}.example.com/s/secret-{name}"
        )
    delivered = {"a": NOW - timedelta(1), "b": NOW}
    for name, moment in delivered.items():
        Webhook.objects.filter(name=name).update(last_delivered_at=moment)
    Webhook.objects.filter(name="c").update(status="paused")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "cab"),
        ("sort=name", "abc"),
        ("sort=-name", "cba"),
        ("sort=delivered", "bac"),
        ("sort=queued", "cab"),
        ("status=paused", "c"),
        ("status=active&sort=name", "ab"),
        ("text=B.Example", "b"),
        ("text=nothing", ""),
    ],
)
def test_webhooks__searched_and_sorted(
    query: str, found: str, admin: Client, alice: Person
) -> None:
    make_webhooks(alice)
    assert walk(admin, f"/webhooks.json?{query}", "name") == [[*found]]
    shown = page(admin, f"/webhooks?{query}")
    assert re.findall(r'<a data-row href="[^"]+">(.)</a>', shown) == [*found]
    assert ("No webhooks match." in shown) == (not found)


def test_webhooks__secret_part_of_a_url__cannot_be_found_by_a_viewer(
    admin: Client, viewer: Client, alice: Person
) -> None:
    make_webhooks(alice)
    assert walk(admin, "/webhooks.json?text=secret-b", "name") == [["b"]]
    assert walk(viewer, "/webhooks.json?text=secret-b", "name") == [[]]
    assert walk(viewer, "/webhooks.json?text=b.example", "name") == [["b"]]


def test_policies__searched_and_sorted(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("planner", "clerk"):
        put_policy(
            actor=alice.actor, scope="agent", name=name, body=raw({"min_recent_messages": 3})
        )
    assert walk(admin, "/policies.json", "agent_id") == [[None, "clerk", "planner"]]
    assert walk(admin, "/policies.json?sort=-name", "agent_id") == [["planner", "clerk", None]]
    assert walk(admin, "/policies.json?sort=changed", "agent_id") == [["clerk", "planner", None]]
    assert walk(admin, "/policies.json?text=PLAN", "agent_id") == [["planner"]]
    assert walk(admin, "/policies.json?text=workspace", "agent_id") == [[None]]
    assert "3 policies</span>" in page(admin, "/policies")
    assert "No agent with a policy of its own matches “x”" in page(admin, "/policies?text=x")
    monkeypatch.setattr(policies, "MOST", 2)
    shown = page(admin, "/policies")
    assert "The first 2 are shown" in shown
    assert "agent planner" not in shown


@pytest.mark.parametrize(
    ("path", "label", "first", "second"),
    [
        ("/tokens?role=editor", "Created", "descending", "/tokens?role=editor&sort=oldest"),
        ("/members?role=viewer", "Joined", "ascending", "/members?role=viewer&sort=newest"),
        ("/webhooks?sort=name", "Webhook", "ascending", "/webhooks?sort=-name"),
        ("/policies?text=the", "Applies to", "ascending", "/policies?text=the&sort=-name"),
    ],
)
def test_headings__of_a_list__order_it_and_keep_its_filters(
    path: str, label: str, first: str, second: str, admin: Client, alice: Person, bob: Person
) -> None:
    make_webhooks(alice)
    make_token(alice)
    assert headings(page(admin, path))[label] == (first, second)
    shown = page(admin, second)
    assert headings(shown)[label][0] == ("ascending" if first == "descending" else "descending")
    sort = second.rpartition("sort=")[2]
    assert f'<input type="hidden" name="sort" value="{sort}" form="filters">' in shown


def test_order__cursor_of_a_name_with_its_separator__continues_after_it(
    alice: Person, four: list[ApiToken]
) -> None:
    ApiToken.objects.filter(pk=four[0].pk).update(name="~a~1")
    order = paging.Order("name")
    rows = ApiToken.objects.all()
    first, after = order.page(rows, "", 3, str)
    second, end = order.page(rows, after, 3, str)
    assert {row.pk for row in first} | {row.pk for row in second} == {row.pk for row in four}
    assert (len(first), len(second), end) == (3, 1, "")
