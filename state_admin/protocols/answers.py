"""JSON responses of the protocols, in which numbers keep their spelling."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.domain import values
from state_admin.domain.values import JSON


def answer(data: JSON) -> HttpResponse:
    response = HttpResponse(values.dump(data), content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response
