"""The application that granian serves: streams natively, everything else through the bridge."""

from __future__ import annotations

import functools

from django.conf import settings

from project.bridge import Bridge, Stream
from project.postgres.aio import connect
from project.wsgi import application as django
from state_admin.services import token_cache
from state_admin.streams.hub import Hub

token_cache.cache.enabled = True

# Path prefix → native ASGI application, for answers that stay open. Asked before Django.
STREAMS: dict[str, Stream] = {}

application = Bridge(
    django,
    streams=STREAMS,
    threads=settings.WEB_THREADS,
    max_body=settings.MAX_BODY_BYTES,
    trust_proxy=settings.TRUST_PROXY_HEADERS,
    # What lets views follow the change feed without a thread (state_admin/api/waiting.py).
    environ={"statehouse.hub": Hub(functools.partial(connect, "statehouse feed"))},
)
