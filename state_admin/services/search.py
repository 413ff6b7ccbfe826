"""Finds live entries by the words of their keys and values (docs/adr/0006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from state_admin.domain import search, values
from state_admin.domain.access import Actor
from state_admin.domain.scopes import ScopeKind
from state_admin.domain.search import BadQuery, Condition, Match
from state_admin.domain.values import Fault
from state_admin.models import Entry, creation_times
from state_admin.models import search as search_models

from .batching import split_by_size
from .entry_views import is_valid
from .errors import Invalid
from .namespaces import find_definition

# The maximum number of values that one search reads, and of their bytes times the number of terms and
# conditions: it compares each word with each term. A search with more candidates returns a shorter
# page; the next page continues there.
MOST_OPENED = 2000
MOST_WORK = 64 * 1024 * 1024
_FIRST_CANDIDATES = 200
_MOST_VALUES_PER_QUERY = 500


@dataclass(frozen=True)
class FoundEntry:
    """An entry that matches the query, and the places where it matches."""

    entry: Entry
    matches: list[Match]

    @property
    def valid(self) -> bool:
        """Whether the current schema accepts the value."""
        return is_valid(self.entry)


@dataclass(frozen=True)
class SearchPage:
    """Hits, newest entry first. Pass `after` to get the next page; None on the last one."""

    hits: list[FoundEntry]
    after: int | None


def search_entries(
    *,
    actor: Actor,
    text: str = "",
    where: Sequence[Condition] = (),
    namespace: str = "",
    prefix: str = "",
    scope_kind: ScopeKind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tag: str = "",
    writer: str = "",
    limit: int = 50,
    after: int | None = None,
    most_opened: int | None = None,
) -> SearchPage:
    """Return up to `limit` live entries that the actor may see, whose key or value contains every
    word or phrase of `text` and whose value satisfies every condition of `text` and `where`
    (domain/search.py).

    Results are exact right after a write: the index only provides candidates, each is checked
    against its current value, and entries that are not indexed yet are checked too. `since`
    (changed at that time or later), `until` (changed before it), `tag` and `writer` have no index
    and are checked in the same way. `most_opened`: the most values to read;
    default MOST_OPENED. Raises Invalid and NotRegistered.
    """
    try:
        query = search.parse(text, where)
    except BadQuery as bad:
        pointer = "/text" if bad.condition is None else f"/where/{bad.condition}/path"
        raise Invalid(f"invalid query: {bad}", [Fault(pointer, str(bad))]) from bad
    rows = Entry.objects.visible_to(actor).live().with_history()
    home = search.home_of("w", actor.workspace_id)
    if namespace:
        definition = find_definition(actor, namespace, fresh=True)
        rows = rows.filter(namespace_id=definition.id)
        home = search.home_of("n", definition.id)
    rows = rows.under(prefix, scope_kind)
    judged = search_models.filter_by_patterns(rows, search.build_patterns(query)).select_related(
        "namespace"
    )
    judged = creation_times.between(judged, "updated_at", since, until)
    if tag:
        judged = judged.filter(tags__contains=[tag])
    if writer:
        judged = judged.filter(actor_name=writer)
    lexemes = search.tsquery(query, home)
    reach = search_models.read_coverage(actor.workspace_id)
    hits: list[FoundEntry] = []
    weight = len(set(query.terms)) + len(query.where)
    opened, work = 0, 0
    most_opened = MOST_OPENED if most_opened is None else most_opened
    # Candidates cost the same for any limit, so that a few reads have all of them. The values are opened in
    # growing parts, because most searches end in the first one.
    size, most = max(limit + 1, min(_FIRST_CANDIDATES, most_opened)), limit + 1
    while True:
        candidates = search_models.find_candidates(
            rows, actor.workspace_id, reach, lexemes, before=after, limit=size
        )
        weighted = [((pk, weight * held), weight * held) for pk, held in candidates]
        start = 0
        while start < len(weighted):
            if work >= MOST_WORK:
                return SearchPage(hits, after)
            part = next(split_by_size(weighted[start : start + most]))
            for row in judged.filter(id__in=[pk for pk, _ in part]).order_by("-id"):
                matches = search.find(values.load(row.value or "null"), query, row.key)
                if matches is None:
                    continue
                if len(hits) == limit:
                    return SearchPage(hits, hits[-1].entry.pk)
                hits.append(FoundEntry(row, matches))
            after = part[-1][0]
            work += sum(cost for _, cost in part)
            start += len(part)
            most = min(most * 4, _MOST_VALUES_PER_QUERY)
        if len(candidates) < size:
            return SearchPage(hits, None)
        opened += len(candidates)
        if opened >= most_opened:
            return SearchPage(hits, after)
        size = most_opened - opened
