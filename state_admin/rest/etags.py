"""Preconditions: If-Match and If-None-Match in terms of versions."""

from __future__ import annotations

import re

from rest_framework.request import Request

from state_admin.contract.entries import WRITE_HEADERS
from state_admin.services.entries import ANY, Precondition
from state_admin.services.errors import BadRequest

from .bodies import Response

# Preconditions of writes and On-Conflict, by their names in META.
CONDITIONS = {f"HTTP_{each.upper().replace('-', '_')}": each for each in WRITE_HEADERS}
_TAG = re.compile(r'(?:W/)?"(\d{1,18})"\Z')


def version_in(text: str) -> int:
    """Return the version in the entity tag of If-Match. The only valid form is `"<version>"`."""
    if text.strip() == "*":
        raise BadRequest(
            "If-Match must name a version; * is not supported",
            hint='Read the resource, and send its ETag, for example "41".',
        )
    match = _TAG.match(text.strip())
    if match is None:
        raise BadRequest(
            f"If-Match is not a valid ETag: {text[:40]}",
            hint='Send the ETag of a response unchanged, with its quotes, for example "41".',
        )
    return int(match.group(1))


def precondition(request: Request) -> Precondition:
    """Return the precondition in the headers of a write."""
    meta = request.META
    match, none_match = meta.get("HTTP_IF_MATCH"), meta.get("HTTP_IF_NONE_MATCH")
    changed = meta.get("HTTP_IF_CHANGED", "false").lower()
    if changed not in ("true", "false"):
        raise BadRequest("If-Changed must be true or false")
    merge = meta.get("HTTP_ON_CONFLICT")
    if merge is not None and merge.lower() != "merge":
        raise BadRequest(f"On-Conflict must be merge, not {merge[:40]!r}")
    if merge is not None and match is None:
        raise BadRequest(
            "On-Conflict requires If-Match",
            hint="If-Match is the version that your change is based on.",
        )
    if none_match is not None:
        if none_match.strip() != "*":
            raise BadRequest(
                "If-None-Match on a write must be *",
                hint="It creates the resource and never replaces it.",
            )
        if match is not None:
            raise BadRequest(
                "send either If-Match or If-None-Match",
                hint="Send If-Match to change the version that you read, or If-None-Match: * to create the resource.",
            )
        return Precondition(0, changed == "true")
    if match is not None:
        return Precondition(version_in(match), changed == "true", merge is not None)
    return Precondition(None, changed=True) if changed == "true" else ANY


def expected_version(request: Request) -> int | None:
    """Return the version or revision in If-Match, or None without the header."""
    match = request.META.get("HTTP_IF_MATCH")
    return version_in(match) if match is not None else None


def tags_in(text: str) -> frozenset[str]:
    """Return the entity tags in If-None-Match. A weak one, which a proxy that compresses sends on, counts
    as the strong one (RFC 9110, 13.1.2)."""
    return frozenset(tag.strip().removeprefix("W/") for tag in text.split(","))


def not_modified(request: Request, version: int) -> bool:
    """Whether a conditional GET names this version, so that the response is answer_empty(…, 304)."""
    return f'"{version}"' in tags_in(request.META.get("HTTP_IF_NONE_MATCH", ""))


def answer_empty(version: int, status: int) -> Response:
    """Return a response without a body, which has the ETag of this version."""
    response = Response(status=status)
    del response["Content-Type"]
    response["Cache-Control"] = "no-store"
    response["ETag"] = f'"{version}"'
    return response
