"""The settings of the tests: those of the deployment, with all sign-in methods turned on.

tests/project/test_login_extra.py starts processes without them, which is the default.
"""

from __future__ import annotations

import os

_LOGIN = {
    "OIDC_ISSUER": "https://sso.example",  # tests/providing.py replaces it by a real one
    "OIDC_CLIENT_ID": "commonhold",
    "OIDC_CLIENT_SECRET": "between-us",
    "OIDC_NAME": "Acme SSO",
    "LOGIN_TOTP": "optional",
}
os.environ.update(_LOGIN)

from project.settings import *
from tests.patience import PATIENCE

# Files as they are in static/, under their own names: the manifest exists only after collectstatic.
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# So that WhiteNoise neither warns about a missing folder nor lists an existing one.
STATIC_ROOT = None

PASSWORD_HASHERS = ["tests.hashing.QuickPasswordHasher"]

# Preparing a test may take long; only a test that hangs waits for a lock without end.
_options = DATABASES["default"]["OPTIONS"]
_options["options"] = (
    " -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
    f" -c lock_timeout={PATIENCE * 1000:.0f}"
)

# Processes that tests start get exactly the environment that is passed.
for name in _LOGIN:
    del os.environ[name]
