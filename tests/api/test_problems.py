"""Every refusal is a problem document; no invalid input causes a 500."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.urls import reverse

from project.postgres.base import is_dead
from state_admin.services import errors
from state_admin.services.errors import problem_types
from state_admin.services.problem_statuses import problem_of_status
from tests.builders import Person, call, entry_path, make_namespace, make_thread, put
from tests.project.running import wait_for
from tests.services.faults import fingerprint

DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"value": "a\\u0000b"}', 422),
        (b'{"value": {"a\\u0000": 1}}', 422),
        (b'{"value": "\\ud800"}', 422),
        (b'{"value": "\\udc00\\ud800"}', 422),
        (b'{"value": ' + DEEP + b"}", 422),
        (b'{"value": {"a": 1, "a": 2}}', 422),
        (b'{"value": 1e400}', 422),
        (b'{"value": ' + b"9" * 1001 + b"}", 422),
        (b'{"value": NaN}', 400),
        (b'{"value": Infinity}', 400),
        (b'{"value": 01}', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b'{"value": "\xff"}', 400),
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"value": 1, "valu": 2}', 400),
        (b"{}", 422),
        (b'{"value": 1, "ttl_seconds": 0}', 422),
        (b'{"value": 1, "ttl_seconds": "soon"}', 422),
        (b'{"value": 1, "tags": "a"}', 422),
        (b'{"value": [' + b",".join([b"1"] * 10_001) + b"]}", 422),
    ],
)
def test_put__json_that_cannot_be_stored__is_a_problem_and_nothing_is_stored(
    alice: Person, body: bytes, status: int
) -> None:
    make_namespace(alice.actor)
    answer = alice.api("PUT", "/state/notes/k", body)
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["type"].startswith("/problems/")
    assert answer.json()["instance"] == answer["X-Request-ID"]
    assert alice.api("GET", "/state/notes/k").json()["exists"] is False


@pytest.mark.parametrize(
    "text",
    [
        '"a"',
        "null",
        "1.0",
        "1.10",
        "1e2",
        "-0.0",
        "123456789012345678901234567890",
        '{"z":1,"a":{"b":[1,null,true]}}',
        '"\\u00e9 \\ud83d\\ude42"',
        '{ "spaced" : [ 1 , 2 ] }',
    ],
)
def test_put__any_json__is_returned_byte_for_byte(alice: Person, text: str) -> None:
    make_namespace(alice.actor)
    alice.api("PUT", "/state/notes/k", f'{{"value": {text}}}'.encode())
    read = alice.api("GET", "/state/notes/k")
    assert read.content.decode().endswith(f'"value":{text}}}')


def test_put__with_if_match__is_returned_byte_for_byte(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    text = '{"z":1.10,"a":[1e2, true],"b":123456789012345678901234567890}'
    alice.api("PUT", "/state/notes/k", f'{{"value": {text}}}'.encode(), If_Match='"1"')
    read = alice.api("GET", "/state/notes/k").content.decode()
    assert read.endswith(f'"value":{text}}}')


@pytest.mark.parametrize("key", ["a\x00b", "a\nb", "a\x7f", "x" * 513, "é" * 257])
def test_key__control_character_or_too_long__is_400(alice: Person, key: str) -> None:
    make_namespace(alice.actor)
    answer = alice.api("PUT", entry_path("notes", key), {"value": 1})
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("key", [" a ", "a/b//c", "..", "a%2Fb", "100%", "🙂", "é" * 256])
def test_key__any_other_text__is_valid(alice: Person, key: str) -> None:
    make_namespace(alice.actor)
    assert alice.api("PUT", entry_path("notes", key), {"value": key}).status_code == 201
    assert alice.api("GET", entry_path("notes", key)).json()["key"] == key


def test_value__beyond_the_limit_of_the_namespace__is_413(alice: Person) -> None:
    make_namespace(alice.actor, max_value_bytes=100)
    answer = alice.api("PUT", "/state/notes/k", {"value": "x" * 100})
    assert answer.status_code == 413
    assert answer.json()["limit"] == 100


def test_path__unknown__is_404_after_authentication(alice: Person) -> None:
    assert call(None, "GET", "/nonsense").status_code == 401
    answer = alice.api("GET", "/nonsense")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_method__not_offered__is_405_with_allow(alice: Person) -> None:
    answer = alice.api("POST", "/state/notes/k", {"value": 1})
    assert (answer.status_code, answer.json()["type"]) == (405, "/problems/method-not-allowed")
    assert "PUT" in answer["Allow"]


def test_query__unknown_parameter__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    answer = alice.api("GET", "/state/notes?prefx=thread")
    assert answer.status_code == 400
    assert answer.json()["detail"] == "unknown query parameter: prefx"


def test_cursor__of_other_filters__is_refused(alice: Person) -> None:
    make_namespace(alice.actor)
    for number in range(3):
        put(alice.actor, "notes", f"k{number}", number)
    cursor = alice.api("GET", "/state/notes?limit=1").json()["next_cursor"]
    assert alice.api("GET", f"/state/notes?limit=1&cursor={cursor}").status_code == 200
    assert alice.api("GET", f"/state/notes?limit=1&prefix=k&cursor={cursor}").status_code == 400


UPDATE = "application/vnd.commonhold.update+json"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "told"),
    [
        (
            "PUT",
            "/state/notes/k",
            {"goal": "x"},
            {},
            ["unknown field: goal", "/value: is required."],
        ),
        (
            "GET",
            "/state?cursor=abc",
            None,
            {},
            ["cursor must be", "of a response unchanged", '"parameter":"cursor"'],
        ),
        ("GET", "/changes?cursor=abc", None, {}, ["cursor must be", "of a response unchanged"]),
        ("GET", "/threads/no", None, {}, ["thread not found: no", "POST /api/v1/threads"]),
        ("POST", "/threads/t1/runs", {}, {}, ["has an active run: t1", "active_run_id"]),
        (
            "PUT",
            "/state/notes/k",
            {"value": "x" * 99},
            {},
            ["the limit of notes is 50", "max_value_bytes"],
        ),
        ("PUT", "/state/notes/k", {"value": {"b": 1}}, {"If_Match": '"1"'}, ["On-Conflict: merge"]),
        (
            "PATCH",
            "/state/notes/k",
            {"op": "push", "path": "/a", "value": 1},
            {"content_type": UPDATE},
            ["unknown op 'push'", "append"],
        ),
        (
            "PATCH",
            "/state/notes/k",
            {"op": "set", "path": "a", "value": 1},
            {"content_type": UPDATE},
            ["must be a JSON Pointer", "/a/0"],
        ),
        ("PUT", "/namespaces/n2", {"schema": {"type": "str"}}, {}, ["/type", 'boolean\\"']),
        (
            "PUT",
            "/namespaces/n2",
            {"schema": {"properties": {"type": 5}}},
            {},
            ["/properties/type", "not of types"],
        ),
        ("PUT", "/state-keys/k1", {"reducer": "sum"}, {}, ["/reducer", 'union\\"']),
    ],
)
def test_mistake__of_a_newcomer__is_named_with_what_to_do(
    alice: Person, method: str, path: str, body: Any, headers: dict[str, str], told: list[str]
) -> None:
    make_namespace(alice.actor, max_value_bytes=50)
    put(alice.actor, "notes", "k", {})
    put(alice.actor, "notes", "k", {"a": 1})
    make_thread(alice.actor, "t1")
    alice.api("POST", "/threads/t1/runs", {})
    answer = alice.api(method, path, body, **headers)
    assert 400 <= answer.status_code < 500
    for words in told:
        assert words in answer.content.decode()


def test_problem_types__slug_and_title__are_each_used_once() -> None:
    kinds = list(problem_types())
    assert len(kinds) > 20
    assert all("slug" in vars(kind) and 400 <= kind.status < 600 for kind in kinds)
    assert len({kind.slug for kind in kinds}) == len({kind.title for kind in kinds}) == len(kinds)


def test_document__data_and_hint__cannot_replace_the_standard_members() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    data = {"type": "x", "title": "x", "status": 1, "instance": "x", "until": moment}
    problem = errors.Conflict("the message", hint="Do this.", **data)
    assert problem.document("r-1") == {
        "type": "/problems/conflict",
        "title": "Conflict with the current state",
        "status": 409,
        "detail": "the message",
        "hint": "Do this.",
        "instance": "r-1",
        "until": "2026-01-02T03:04:05.000000Z",
    }


def test_problem__two_occurrences__have_one_title_and_different_details(alice: Person) -> None:
    one, two = (alice.api("GET", f"/state/{name}/global").json() for name in ("n1", "n2"))
    assert (one["type"], one["title"], one["status"]) == (two["type"], two["title"], two["status"])
    assert (one["title"], one["detail"]) == (
        "Namespace not registered",
        "profile key not registered: n1",
    )
    assert "PUT /api/v1/namespaces/n1," in one["hint"], "the name, not a placeholder"


def test_revision_conflict__from_a_header__is_412_in_status_and_body(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    answer = alice.api("POST", "/threads/t1/restore", {"revision": 0}, If_Match='"7"')
    assert (answer.status_code, answer["ETag"]) == (412, '"0"')
    assert answer.json()["type"] == "/problems/revision-conflict"
    assert answer.json()["status"] == 412


def run_too_long(**_: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(60)")


def pause_too_long(**_: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
        wait_for(lambda: is_dead(connection.connection), "PostgreSQL ends the transaction")
        cursor.execute("SELECT 1")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("read", "detail"),
    [
        (run_too_long, "a database statement took too long and was cancelled"),
        (pause_too_long, "the transaction paused for too long and was rolled back"),
    ],
)
def test_database__timeout__is_503_with_retry_after(
    read: Any, detail: str, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    from state_admin.services import entry_views

    with monkeypatch.context() as patched:
        patched.setattr(entry_views, "read_entry", read)
        answer = alice.api("GET", "/state/notes/k")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["detail"] == detail
    assert answer.json()["hint"]
    # After a request, as the web server does.
    connection.close_if_unusable_or_obsolete()
    assert alice.api("GET", "/me").status_code == 200


def test_crash__unexpected_exception__is_a_500_problem_without_its_text(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    from state_admin.services import entry_views

    def crash(**_: object) -> None:
        raise RuntimeError("secret-canary")

    monkeypatch.setattr(entry_views, "read_entry", crash)
    answer = alice.api("GET", "/state/notes/k")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/internal")
    assert answer["Content-Type"] == "application/problem+json"
    assert "secret-canary" not in answer.content.decode()


def test_reason__header_in_utf8__is_stored_in_the_history(alice: Person) -> None:
    make_namespace(alice.actor)
    reason = "weil es stimmt: für Zoë".encode().decode("latin-1")
    alice.api("PUT", "/state/notes/k", {"value": 1}, Change_Reason=reason)
    kept = alice.api("GET", "/history/notes/k").json()["items"][0]
    assert kept["reason"] == "weil es stimmt: für Zoë"


def test_schema__document__is_served_without_a_token(db: None) -> None:
    from django.test import Client

    assert Client().get(reverse("api:schema")).status_code == 200


# The database refuses ---------------------------------------------------------------------------


@pytest.fixture
def unprivileged(alice: Person) -> Iterator[Person]:
    """The server's role may do anything except write audit rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE ROLE no_audit; GRANT ALL ON ALL TABLES IN SCHEMA public TO no_audit;"
            " GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO no_audit;"
            " REVOKE INSERT ON audit FROM no_audit; SET ROLE no_audit"
        )
        yield alice
        cursor.execute("RESET ROLE; DROP OWNED BY no_audit; DROP ROLE no_audit")


