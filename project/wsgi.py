"""Django as a WSGI application, which project/bridge.py runs in its threads."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from project.postgres.gate import refuse_unsafe_server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

refuse_unsafe_server()
application = get_wsgi_application()
_ = get_resolver().url_patterns  # import every view now, not in the first request
