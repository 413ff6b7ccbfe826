"""The lane answers batches as Django would, byte by byte, and leaves the same rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import Sum
from hypothesis import example, given
from hypothesis import strategies as st

from project import lane
from state_admin.models import Traffic, entries_sql
from state_admin.services import namespaces, quotas, throttles, traffic
from tests.builders import make_namespace

from .lanes import GENERATED, JSON, Header, Request, Side, bearer, check_same, shown

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def bare(sides: tuple[Side, Side]) -> None:
    """An untracked namespace."""
    for side in sides:
        make_namespace(side.actor, "bare", tracked=False)
        namespaces.find_definition(side.actor, "bare")


def send(body: Any, *headers: Header, by: str = "editor", path: str = "batch") -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return ("POST", f"/api/v1/state/{path}", (bearer(by), JSON, *headers), content)


def batch(*operations: Any, by: str = "editor", atomic: bool | None = None) -> Request:
    body = {} if atomic is None else {"atomic": atomic}
    return send({**body, "operations": list(operations)}, by=by)


def op(name: str, key: str = "k", namespace: str = "notes", **fields: Any) -> dict[str, Any]:
    return {"op": name, "namespace": namespace, "key": key, **fields}


def get(key: str = "k", namespace: str = "notes") -> dict[str, Any]:
    return op("get", key, namespace)


def put(key: str = "k", value: Any = 1, namespace: str = "notes", **fields: Any) -> dict[str, Any]:
    return op("put", key, namespace, value=value, **fields)


def statuses(answers: list[Any]) -> list[list[int]]:
    return [[each["status"] for each in json.loads(answer.body)["results"]] for answer in answers]


# What the lane takes -------------------------------------------------------------------------


def test_lane__batches_of_gets_or_of_puts__answers_like_django(sides: tuple[Side, Side]) -> None:
    requests = [
        batch(get()),
        batch(get("a"), get("k", "team"), get("a"), get("k", "short")),
        batch(put()),
        batch(put("b", [1, 2.50, "ü\u2028", None]), put("a", {"x": 1e2})),
        batch(put("b", 2), put("a", {"a": {}}, ttl_seconds=60)),
        batch(put("k", {"goal": "go"}, "team"), put("k", None, "short"), put("k", 1, "bare")),
        batch(put("k", {"goal": "gone"}, "team"), put("k", 3, "bare")),
        batch(put("b", 3, if_version=2), put("a", 3), atomic=True),
        batch(put("b", 4), put("k", 4), atomic=False),
        batch(*(get(key) for key in "abk"), atomic=False),
        batch(get("k", "bare"), by="viewer"),
        send({"operations": [put("c"), put("d")]}, ("Run-Id", "r-1"), ("Change-Reason", "für")),
        send({"operations": [put("c"), put("d")]}, ("Idempotency-Key", "one")),
        send({"operations": [get("c"), get("d")]}, ("Change-Reason", "none"), ("Run-Id", "r-1")),
        batch(get("c"), by="slow"),
        batch(*(put(f"many{n}", "x" * 100) for n in range(22))),
        batch(*(put(f"many{n}", "y" * 100) for n in range(22))),
        batch(*(get(f"many{n}") for n in range(100))),
        send({"operations": [put("c"), put("d")]}, ("Prefer", "return=minimal")),
        send({"operations": [put("e"), put("f")]}, ("Prefer", "return=minimal")),
        send({"operations": [get("c"), get("d")]}, ("Prefer", "return=minimal")),
        batch(put("g", 2, ttl_seconds=None)),
    ]
    answers = check_same(sides, requests)
    assert {answer.status for answer in answers} == {200}
    assert [set(each) for each in statuses(answers)[2:9]] == (
        [{201}, {201}, {200}, {201}, {200}, {200}, {200}]
    )
    assert sides[0].joined == len(requests) - 1  # the first call of a token with a rate limit


def test_lane__batch_of_many_or_large_values__is_left_to_django(sides: tuple[Side, Side]) -> None:
    check_same(sides, [batch(put("big1", "x" * 600_000)), batch(put("big2", "x" * 600_000))])
    joined = sides[0].joined
    check_same(sides, [batch(*(get(f"k{n}") for n in range(101))), batch(get("big1"), get("big2"))])
    assert sides[0].joined == joined
    check_same(sides, [batch(get("big1"))])
    assert sides[0].joined == joined + 1


def test_lane__values_that_exceed_a_response__are_refused_like_by_django(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_same(sides, [batch(put("a", "x" * 90), put("b", "x" * 90))])
    monkeypatch.setattr(entries_sql, "MOST_READ", 150)
    answers = check_same(sides, [batch(get("a"), get("b")), batch(get("a"), get("c"))])
    assert [answer.status for answer in answers] == [413, 200]


def test_lane__batch_of_many_gets__is_parsed_by_django_only(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "read_batch", None)
    answers = check_same(sides, [batch(*(get(f"k{n}") for n in range(101)))])
    assert answers[0].status == 200


def test_lane__batches_it_answers__count_as_traffic(sides: tuple[Side, Side]) -> None:
    check_same(sides, [batch(put()), batch(get()), batch(get(), by="slow")])
    traffic.counter.flush()
    counted = [
        Traffic.objects.timed()
        .filter(workspace_id=side.workspace.pk)
        .aggregate(reads=Sum("reads"), writes=Sum("writes"))
        for side in sides
    ]
    assert counted == [{"reads": 0, "writes": 3}] * 2
    assert sides[0].joined == 2


def test_lane__batch_by_a_token_with_a_rate_limit__is_one_call(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttles, "_LEASE", 60.0)
    answers = check_same(sides, [batch(get("a"), get("b"), by="slow")] * 7)
    left = [dict(answer.headers)[b"ratelimit"] for answer in answers]
    assert len(set(left)) == 7
    assert sides[0].joined == 4  # Django takes 1, 2 and 4 calls


def test_lane__idempotency_key_of_a_batch__is_replayed_by_django(sides: tuple[Side, Side]) -> None:
    key = ("Idempotency-Key", "one")
    create = send({"operations": [put("a"), put("b")]}, key)
    other = send({"operations": [put("a"), put("c")]}, key)
    reads = send({"operations": [get("a")]}, ("Idempotency-Key", "two"))
    answers = check_same(sides, [create, create, other, reads, reads])
    assert [answer.status for answer in answers] == [200, 200, 422, 200, 200]
    assert sides[0].joined == 1


# What it leaves to Django --------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        batch(),
        batch(get(), put()),
        batch(put(), put()),
        batch(put("k"), put("absent")),
        batch(put("k", if_version=0)),
        batch(put("new", if_version=0)),
        batch(put("k", if_version=7)),
        batch(put("k", if_version=7), atomic=False),
        batch(put("k"), put("absent", if_version=1)),
        batch(put("k", if_version=None)),
        batch(put("k", if_version=-1)),
        batch(put("k", ttl_seconds=0)),
        batch(put("k", tags=["t"])),
        batch(put("k", pinned=True)),
        batch(put("k", {"goal": 1}, "team")),
        batch(put("k", {"goal": 1}, "team"), put("k"), atomic=False),
        batch(put("k", 1, "nowhere")),
        batch(put("k", 1, "config.models")),
        batch(put(), by="viewer"),
        batch(put(), by="narrow"),
        batch(put(), by="slow"),
        batch(get("k", "nowhere")),
        batch(get(), get("k", "nowhere")),
        batch(get(), get("k", "nowhere"), atomic=False),
        batch(get(), by="narrow"),
        batch(get("bad\0key")),
        batch(get("")),
        batch(get("x" * 513)),
        batch(get("k", "no tes")),
        batch(op("delete")),
        batch(op("patch", patch={"a": 1})),
        batch(op("put")),
        batch(op("unknown")),
        batch({"op": "get"}),
        batch(op("get", unknown=1)),
        batch(1),
        batch(put("k", "x" * 70_000)),
        batch(*(put(f"k{n}") for n in range(25))),
        batch(*(put(f"k{n}", "x" * 1000) for n in range(20))),
        batch(*(get(f"k{n}") for n in range(257))),
        batch(*(put(f"k{n}") for n in range(1001))),
        send({"operations": None}),
        send({"operations": {}}),
        send({}),
        send([]),
        send(b""),
        send(b"{"),
        send(b'{"operations": [{"op": "put", "namespace": "notes", "key": "k", "value": NaN}]}'),
        send(b'{"operations": [{"op": "put", "op": "get", "namespace": "notes", "key": "k"}]}'),
        send(
            b'{"operations": [{"op":"put","namespace":"notes","key":"k","value":"\\ud800"}]}',
        ),
        send(
            b'{"operations": [{"op":"put","namespace":"notes","key":"k","value":"\\u0000"}]}',
        ),
        send({"operations": [get()], "atomic": "yes"}),
        send({"operations": [get()], "atomic": None}),
        send({"operations": [get()], "other": 1}),
        send({"operations": [get() | {"if_version": 7}]}),
        send({"operations": [put() | {"patch": {}}]}),
        send({"operations": [put() | {"patch_type": "json"}]}),
        send({"operations": [get()]}, path="batch?dry_run=true"),
        send({"operations": [get()]}, path="batch/"),
        send({"operations": [get()]}, path="%62atch"),
        send({"operations": [get()]}, ("If-Match", '"1"')),
        send({"operations": [get()]}, ("If-None-Match", '"1"')),
        send({"operations": [put()]}, ("X-Unlisted", "1")),
        send({"operations": [put()]}, ("Change-Reason", "x" * 1001)),
        send({"operations": [get()]}, ("Change-Reason", "x" * 1001)),
        send({"operations": [put()]}, ("Run-Id", "x" * 600)),
        send({"operations": [put()]}, ("Idempotency-Key", "x" * 256)),
        send({"operations": [get()]}, ("Idempotency-Key", "x")),
        ("POST", "/api/v1/state/batch", (bearer(),), b'{"operations":[]}'),
        ("POST", "/api/v1/state/batch", (JSON,), b'{"operations":[]}'),
        ("PUT", "/api/v1/state/batch", (bearer(), JSON), b'{"operations":[]}'),
    ],
    ids=lambda request: " ".join(map(str, request))[:140],
)
def test_lane__any_other_batch__is_django_s(sides: tuple[Side, Side], request_: Request) -> None:
    check_same(sides, [batch(put())])
    check_same(sides, [request_])
    assert sides[0].joined == 1


def test_lane__quota__is_watched_by_django(sides: tuple[Side, Side]) -> None:
    for side in sides:
        quotas.set_quota(actor=side.actor, entries=2, bytes=None, threads=None)
    answers = check_same(sides, [batch(put("a"), put("b")), batch(put("c"), put("d"))])
    assert [answer.status for answer in answers] == [200, 403]
    assert sides[0].joined == 0


def test_lane__redacted_part__is_shown_by_django(sides: tuple[Side, Side]) -> None:
    check_same(sides, [batch(put("k", {"$redacted": True})), batch(get(), get("other"))])


# Generated requests ----------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=4
)
NAMESPACES = st.sampled_from(["notes", "notes", "notes", "team", "short", "bare", "nowhere", "a b"])
KEYS = st.sampled_from(["a", "b", "c", "a/b", "ü", "", "x" * 513])
PUTS = st.fixed_dictionaries(
    {"op": st.just("put"), "namespace": NAMESPACES, "key": KEYS, "value": VALUES},
    optional={
        "if_version": st.sampled_from([0, 1, 2, 3, None]),
        "ttl_seconds": st.sampled_from([1, 60, 0, None]),
        "tags": st.just(["t"]),
        "pinned": st.booleans(),
    },
)
PLAIN = st.fixed_dictionaries(
    {
        "op": st.just("put"),
        "namespace": st.sampled_from(["notes", "bare"]),
        "key": st.sampled_from("abcdef"),
        "value": VALUES,
    }
)
GETS = st.fixed_dictionaries({"op": st.just("get"), "namespace": NAMESPACES, "key": KEYS})
OTHERS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["delete", "patch", "get", "put", "none"]),
        "namespace": NAMESPACES,
        "key": KEYS,
    },
    optional={"patch": VALUES, "patch_type": st.sampled_from(["merge", "json", "update", 1])},
)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {
            "operations": st.one_of(
                st.lists(PLAIN, max_size=6, unique_by=lambda o: (o["namespace"], o["key"])),
                st.lists(PLAIN, max_size=6, unique_by=lambda o: (o["namespace"], o["key"])),
                st.lists(GETS, max_size=6),
                st.lists(PUTS, max_size=3),
                st.lists(GETS | PUTS | OTHERS, max_size=4),
            )
        },
        optional={"atomic": st.sampled_from([True, False, None, 1]), "other": SCALARS},
    ).map(lambda body: json.dumps(body, ensure_ascii=False).encode(errors="replace")),
    st.binary(max_size=20),
)
HEADERS = st.lists(
    st.sampled_from(
        [("If-Match", '"1"'), ("Run-Id", "r1"), ("Run-Id", "x" * 600), ("Change-Reason", "why"),
         ("Idempotency-Key", "same"), ("X-Unlisted", "1"), ("Accept", "text/html"),
         ("Prefer", "return=minimal")]
    ),
    max_size=1,
)  # fmt: skip
REQUESTS = st.builds(
    lambda body, headers, by: send(body, *headers, by=by),
    BODIES,
    HEADERS,
    st.sampled_from(["editor", "editor", "editor", "viewer", "narrow"]),
)


@pytest.mark.usefixtures("sides")
@GENERATED
@given(requests=st.lists(REQUESTS, min_size=1, max_size=6))
@example(requests=[batch(put("a"), put("b")), batch(put("b"), put("a")), batch(get("a"))])
def test_lane__generated_batches__are_answered_like_django(
    sides: tuple[Side, Side], requests: list[Request]
) -> None:
    check_same(sides, requests)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OperationalError("gone"), KeyError("bug")], ids=str)
def test_lane__batch_whose_outcome_is_unknown__is_not_repeated(
    error: Exception, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("state_admin.services.joined_writes.entries_sql.putting_existing", fail)
    monkeypatch.setattr("state_admin.services.entries.entries_sql.put_entries", fail)
    joined, apart = (side.send(*batch(put("a"), put("b"))) for side in sides)
    assert sides[0].joined == 1
    assert shown(joined) == shown(apart)
    assert joined.status == (503 if isinstance(error, OperationalError) else 500)


def test_lane__batch_of_gets_that_fails__is_django_s(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("state_admin.services.entry_views.entries_sql.reading_entries", fail)
    check_same(sides, [batch(get())])
    assert sides[0].joined == 0
