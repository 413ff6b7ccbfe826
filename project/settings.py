"""Django's settings, derived from the environment (project/env.py). Contains no domain logic."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF

from project import audit_stream, databases, login, tracing
from project.env import BASE_DIR, read_environment
from project.logging import logging_config
from project.secret_key import read_secret_key

env = read_environment()

# Process -------------------------------------------------------------------------------------

DEBUG = env.debug
SECRET_KEY = read_secret_key()
SECRET_KEY_FALLBACKS = env.secret_key_fallbacks
CONFIG_SECRET_KEYS = env.config_secret_keys
PORT = env.port
HOST = env.host
SITE_URL = (env.site_url or f"http://127.0.0.1:{PORT}").rstrip("/")
_site_host = re.sub(r":\d+$", "", urlsplit(SITE_URL).netloc)
ALLOWED_HOSTS = list(dict.fromkeys([*env.allowed_hosts, _site_host]))
CSRF_TRUSTED_ORIGINS = [SITE_URL, *env.csrf_trusted_origins]
WEB_WORKERS = env.web_workers
WEB_THREADS = env.web_threads

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular_sidecar",
    "corsheaders",
    "csp",
    "state_admin",
]

# All but the first two are skipped for the API; see project/middleware.py.
MIDDLEWARE = [
    "project.middleware.RequestId",
    "project.middleware.AllowedHosts",
    "project.middleware.TokenOnPage",
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
    "project.middleware.MethodNotAllowed",
]
API_PREFIX = "/api/"
API_DOCS_PATH = "/api/docs"  # a page
# Served at /api/schema. `manage.py write_docs` generates it, which takes a second, and a test
# compares it with the code.
API_DOCUMENT = BASE_DIR / "docs" / "openapi.json"
CORS_ALLOWED_ORIGINS = env.cors_origins
CORS_URLS_REGEX = f"^{API_PREFIX}"
CORS_ALLOW_HEADERS = [
    "authorization",
    "cache-control",
    "change-reason",
    "content-type",
    "idempotency-key",
    "if-changed",
    "if-match",
    "if-none-match",
    "last-event-id",
    "on-conflict",
    "prefer",
    "run-id",
    "traceparent",
    "tracestate",
    "x-request-id",
]
CORS_EXPOSE_HEADERS = [
    "ETag",
    "Idempotent-Replayed",
    "Location",
    "RateLimit",
    "RateLimit-Policy",
    "Read-From",
    "Retry-After",
    "X-Request-ID",
]
if CORS_ALLOWED_ORIGINS:
    MIDDLEWARE.insert(2, "corsheaders.middleware.CorsMiddleware")
# These checks search for Django's own middleware by name, but it is subclassed here.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]

ROOT_URLCONF = "project.urls"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["state_admin.templatetags.csrf"],
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

DATABASE_URL = env.database_url
DATABASE_REPLICA_MAX_LAG_SECONDS = env.database_replica_max_lag_seconds
_replicas = databases.replicas_from_urls(env.database_replica_urls)
DATABASES = {"default": databases.from_url(DATABASE_URL), **_replicas}
if _replicas:  # records the position of each write (state_admin/services/replicas.py)
    # Outside of the session, which is stored last, and within CORS, for its own response.
    before = MIDDLEWARE.index("project.middleware.Security")
    MIDDLEWARE.insert(before, "project.middleware.WritePositions")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Jobs ----------------------------------------------------------------------------------------

BROKER_URL = env.broker_url
WORKER_THREADS = env.worker_threads
HEARTBEAT_FILE = env.heartbeat_file
BROKER_VISIBILITY_SECONDS = env.broker_visibility_seconds

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
# Sign-in methods beside passwords (docs/guides/login.md); the packages are needed only if one is
# on.
OIDC = login.single_sign_on()
LOGIN_TOTP = env.login_totp
if _login_apps := login.apps(OIDC, LOGIN_TOTP):
    INSTALLED_APPS += _login_apps
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
    ACCOUNT_EMAIL_VERIFICATION = "none"
    SOCIALACCOUNT_ADAPTER = "state_admin.web.single_sign_on.SocialAdapter"
    MFA_ADAPTER = "state_admin.services.second_factors.EncryptingAdapter"
    MFA_TOTP_TOLERANCE = 1  # clocks half a minute apart
    MFA_RECOVERY_CODE_DIGITS = 10
LOGIN_URL = "web:login"
LOGIN_REDIRECT_URL = "web:overview"
SESSION_ENGINE = "state_admin.models.sessions"
SESSION_COOKIE_AGE = env.session_cookie_age
SESSION_IDLE = timedelta(seconds=env.session_idle_seconds)
SESSION_COOKIE_NAME = "commonhold_session"
CSRF_COOKIE_NAME = "commonhold_csrf"
CSRF_FAILURE_VIEW = "state_admin.web.errors.csrf_failure"
SECURE = SITE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SECURE_SSL_REDIRECT = env.secure_ssl_redirect
SECURE_HSTS_SECONDS = env.secure_hsts_seconds
if SECURE_HSTS_SECONDS is None:
    SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
TRUST_PROXY_HEADERS = env.trust_proxy_headers
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

CHANGE_RETENTION = timedelta(days=env.change_retention_days)
MAX_BODY_BYTES = env.max_body_bytes
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
HEADER_SECONDS = env.header_seconds
BODY_MEMORY_BYTES = env.body_memory_bytes
BODY_IDLE_SECONDS = env.body_idle_seconds
BODY_MIN_RATE = env.body_min_rate
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["state_admin.rest.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["state_admin.rest.bodies.RawParser"],
    "EXCEPTION_HANDLER": "state_admin.rest.problems.handle",
    "UNAUTHENTICATED_USER": None,
}

# Compaction ----------------------------------------------------------------------------------

SUMMARY_DAILY_USD = env.summary_daily_usd

# Webhooks ------------------------------------------------------------------------------------

WEBHOOK_ALLOW_PRIVATE = env.webhook_allow_private
WEBHOOK_TIMEOUT_SECONDS = env.webhook_timeout_seconds
WEBHOOK_MAX_ATTEMPTS = env.webhook_max_attempts
WEBHOOK_RETRY_SECONDS = env.webhook_retry_seconds
WEBHOOK_DISABLE_AFTER = timedelta(hours=env.webhook_disable_after_hours)
WEBHOOK_RETENTION = timedelta(days=env.webhook_retention_days)
WEBHOOK_DEAD_RETENTION = timedelta(days=env.webhook_dead_retention_days)

DISPATCH_RETENTION = timedelta(hours=env.dispatch_retention_hours)
DISPATCH_DEAD_RETENTION = timedelta(days=env.dispatch_dead_retention_days)

# Audit stream --------------------------------------------------------------------------------

AUDIT_STREAM = audit_stream.read_destination()

METRICS_TOKEN = env.metrics_token
TRACES = tracing.is_configured()

CELL = env.cell

STORAGE_RETENTION = timedelta(days=env.storage_retention_days)

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
LOG_LEVEL = env.log_level
LOG_JSON = env.log_json
logging_config(level=LOG_LEVEL, as_json=LOG_JSON)
