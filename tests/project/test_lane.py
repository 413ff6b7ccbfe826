"""The lane answers what Django would, byte by byte, and leaves the same rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.db.models import Sum
from hypothesis import example, given
from hypothesis import strategies as st

from state_admin.models import Traffic
from state_admin.services import quotas, throttles, traffic

from .lanes import GENERATED, JSON, Header, Request, Side, bearer, check_same, shown

pytestmark = pytest.mark.django_db


def get(path: str = "notes/k", *headers: Header, by: str = "editor") -> Request:
    return ("GET", f"/api/v1/state/{path}", (bearer(by), *headers), b"")


def put(
    path: str = "notes/k", body: Any = b'{"value": {"a": 1}}', *headers: Header, by: str = "editor"
) -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ("PUT", f"/api/v1/state/{path}", (bearer(by), JSON, *headers), content)


def patch(
    path: str = "notes/k",
    body: Any = None,
    *headers: Header,
    kind: str = "merge-patch",
    by: str = "editor",
) -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    media_type = ("Content-Type", f"application/{kind}+json")
    return ("PATCH", f"/api/v1/state/{path}", (bearer(by), media_type, *headers), content)


UPDATE = "vnd.commonhold.update"

# What the lane takes -------------------------------------------------------------------------


def test_lane__plain_reads_and_writes__answers_like_django(sides: tuple[Side, Side]) -> None:
    requests = [
        get(),  # the default
        put(),
        put(body={"value": [1, 2.50, "ü\u2028", None], "ttl_seconds": 3600}),
        put("short/k"),
        put("short/k", {"value": 1, "ttl_seconds": None}),
        put("team/agent::a%2Fb", {"value": {"goal": "go"}}),
        put("team/agent::a/b", {"value": {"goal": "gone"}}),
        put("notes/k", {"value": 1}, ("If-Match", '"2"')),
        put("notes/k", {"value": 2}, ("If-Match", 'W/"3"'), ("Run-Id", "r-1")),
        put("notes/k", {"value": 3}, ("Change-Reason", "für später")),
        get(),
        get("notes/k", ("If-None-Match", '"5"')),
        get("notes/k", ("If-None-Match", 'W/"5", "5"')),
        get("notes/k", ("If-None-Match", 'W/"5"')),
        get("notes/k", ("If-None-Match", '"4"')),
        get("notes/k", by="viewer"),
        get("notes/k", ("User-Agent", "x"), ("Traceparent", "00-0-0-00"), by="slow"),
        get("notes/k", ("Run-Id", "r-1")),
        get("notes/k", JSON),
        patch("team/agent::a/b", {"goal": None, "count": 1}),
        patch("team/agent::a/b", [{"op": "add", "path": "/count", "value": 2}], kind=UPDATE),
        patch("team/agent::a/b", [{"op": "test", "path": "/count", "value": 3}], kind="json-patch"),
        patch("team/agent::a/b", {"count": 9}, ("If-Match", '"5"'), ("Run-Id", "r-1")),
        patch("short/k", {"a": 1}),
        put("notes/k", {"value": 4}, ("Prefer", "return=minimal")),
        patch("team/agent::a/b", {"count": 4}, ("Prefer", "return=minimal")),
        put("notes/new", {"value": 1}, ("Prefer", "return=minimal"), ("Idempotency-Key", "new")),
        put("notes/k", {"value": 5}, ("Prefer", "respond-async, return=representation")),
        get("notes/k", ("Prefer", "return=minimal")),
    ]
    answers = check_same(sides, requests)
    assert [answer.status for answer in answers] == (
        [
            200,
            201,
            200,
            201,
            200,
            201,
            200,
            200,
            200,
            200,
            200,
            304,
            304,
            304,
            *[200] * 10,
            204,
            204,
            204,
            200,
            200,
        ]
    )
    assert sides[0].joined == len(requests) - 1  # the first call of a token with a rate limit


def test_lane__token_with_a_rate_limit__is_joined_for_the_calls_that_the_process_holds(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    answers = check_same(sides, [get(by="slow")] * 7)
    left = [dict(answer.headers)[b"ratelimit"] for answer in answers]
    assert len(set(left)) == 7
    assert sides[0].joined == 4  # Django takes 1, 2 and 4 calls


def test_lane__calls_it_answers__count_as_traffic_and_against_the_limit(
    sides: tuple[Side, Side],
) -> None:
    check_same(sides, [put(), get(), get(by="slow"), get(by="slow")])
    traffic.counter.flush()
    counted = [
        Traffic.objects.timed()
        .filter(workspace_id=side.workspace.pk)
        .aggregate(reads=Sum("reads"), writes=Sum("writes"))
        for side in sides
    ]
    assert counted == [{"reads": 3, "writes": 1}] * 2
    limited = sides[0].send(*get(by="slow"))
    assert dict(limited.headers)[b"ratelimit"].startswith(b'"token";r=597')


def test_lane__cors_is_on__has_its_header(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CORS_ALLOWED_ORIGINS", ["https://app.example"])
    answer = sides[0].send(*get())
    assert sides[0].joined == 1
    assert (b"vary", b"origin") in answer.headers


def test_lane__idempotency_key__is_kept_and_replayed_by_django(sides: tuple[Side, Side]) -> None:
    key, other = ("Idempotency-Key", "one"), ("Idempotency-Key", "two")
    create = put("team/a%2fb~c", {"value": {"goal": "go"}}, key)
    check_same(sides, [create, patch("team/a%2fb~c", {"count": 1}, other), put("notes/k")])
    assert sides[0].joined == 3
    answers = check_same(
        sides,
        [
            create,
            create,
            put("team/a%2fb~c", {"value": {"goal": "gone"}}, key),  # another request
            put("notes/k", {"value": 1}, ("Idempotency-Key", "x" * 256)),
        ],
    )
    assert [answer.status for answer in answers] == [201, 201, 422, 400]
    assert sides[0].joined == 3


# What it leaves to Django --------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        get("nowhere/k"),
        get("notes/k?at_version=1"),
        get("notes/k?unknown=1"),
        get("notes/"),
        get("notes"),
        get("no%20tes/k"),
        get("notes/bad%00key"),
        get("notes/k", ("X-Unlisted", "1")),
        get("notes/k", ("Idempotency-Key", "1")),
        get("notes/k", ("Origin", "https://app.example")),
        get("notes/k", ("Cookie", "a=b")),
        get("notes/k", ("If-Match", '"1"')),
        get("notes/k", by="narrow"),
        ("GET", "/api/v1/state/notes/k", (), b""),
        ("GET", "/api/v1/state/notes/k", (("Authorization", "Basic x"),), b""),
        ("GET", "/api/v1/state/notes/k", (("Authorization", "Bearer ch_x_y"),), b""),
        ("GET", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        ("HEAD", "/api/v1/state/notes/k", (bearer(),), b""),
        ("DELETE", "/api/v1/state/notes/k", (bearer(),), b""),
        ("POST", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        patch("notes/absent", {"a": 1}),
        patch("notes/k", {"a": 1}, kind="unknown"),
        patch("notes/k", b"{"),
        patch("notes/k", {"a": 1}, by="viewer"),
        ("PATCH", "/api/v1/state/notes/k", (bearer(), JSON), b"{}"),
        put("nowhere/k"),
        put("config.models/k"),
        put("team/k", {"value": {"goal": 1}}),
        put("notes/k", b""),
        put("notes/k", b"{"),
        put("notes/k", b'{"value": 1, "value": 2}'),
        put("notes/k", b'{"value": "\\ud800"}'),
        put("notes/k", b'{"value": NaN}'),
        put("notes/k", {"value": 1, "extra": 2}),
        put("notes/k", {"values": 1}),
        put("notes/k", {"value": 1, "ttl_seconds": -1}),
        put("notes/k", {"value": 1, "tags": ["a"]}),
        put("notes/k", {"value": 1, "pinned": True}),
        put("notes/k", {"value": "x" * 70_000}),
        put("notes/k?dry_run=true"),
        put("notes/k", {"value": 1}, ("If-Match", '"7"')),
        put("notes/k", {"value": 1}, ("If-Match", '"0"')),
        put("notes/k", {"value": 1}, ("If-Match", "7")),
        put("notes/k", {"value": 1}, ("If-Match", '"1"'), ("On-Conflict", "merge")),
        put("notes/k", {"value": 1}, ("If-None-Match", "*")),
        put("notes/k", {"value": 1}, ("If-Changed", "true")),
        put("notes/k", {"value": 1}, ("Run-Id", "x" * 600)),
        put("notes/k", {"value": 1}, ("Change-Reason", "x" * 1001)),
        put("notes/k", {"value": 1}, by="viewer"),
        put("notes/k", {"value": 1}, by="narrow"),
        put("notes/k", {"value": 1}, by="slow"),
        (
            "PUT",
            "/api/v1/state/notes/k",
            (bearer(), ("Content-Type", "text/plain")),
            b'{"value":1}',
        ),
        ("PUT", "/api/v1/state/notes/k", (bearer(),), b'{"value":1}'),
    ],
    ids=lambda request: " ".join(map(str, request))[:120],
)
def test_lane__anything_unusual__is_django_s(sides: tuple[Side, Side], request_: Request) -> None:
    check_same(sides, [request_])
    assert sides[0].joined == 0


def test_lane__host_that_is_not_served__is_django_s(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["elsewhere"])
    assert [side.send(*get()).status for side in sides] == [421, 421]


def test_lane__quota__is_watched_by_django(sides: tuple[Side, Side]) -> None:
    for side in sides:
        quotas.set_quota(actor=side.actor, entries=1, bytes=None, threads=None)
    answers = check_same(sides, [put("notes/a"), put("notes/b")])
    assert [answer.status for answer in answers] == [201, 403]
    assert sides[0].joined == 0


# Generated requests ----------------------------------------------------------------------------

PATHS = st.sampled_from(
    ["notes/k", "notes/k", "notes/l", "team/k", "short/k", "nowhere/k", "notes/a%2Fb", "notes/a/b",
     "notes/%6b", "notes//k", "no~tes/k", "notes/k?at_version=1", "notes"]
)  # fmt: skip
HEADERS = st.lists(
    st.sampled_from(
        [("If-Match", '"1"'), ("If-Match", '"2"'), ("If-Match", "junk"), ("If-None-Match", "*"),
         ("If-None-Match", '"1"'), ("If-Changed", "true"), ("On-Conflict", "merge"),
         ("Run-Id", "r1"), ("Run-Id", "x" * 600), ("Change-Reason", "why"), ("Accept", "text/html"),
         ("Prefer", "return=minimal"), ("Idempotency-Key", "same"), ("X-Unlisted", "1"),
         ("Cookie", "a=b")]
    ),
    max_size=2,
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=5
)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {"value": VALUES},
        optional={
            "ttl_seconds": st.sampled_from([None, 0, 60, -1, "x"]),
            "tags": st.just(["t"]),
            "other": SCALARS,
        },
    ).map(lambda body: json.dumps(body, ensure_ascii=False).encode(errors="replace")),
    st.binary(max_size=20),
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "append", "union", "remove", "set", "test", "replace"]),
            "path": st.sampled_from(["", "/a", "/0", "/-", "a"]),
        },
        optional={"value": VALUES},
    ),
    max_size=3,
)
REQUESTS = st.one_of(
    st.builds(
        lambda path, body, kind, headers: patch(path, body, *headers, kind=kind),
        PATHS,
        OPERATIONS | VALUES,
        st.sampled_from(["merge-patch", "json-patch", UPDATE, "unknown"]),
        HEADERS,
    ),
    st.builds(
        lambda path, headers, by: get(path, *headers, by=by),
        PATHS,
        HEADERS,
        st.sampled_from(["editor", "viewer", "narrow"]),
    ),
    st.builds(
        lambda path, body, headers, by: put(path, body, *headers, by=by),
        PATHS,
        BODIES,
        HEADERS,
        st.sampled_from(["editor", "editor", "viewer", "narrow"]),
    ),
)


@pytest.mark.usefixtures("sides")
@GENERATED
@given(requests=st.lists(REQUESTS, min_size=1, max_size=6))
@example(requests=[put(), get(), put("notes/k", {"value": 1}, ("If-Match", '"1"'))])
def test_lane__generated_requests__are_answered_like_django(
    sides: tuple[Side, Side], requests: list[Request]
) -> None:
    """The examples share the two workspaces: what one leaves, the next meets on both sides."""
    check_same(sides, requests)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OperationalError("gone"), KeyError("bug")], ids=str)
def test_lane__write_whose_outcome_is_unknown__is_not_repeated(
    error: Exception, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("state_admin.services.joined_writes.entries_sql.putting_existing", fail)
    monkeypatch.setattr("state_admin.services.entries.entries_sql.put_entry", fail)
    joined, apart = (side.send(*put()) for side in sides)
    assert sides[0].joined == 1
    assert shown(joined) == shown(apart)
    assert joined.status == (503 if isinstance(error, OperationalError) else 500)


def test_lane__read_that_fails__is_django_s(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("state_admin.services.entry_views.entries_sql.reading_entries", fail)
    check_same(sides, [get()])
    assert sides[0].joined == 0
