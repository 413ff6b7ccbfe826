"""Idempotency-Key: stores the first response and returns it for repeated requests.

The idempotency record is written in the transaction of the operation. After a crash both exist or
neither does, so a repeat neither runs the operation twice nor reports an operation that did not
run.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import Error, transaction
from django.http import HttpRequest, HttpResponse

from state_admin.contract.base import JSON_TYPE, NOT_KEPT
from state_admin.services import idempotency
from state_admin.services.errors import BadRequest, Problem
from state_admin.services.idempotency import Key, StoredResponse

from . import problems
from .etags import CONDITIONS

_KEPT_HEADERS = ("Content-Type", "ETag", "Location", "Preference-Applied")


def once(
    request: HttpRequest,
    work: Callable[[], HttpResponse],
    check: Callable[[], None],
    whose: Callable[[], int | None],
) -> HttpResponse:
    """Run `work` and store its response, or return the stored one.

    `check` raises for a caller who is no longer permitted: `work` checks this itself, but a stored
    response must not be returned to a revoked token. `whose` returns the workspace, after
    `work`.
    """
    stored = None
    try:
        key = identify(request.META, request.get_full_path_info(), request.body)
        with transaction.atomic():
            kept = idempotency.claim(key)
            if kept is not None:
                check()
                return _replay(kept)
            response = work()
            if response.status_code in NOT_KEPT or not getattr(response, "is_kept", True):
                transaction.set_rollback(True)
                return response
            headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
            # Secrets are returned once and never stored, not even in an idempotency record.
            body = getattr(response, "kept_content", None) or response.content
            idempotency.keep(key, whose(), StoredResponse(response.status_code, headers, body))
            stored = key
            return response
    except (Problem, RequestDataTooBig, Error) as error:
        # Work that runs after the commit may undo the operation (unregister_namespace).
        if stored is not None and isinstance(error, Problem):
            idempotency.forget(stored)
        return problems.answer_error(error, request)


def identify(environ: Mapping[str, Any], path: str, body: bytes) -> Key:
    """Return the Key of a request with an Idempotency-Key. `path` is percent-encoded, with the
    query."""
    key = environ["HTTP_IDEMPOTENCY_KEY"]
    if not 1 <= len(key) <= 255:
        raise BadRequest("Idempotency-Key must have 1 to 255 characters")
    caller = environ.get("HTTP_AUTHORIZATION", "")
    scope = hashlib.sha256(f"{caller}\n{key}".encode()).hexdigest()
    # The other keys are those of records from before SECRET_KEY was rotated.
    fingerprint, *former = (
        _fingerprint(secret, environ, path, body)
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )
    return Key(scope, fingerprint, tuple(former))


def _fingerprint(secret: str, environ: Mapping[str, Any], path: str, body: bytes) -> str:
    # A keyed hash, so that the digest cannot be used to guess a secret in the body.
    digest = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    digest.update(f"{environ['REQUEST_METHOD']} {path}\n".encode())
    digest.update(body)
    for name in (*CONDITIONS, "CONTENT_TYPE"):
        # Requests with neither have the digest of earlier versions, so that their records still apply.
        if (text := environ.get(name)) and text != JSON_TYPE:
            digest.update(f"\n{name}: {text}".encode())
    return digest.hexdigest()


def _replay(kept: StoredResponse) -> HttpResponse:
    headers = {**kept.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(kept.body, status=kept.status, headers=headers)
