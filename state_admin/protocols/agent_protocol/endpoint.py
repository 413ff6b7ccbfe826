"""Shared by the handlers of the Agent Protocol: reading request bodies."""

from __future__ import annotations

from typing import Any, Final

from state_admin.contract.base import Body
from state_admin.domain import values
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.rest.endpoint import Endpoint
from state_admin.services.errors import Invalid, TooLarge

# Of the threads, states or items in one response.
MAX_BYTES: Final = 32 << 20


class Size:
    """The bytes of the parts of one response, as they are collected."""

    def __init__(self) -> None:
        self._bytes = 0

    def exceeds(self, part: JSON) -> bool:
        """Add a part. Returns whether the parts are too large now."""
        self._bytes += len(values.dump(part))
        return self._bytes > MAX_BYTES


def too_large(noun: str) -> TooLarge:
    return TooLarge(
        f"the {noun} of this response have more than {MAX_BYTES:,} bytes",
        hint=f"Send a smaller limit, and read the {noun} in several requests.",
        limit=MAX_BYTES,
    )


def take(call: Endpoint, kind: type[Body]) -> dict[str, Raw]:
    """The members of the body by name, as declared by `kind`; null counts as absent.

    LangGraph's SDK shows `detail` only, so `detail` says what is wrong where.
    """
    try:
        call.body(kind)
    except Invalid as refused:
        errors = refused.data["errors"]
        refused.detail = "; ".join(
            f"{each['pointer'] or '/'}: {each['message']}" for each in errors
        )
        raise
    raw: Any = call.request.data
    body = values.members(raw)
    return {name: part for name, part in body.items() if part.value is not None}


def refuse(body: dict[str, Raw], *names: str) -> None:
    """Raise Invalid for members that the SDK can send and this server does not support, instead of
    ignoring them."""
    sent = [name for name in names if name in body and body[name].value is not False]
    if sent:
        faults = [
            Fault(values.pointer_of(name), "is not supported by this server") for name in sent
        ]
        raise Invalid(f"{sent[0]} is not supported by this server", faults)


def bounds(body: dict[str, Raw], *, limit: int = 10) -> tuple[int, int]:
    """`limit` and `offset` of a body."""
    return read(body, "limit", limit), read(body, "offset", 0)


def read(body: dict[str, Raw], name: str, default: Any = None) -> Any:
    """A member of a body, whose type the contract has validated."""
    return body[name].value if name in body else default
