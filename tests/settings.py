"""The settings of the tests: the deployment's, with the ways in beside passwords turned on.

Without them, which is the default, tests/project/test_login_extra.py starts processes.
"""

from __future__ import annotations

import os

_LOGIN = {
    "OIDC_ISSUER": "https://sso.example",  # tests/providing.py puts a real one in its place
    "OIDC_CLIENT_ID": "commonhold",
    "OIDC_CLIENT_SECRET": "between-us",
    "OIDC_NAME": "Acme SSO",
    "LOGIN_TOTP": "optional",
}
os.environ.update(_LOGIN)

from project.settings import *  # noqa: E402, F403
from tests.patience import PATIENCE  # noqa: E402

# Files as they are in static/, under their own names: the manifest exists only after collectstatic.
STORAGES = {
    **STORAGES,  # noqa: F405
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Where collectstatic has not run, WhiteNoise has no folder to warn about; where it has, none to list.
STATIC_ROOT = None

PASSWORD_HASHERS = ["tests.hashing.QuickPasswordHasher"]

# What a test prepares may take long; a lock is waited for without end only by a test that hangs.
_options = DATABASES["default"]["OPTIONS"]  # noqa: F405
_options["options"] += (
    " -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
    f" -c lock_timeout={PATIENCE * 1000:.0f}"
)

# Processes that tests start have the environment that they are given.
for name in _LOGIN:
    del os.environ[name]