@pytest.fixture
def read_only(alice: Person) -> Iterator[Person]:
    """The database is read-only, as on a standby."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
        yield alice
        connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("refused", ["unprivileged", "read_only"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/state/notes/k", {"value": 1}),
        ("PUT", "/namespaces/more", {"schema": {}}),
        ("POST", "/threads", {"id": "t1"}),
    ],
)
def test_write__refused_by_the_database__is_503_and_nothing_is_stored(
    alice: Person, refused: str, method: str, path: str, body: Any, request: Any
) -> None:
    """Without its audit row a write must not be stored."""
    make_namespace(alice.actor)
    before = fingerprint()
    request.getfixturevalue(refused)
    answer = alice.api(method, path, body)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
    assert answer["Retry-After"] == "1"
    assert fingerprint() == before
    # After a request, as the web server does. The next connection may lead to another server.
    connection.close_if_unusable_or_obsolete()
    assert (connection.connection is None) == (refused == "read_only")


@pytest.mark.parametrize(
    ("status", "slug"),
    [(405, "method-not-allowed"), (406, "not-acceptable"), (418, "bad-request"), (502, "internal")],
)
def test_problem_of_status__error_of_a_library__has_the_type_of_its_status(
    status: int, slug: str
) -> None:
    assert problem_of_status(status, "no").document()["type"] == f"/problems/{slug}"


def test_not_acceptable__of_a_library__keeps_its_status() -> None:
    document = problem_of_status(406, "no").document()
    assert (document["type"], document["status"]) == ("/problems/not-acceptable", 406)


def test_config__invalid_id__is_400_for_every_read(alice: Person) -> None:
    for path in ("", "/history", "/dependents"):
        answer = alice.api("GET", f"/config/providers/%20{path}")
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/bad-request"), path
