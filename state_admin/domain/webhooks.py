"""The filter of a webhook, and the events that it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from .access import matches_any

TYPE_PREFIX = "commonhold."
TEST_TYPE = "commonhold.webhook.test"


@dataclass(frozen=True)
class Choice:
    """The part of a webhook's filter that consists of globs; an empty list matches everything."""

    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def takes(self, kind: str, namespace: str) -> bool:
        """Whether a change matches. A change without a namespace matches no namespace filter."""
        return (not self.kinds or matches_any(self.kinds, kind)) and (
            not self.namespaces or (bool(namespace) and matches_any(self.namespaces, namespace))
        )


def subject_of(namespace: str, key: str, thread: str, run: str) -> str:
    """The path of the changed resource, relative to `/api/v1/`; "" if it has none."""
    if namespace and key:
        return f"state/{quote(namespace, safe='')}/{quote(key, safe='')}"
    if namespace:
        return f"namespaces/{quote(namespace, safe='')}"
    if run:
        return f"runs/{quote(run, safe='')}"
    return f"threads/{quote(thread, safe='')}" if thread else ""


class EventData(msgspec.Struct):
    """The ids in the data of an event."""

    thread_id: str | None = None
    run_id: str | None = None


class Event(msgspec.Struct):
    """The members of a CloudEvent that its sender needs."""

    data: EventData
    traceparent: str = ""


def read_event(body: bytes) -> Event:
    """Parse the result of `cloud_event`."""
    return msgspec.json.decode(body, type=Event)


def cloud_event(
    *,
    event_id: str,
    source: str,
    kind: str,
    at: datetime,
    data: Mapping[str, Any],
    subject: str = "",
    sequence: str = "",
    traceparent: str = "",
) -> dict[str, Any]:
    """A CloudEvent 1.0 in the structured JSON format. A change is the same event (source and id)
    for every webhook and every delivery, so receivers can drop duplicates by its id. `sequence` (an
    official extension) increases with the feed and compares as text. `traceparent` (another one) is
    the span that made the change."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": event_id,
        "source": source,
        "type": kind,
        "time": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "datacontenttype": "application/json",
        "data": dict(data),
    }
    optional = {"subject": subject, "sequence": sequence, "traceparent": traceparent}
    return event | {name: text for name, text in optional.items() if text}
