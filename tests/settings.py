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

# Processes that tests start have the environment that they are given.
for name in _LOGIN:
    del os.environ[name]
