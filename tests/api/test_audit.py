"""GET /audit: filters without an index examine a limited number of rows per page."""

from __future__ import annotations

import pytest

from state_admin.domain.access import Role
from state_admin.models import Change
from state_admin.rest import pagination
from tests.builders import Person, call, make_namespace, make_run, make_thread, make_token, put


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_audit__filter_that_matches_few_rows__continues_through_short_pages(
    order: str, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagination, "WINDOW", 4)
    make_namespace(alice.actor)
    for number in range(20):
        put(alice.actor, "notes", f"k{number % 10}", number)
    url, sizes, versions = f"/audit?key=k3&order={order}", [], []
    cursor = ""
    while cursor is not None:
        page = alice.api("GET", url + (f"&cursor={cursor}" if cursor else "")).json()
        sizes.append(len(page["items"]))
        versions += [row["version"] for row in page["items"]]
        cursor = page["next_cursor"]
    assert versions == ([1, 2] if order == "asc" else [2, 1])
    assert len(sizes) >= 5, "each page examines four rows"


def test_audit__restricted_token__examines_a_limited_number_of_rows(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagination, "WINDOW", 4)
    for name in ("notes", "other"):
        make_namespace(alice.actor, name)
    put(alice.actor, "notes", "k", 1)
    for number in range(9):
        put(alice.actor, "other", f"k{number}", 1)
    secret, _ = make_token(alice, Role.ADMIN, namespaces=["notes"])
    page = call(secret, "GET", "/audit").json()
    assert page["next_cursor"] is not None
    assert {row["namespace"] for row in page["items"]} <= {None, "notes"}


def test_audit__without_filters__a_page_is_full(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagination, "WINDOW", 2)
    make_namespace(alice.actor)
    for number in range(9):
        put(alice.actor, "notes", f"k{number}", 1)
    assert len(alice.api("GET", "/audit?limit=8").json()["items"]) == 8


@pytest.mark.parametrize(
    ("action", "found"),
    [("entry.put", {"entry.put"}), ("entry.*", {"entry.put", "entry.delete"}), ("*.put", {"entry.put"})],
)  # fmt: skip
def test_audit__action__is_a_kind_or_a_glob(alice: Person, action: str, found: set[str]) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    alice.api("DELETE", "/state/notes/k")
    rows = alice.api("GET", f"/audit?action={action}").json()["items"]
    assert {row["action"] for row in rows} == found


def test_heartbeat__with_a_reason_only__is_audited(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    alice.api("POST", "/runs/r1/heartbeat")
    path = "/runs/r1/heartbeat"
    answer = alice.api("POST", path, Change_Reason="a long call of a tool")
    assert answer.status_code == 200
    rows = alice.api("GET", "/audit?action=run.renew").json()["items"]
    assert [row["reason"] for row in rows] == ["a long call of a tool"]
    assert Change.objects.filter(kind="run.renew").count() == 1


def test_audit__action_that_matches_nothing__is_400(alice: Person) -> None:
    answer = alice.api("GET", "/audit?action=nosuch")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "action")
