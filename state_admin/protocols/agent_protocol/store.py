"""The store of the Agent Protocol: an item at (namespace labels, key) is the entry of the namespace
`agent_store` with the key `label.label..key`. Labels contain no full stop, so the first two in a
row are the separator."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from django.db.models import QuerySet
from django.http import HttpResponse

from state_admin.contract import agent_protocol as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import EMPTY_OBJECT, JSON, Fault, Raw
from state_admin.models import Entry
from state_admin.models.agent_store_sql import scan_namespaces, walk_namespaces
from state_admin.protocols.answers import answer
from state_admin.rest import etags
from state_admin.rest.bodies import no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import entries, entry_views, namespaces, search
from state_admin.services.batching import split_by_size
from state_admin.services.entry_views import EntryView
from state_admin.services.errors import BadRequest, Invalid, NotRegistered

from .endpoint import Size, bounds, read, refuse, take, too_large

STORE = "agent_store"
_SCHEMA = Raw('{"type":"object"}', {"type": "object"})
# Items that one filtered search examines. With more items the prefix must be longer.
MOST_SEEN = 10_000
_SLICE = 200
_COMPARE = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


@handles(contract.GET_ITEM)
def get_item(call: Endpoint) -> HttpResponse:
    if call.query.refresh_ttl:
        raise Invalid("refresh_ttl is not supported: reads do not extend the TTL")
    path = path_of(call.query.namespace.split("."), call.query.key)
    try:
        entry = entry_views.read_entry(actor=call.actor, namespace=STORE, key=path)
    except NotRegistered:  # nothing was stored yet
        return answer(None)
    return answer(show_item(entry) if entry.exists else None)


@handles(contract.PUT_ITEM)
def put_item(call: Endpoint) -> HttpResponse:
    body = take(call, contract.ItemPut)
    path = path_in(body)
    if "value" not in body:
        raise Invalid("value must be an object", [Fault("/value", "is required")])
    put = functools.partial(
        entries.put_entry,
        actor=call.actor,
        namespace=STORE,
        key=path,
        value=body["value"],
        precondition=etags.precondition(call.request),
        ttl_seconds=_seconds(body),
    )
    try:
        put()
    except NotRegistered:
        if not (call.actor.may(Role.ADMIN) and call.actor.sees_namespace(STORE)):
            raise
        namespaces.register_namespace(
            actor=call.actor, name=STORE, schema=_SCHEMA, default=EMPTY_OBJECT
        )
        put()
    return no_content()


@handles(contract.DELETE_ITEM)
def delete_item(call: Endpoint) -> HttpResponse:
    path = path_in(take(call, contract.ItemAddress))
    precondition = etags.precondition(call.request)
    with contextlib.suppress(NotRegistered):  # there is nothing to delete
        entries.delete_entry(actor=call.actor, namespace=STORE, key=path, precondition=precondition)
    return no_content()


@handles(contract.SEARCH_ITEMS)
def search_items(call: Endpoint) -> HttpResponse:
    body = take(call, contract.ItemSearch)
    refuse(body, "refresh_ttl")
    limit, offset = bounds(body)
    prefix = read(body, "namespace_prefix", [])
    if prefix:
        check_labels(prefix, "/namespace_prefix")
    item_filter = read(body, "filter", {})
    _check_filter(item_filter)
    items = (
        row
        for row in _items(call.actor, prefix, read(body, "query", ""))
        if not item_filter or fits(values.load(row.value or "null"), item_filter)
    )
    documents: list[JSON] = []
    size = Size()
    for row in islice(items, offset, offset + limit):
        documents.append(show_item(row))
        if size.exceeds(documents[-1]):
            raise too_large("items")
    return answer({"items": documents})


@handles(contract.LIST_NAMESPACES)
def list_namespaces(call: Endpoint) -> HttpResponse:
    body = take(call, contract.NamespaceSearch)
    limit, offset = bounds(body, limit=100)
    prefix, suffix = read(body, "prefix", []), read(body, "suffix", [])
    depth = read(body, "max_depth")
    try:
        home = namespaces.find_definition(call.actor, STORE)
    except NotRegistered:  # nothing was stored yet
        return answer({"namespaces": []})
    fixed = list(takewhile(lambda label: label != "*", prefix))
    filtered = suffix or fixed != prefix
    found = scan_namespaces(home.id, fixed) if filtered else walk_namespaces(home.id, fixed, depth)
    matching: dict[tuple[str, ...], None] = {}
    for labels in found:
        if _match_labels(prefix, labels) and _match_labels(suffix[::-1], labels[::-1]):
            matching[tuple(labels[:depth])] = None
            if len(matching) == offset + limit:
                break
    return answer({"namespaces": [[*each] for each in [*matching][offset:]]})


def path_of(labels: Sequence[str], key: str) -> str:
    """The key of an item's entry. Raises BadRequest or Invalid if the item is not valid."""
    check_labels(labels, "/namespace")
    path = f"{'.'.join(labels)}..{key}"
    if not key:
        raise BadRequest("key must not be empty")
    entries.check_address(STORE, path)
    return path


def path_in(body: dict[str, Raw]) -> str:
    return path_of(read(body, "namespace", []), read(body, "key", ""))


