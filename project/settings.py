"""Settings of the deployment, read from the environment (project/env.py). No business word here."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF

from project import databases, login
from project.env import BASE_DIR, env, secret, secret_key
from project.logging import logging_config

# Process -------------------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", False)
SECRET_KEY = secret_key()
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", [])
# Encrypt the secrets of the config registry, the first one; all decrypt. Then the keys above do.
CONFIG_SECRET_KEYS = [
    key.strip() for key in (secret("CONFIG_SECRET_KEYS") or "").split(",") if key.strip()
]
PORT = env.int("PORT", 8000)
HOST = env.str("HOST", "127.0.0.1")
SITE_URL = env.str("SITE_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
ALLOWED_HOSTS = [
    *env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"]),
    re.sub(r":\d+$", "", urlsplit(SITE_URL).netloc),
]
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])
WEB_WORKERS = env.int("WEB_WORKERS", 2)
WEB_THREADS = env.int("WEB_THREADS", 4)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular_sidecar",
    "corsheaders",
    "csp",
    "state_admin",
]

# All but the first two are skipped for the API (project/middleware.py says why).
MIDDLEWARE = [
    "project.middleware.RequestId",
    "project.middleware.AllowedHosts",
    "project.middleware.Security",
    "project.middleware.ContentSecurityPolicy",
    "project.middleware.StaticFiles",
    "project.middleware.Session",
    "project.middleware.Common",
    "project.middleware.Csrf",
    "project.middleware.Authentication",
    "project.middleware.Messages",
    "project.middleware.Clickjacking",
    "project.middleware.Htmx",
]
API_PREFIX = "/api/"
API_DOCS_PATH = "/api/docs"  # a page
# Served at /api/schema. Generating it takes a second: `manage.py write_docs` does, and a test compares
# it with the code.
API_DOCUMENT = BASE_DIR / "docs" / "openapi.json"
# Pages of these origins may call the API with a token; no cookie is ever asked of them.
CORS_ALLOWED_ORIGINS: list[str] = env.list("CORS_ORIGINS", [])
CORS_URLS_REGEX = f"^{API_PREFIX}"
CORS_ALLOW_HEADERS = [
    "authorization",
    "change-reason",
    "content-type",
    "idempotency-key",
    "if-changed",
    "if-match",
    "if-none-match",
    "last-event-id",
    "on-conflict",
    "run-id",
    "x-request-id",
]
CORS_EXPOSE_HEADERS = ["ETag", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-ID"]
if CORS_ALLOWED_ORIGINS:
    MIDDLEWARE.insert(2, "corsheaders.middleware.CorsMiddleware")
# The checks look for Django's own layers by name; ours are subclasses of them.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "state_admin.web.shell.shell",
            ],
        },
    }
]

# Database ------------------------------------------------------------------------------------

DATABASE_URL = secret("DATABASE_URL") or None
DATABASES = {"default": databases.from_url(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ATOMIC_REQUESTS = False

# Jobs ----------------------------------------------------------------------------------------

BROKER_URL = secret("BROKER_URL") or None
WORKER_THREADS = env.int("WORKER_THREADS", 4)
# How long a killed worker's job waits before it starts again.
BROKER_VISIBILITY_SECONDS = env.int("BROKER_VISIBILITY_SECONDS", 300)

# People and programs -------------------------------------------------------------------------

AUTH_USER_MODEL = "state_admin.User"
PASSWORD_HASHERS = ["project.hashing.QueuedPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Ways in beside passwords (docs/guides/login.md); the extra is there only where one is on.
OIDC = login.single_sign_on()
LOGIN_TOTP = login.totp()
if _login_apps := login.apps(OIDC, LOGIN_TOTP):
    INSTALLED_APPS += _login_apps
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
    ACCOUNT_EMAIL_VERIFICATION = "none"
    SOCIALACCOUNT_ADAPTER = "state_admin.web.single_sign_on.SocialAdapter"
    MFA_ADAPTER = "state_admin.services.second_factors.Sealing"
    MFA_TOTP_TOLERANCE = 1  # clocks half a minute apart
    MFA_RECOVERY_CODE_DIGITS = 10
LOGIN_URL = "web:login"
LOGIN_REDIRECT_URL = "web:overview"
SESSION_ENGINE = "state_admin.models.sessions"
SESSION_COOKIE_AGE = env.int("SESSION_COOKIE_AGE", 14 * 24 * 3600)
SESSION_COOKIE_NAME = "commonhold_session"
CSRF_COOKIE_NAME = "commonhold_csrf"
CSRF_FAILURE_VIEW = "state_admin.web.errors.csrf_failure"
SECURE = SITE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", False)
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", 31_536_000 if SECURE else 0)
# Only behind a proxy that overwrites X-Forwarded-For and X-Forwarded-Proto.
TRUST_PROXY_HEADERS = env.bool("TRUST_PROXY_HEADERS", False)
if TRUST_PROXY_HEADERS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# API -----------------------------------------------------------------------------------------

CHANGE_RETENTION = timedelta(days=env.int("CHANGE_RETENTION_DAYS", 7))
MAX_BODY_BYTES = env.int("MAX_BODY_BYTES", 8 * 1024 * 1024 + 64 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
# A connection is closed when the headers of its next request take longer.
HEADER_SECONDS = env.float("HEADER_SECONDS", 30.0)
# Request bodies in the memory of one web process. A token or an address may hold a quarter of it.
BODY_MEMORY_BYTES = env.int("BODY_MEMORY_BYTES", 64 * 1024 * 1024)
# 408 after this many seconds without a byte of the body, or below this many bytes per second.
BODY_IDLE_SECONDS = env.float("BODY_IDLE_SECONDS", 15.0)
BODY_MIN_RATE = env.int("BODY_MIN_RATE", 16 * 1024)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["state_admin.rest.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["state_admin.rest.bodies.RawParser"],
    "EXCEPTION_HANDLER": "state_admin.rest.problems.handle",
    "UNAUTHENTICATED_USER": None,
    "COMPACT_JSON": True,
    "UNICODE_JSON": True,
}

# Compaction ----------------------------------------------------------------------------------

# What each workspace may spend on models that summarise, in USD, a day (UTC).
SUMMARY_DAILY_USD = env.decimal("SUMMARY_DAILY_USD", Decimal(5))

# Webhooks ------------------------------------------------------------------------------------

# Whether webhooks may call private, local and reserved addresses, and any port.
WEBHOOK_ALLOW_PRIVATE = env.bool("WEBHOOK_ALLOW_PRIVATE", False)
# From name to answer. Well below BROKER_VISIBILITY_SECONDS.
WEBHOOK_TIMEOUT_SECONDS = env.float("WEBHOOK_TIMEOUT_SECONDS", 10.0)
WEBHOOK_MAX_ATTEMPTS = env.int("WEBHOOK_MAX_ATTEMPTS", 10)
# Before the second attempt; doubles from there, up to an hour.
WEBHOOK_RETRY_SECONDS = env.float("WEBHOOK_RETRY_SECONDS", 5.0)
# A webhook to which nothing arrived for so long is switched off.
WEBHOOK_DISABLE_AFTER = timedelta(hours=env.float("WEBHOOK_DISABLE_AFTER_HOURS", 24.0))
WEBHOOK_RETENTION = timedelta(days=env.float("WEBHOOK_RETENTION_DAYS", 7.0))
WEBHOOK_DEAD_RETENTION = timedelta(days=env.float("WEBHOOK_DEAD_RETENTION_DAYS", 30.0))

DISPATCH_RETENTION = timedelta(hours=env.float("DISPATCH_RETENTION_HOURS", 24.0))
DISPATCH_DEAD_RETENTION = timedelta(days=env.float("DISPATCH_DEAD_RETENTION_DAYS", 30.0))

# Whoever brings it may read /metrics; without it nobody may.
METRICS_TOKEN = secret("METRICS_TOKEN") or ""

# Daily measurements of what is stored.
STORAGE_RETENTION = timedelta(days=env.float("STORAGE_RETENTION_DAYS", 90.0))

# Text, time, files ---------------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Built by `make docs` and served at /docs/.
DOCUMENTATION_ROOT = BASE_DIR / "site"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_MANIFEST_STRICT = False

LOGGING_CONFIG = None
LOG_LEVEL = env.str("LOG_LEVEL", "INFO")
LOG_JSON = env.bool("LOG_JSON", False)
logging_config(level=LOG_LEVEL, as_json=LOG_JSON)
