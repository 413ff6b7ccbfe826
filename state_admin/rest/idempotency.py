"""Idempotency-Key: the first answer, replayed.

The record is written in the same transaction as the effect: either both are there after a crash
or neither is, so a repeat can never do the work twice nor claim work that was not done.
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

from state_admin.services import idempotency
from state_admin.services.errors import BadRequest, Problem
from state_admin.services.idempotency import Key, StoredResponse

from . import problems

_KEPT_HEADERS = ("Content-Type", "ETag", "Location")
# These answers say "try again": they are not the outcome of the request.
_FORGOTTEN = (401, 408, 425, 429, 500, 502, 503, 504)


def once(
    request: HttpRequest,
    work: Callable[[], HttpResponse],
    check: Callable[[], None],
    whose: Callable[[], int | None],
) -> HttpResponse:
    """Do `work` and keep its answer, or give the answer it once had. `check` raises for a caller
    who may not ask: work checks itself, but a kept answer must not outlive its token. `whose`: the
    workspace, once the work is done."""
    try:
        key = identify(request.META, request.get_full_path_info(), request.body)
        with transaction.atomic():
            kept = idempotency.claim(key)
            if kept is not None:
                check()
                return _replay(kept)
            response = work()
            if response.status_code in _FORGOTTEN:
                transaction.set_rollback(True)
                return response
            headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
            # A secret is shown once and stored nowhere, not even here.
            body = getattr(response, "kept_content", None) or response.content
            idempotency.keep(key, whose(), StoredResponse(response.status_code, headers, body))
            return response
    except (Problem, RequestDataTooBig, Error) as error:
        return problems.answer_error(error, request)


def identify(environ: Mapping[str, Any], path: str, body: bytes) -> Key:
    """What the Idempotency-Key of a request stands for. `path` is percent-encoded, with the query."""
    key = environ["HTTP_IDEMPOTENCY_KEY"]
    if not 1 <= len(key) <= 255:
        raise BadRequest("Idempotency-Key must have 1 to 255 characters")
    caller = environ.get("HTTP_AUTHORIZATION", "")
    scope = hashlib.sha256(f"{caller}\n{key}".encode()).hexdigest()
    # Keyed, so that nobody can try out on it which secret a body held.
    digest = hmac.new(settings.SECRET_KEY.encode(), digestmod=hashlib.sha256)
    digest.update(f"{environ['REQUEST_METHOD']} {path}\n".encode())
    digest.update(body)
    return Key(scope, digest.hexdigest())


def _replay(kept: StoredResponse) -> HttpResponse:
    response = HttpResponse(kept.body, status=kept.status)
    for name, value in kept.headers.items():
        response[name] = value
    response["Idempotent-Replayed"] = "true"
    return response
