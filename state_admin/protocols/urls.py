"""The URL patterns of the protocols, below /api/."""

from __future__ import annotations

from state_admin import protocols
from state_admin.rest.routes import routes

app_name = "protocols"

urlpatterns = routes(protocols)