def check_labels(labels: Sequence[str], pointer: str) -> None:
    """Validate a namespace by LangGraph's rules."""
    if not labels or labels == [""]:
        raise BadRequest("namespace must not be empty")
    for index, label in enumerate(labels):
        if not label or "." in label:
            fault = Fault(f"{pointer}/{index}", "a label must not be empty or contain a full stop")
            raise Invalid(f"not a namespace label: '{label[:64]}'", [fault])
    if labels[0] == "langgraph":
        raise Invalid("the root label langgraph is reserved", [Fault(f"{pointer}/0", "reserved")])


def show_item(entry: EntryView | Entry) -> dict[str, JSON]:
    home, _, key = entry.key.partition("..")
    times = {"created_at": entry.created_at, "updated_at": entry.updated_at}
    return {
        "namespace": home.split("."),
        "key": key,
        "value": values.load(entry.value or "null"),
        "version": entry.version,
        **{name: at.isoformat() if at else None for name, at in times.items()},
    }


def _rows(actor: Actor, prefix: Sequence[str]) -> QuerySet[Entry]:
    rows = Entry.objects.visible_to(actor).live()
    rows = rows.filter(namespace__name=STORE, namespace__unregistered_at=None)
    return rows.filter(key__startswith=_start(prefix)) if prefix else rows


def _start(prefix: Sequence[str]) -> str:
    """The prefix of the keys of a namespace and of those below it."""
    return ".".join(prefix) + "."


def _items(actor: Actor, prefix: Sequence[str], text: str) -> Iterator[Entry]:
    """The items below a prefix, up to MOST_SEEN; Invalid if there are more."""
    if text:
        yield from _found(actor, prefix, text)
        return
    rows = _rows(actor, prefix)
    newest = rows.order_by("-updated_at", "-id").values_list("id", "size_bytes")[: MOST_SEEN + 1]
    sized = list(newest)
    for ids in split_by_size(sized[:MOST_SEEN], _SLICE):
        part = {row.pk: row for row in rows.filter(pk__in=ids)}
        yield from (part[each] for each in ids if each in part)
    if len(sized) > MOST_SEEN:
        raise _too_many()


def _found(actor: Actor, prefix: Sequence[str], text: str) -> Iterator[Entry]:
    after: int | None = None
    for _ in range(MOST_SEEN // _SLICE):
        try:
            page = search.search_entries(
                actor=actor,
                text=text,
                namespace=STORE,
                prefix=_start(prefix) if prefix else "",
                limit=_SLICE,
                after=after,
            )
        except NotRegistered:
            return
        yield from (hit.entry for hit in page.hits)
        after = page.after
        if after is None:
            return
    raise _too_many()


def _too_many() -> Invalid:
    return Invalid(f"more than {MOST_SEEN} items to filter; use a longer namespace_prefix")


def _seconds(body: dict[str, Raw]) -> int | None:
    if "ttl" not in body:
        return None
    minutes: float = body["ttl"].value
    if not 0 < minutes <= 60 * 24 * 3650:
        raise Invalid("ttl must be minutes, up to ten years", [Fault("/ttl", "out of range")])
    return max(1, round(minutes * 60))


def _check_filter(conditions: dict[str, JSON]) -> None:
    for name, condition in conditions.items():
        verbs = _verbs(condition)
        unknown = [verb for verb in verbs if verb not in (*_COMPARE, "$eq", "$ne")]
        if unknown:
            message = "an operator must be one of $eq, $ne, $gt, $gte, $lt, $lte"
            fault = Fault(f"/filter{values.pointer_of(name)}", message)
            raise Invalid(f"unknown operator of a filter: {unknown[0][:40]}", [fault])


def _verbs(condition: JSON) -> list[str]:
    """The operators of a condition; [] if the condition is a value to compare with."""
    if not isinstance(condition, dict):
        return []
    return [name for name in condition if name.startswith("$")]


def fits(value: JSON, conditions: dict[str, JSON]) -> bool:
    """Whether each member matches its condition. Numbers are compared as numbers, strings as
    strings; values that cannot be compared do not match."""
    return isinstance(value, dict) and all(
        _member_fits(value, name, condition) for name, condition in conditions.items()
    )


def _member_fits(value: dict[str, JSON], name: str, condition: JSON) -> bool:
    has = name in value
    member: JSON = value.get(name)
    verbs = _verbs(condition)
    if not verbs:
        return has and values.same(member, condition)
    for verb in verbs:
        other = condition[verb]
        if verb == "$eq":
            fine = has and values.same(member, other)
        elif verb == "$ne":
            fine = not has or not values.same(member, other)
        else:
            fine = has and _comparable(member, other) and _COMPARE[verb](member, other)
        if not fine:
            return False
    return True


def _comparable(a: JSON, b: JSON) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    return (isinstance(a, (int, float)) and isinstance(b, (int, float))) or (
        isinstance(a, str) and isinstance(b, str)
    )


def _match_labels(pattern: Sequence[str], labels: Sequence[str]) -> bool:
    return len(pattern) <= len(labels) and all(
        expected in ("*", label) for expected, label in zip(pattern, labels, strict=False)
    )
