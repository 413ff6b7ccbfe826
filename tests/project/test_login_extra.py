"""Sign-in methods beside passwords: absent if not configured, and an error message if configured
incompletely."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from project import login
from project.env import BadSetting
from tests.project.conftest import temporary_folder
from tests.project.running import run_python

SSO = {
    "OIDC_ISSUER": "https://sso.example",
    "OIDC_CLIENT_ID": "commonhold",
    "OIDC_CLIENT_SECRET": "between-us",
}
ON = {**SSO, "LOGIN_TOTP": "required"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One for all tests, so that PostgreSQL is initialized once."""
    with temporary_folder() as path:
        yield path


_LOOK = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
from django.urls import NoReverseMatch, get_resolver, reverse
get_resolver().url_patterns[1].url_patterns
for name in ("web:oidc-login", "web:totp", "web:login-code"):
    try:
        print(reverse(name))
    except NoReverseMatch:
        print("no", name)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"allauth", "fido2", "qrcode"}))
"""


def test_nothing_configured__allauth__is_not_imported_and_has_no_urls(
    folder: Path,
) -> None:
    done = run_python(folder, "-c", _LOOK)
    assert done.stdout.split("\n")[:4] == [
        "no web:oidc-login", "no web:totp", "no web:login-code", "[]",
    ], done.stderr  # fmt: skip


def test_all_configured__urls__exist(folder: Path) -> None:
    done = run_python(folder, "-c", _LOOK, **ON)
    assert done.stdout.split("\n")[:3] == ["/login/oidc", "/sign-in/totp", "/login/code"]


def test_configured_but_not_installed__error__is_one_sentence(folder: Path) -> None:
    without = (
        "import sys; sys.modules['allauth'] = None; sys.argv = ['manage.py', 'check'];"
        "import runpy; runpy.run_path('manage.py', run_name='__main__')"
    )
    for env in (SSO, {"LOGIN_TOTP": "optional"}):
        done = run_python(folder, "-c", without, **env)
        assert done.returncode == 1
        assert done.stderr.strip() == (
            "OIDC_ISSUER and LOGIN_TOTP need the login extra, which is not installed: "
            "pip install --require-hashes -r requirements-login.txt"
        )
    assert run_python(folder, "-c", without).returncode == 0


_CHECKS = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
from django.core.management import call_command
call_command("makemigrations", "--check", "--dry-run")
call_command("check", "--fail-level", "WARNING")
"""


@pytest.mark.parametrize("env", [{}, SSO, {"LOGIN_TOTP": "optional"}, ON], ids=str)
def test_migrations__of_optional_apps__are_complete(env: dict[str, str], folder: Path) -> None:
    done = run_python(folder, "-c", _CHECKS, **env)
    assert "No changes detected" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"OIDC_ISSUER": "https://sso.example"}, "must be set together"),
        ({**SSO, "OIDC_ISSUER": "http://sso.example"}, "must be an https:// URL"),
        ({**SSO, "OIDC_ISSUER": "sso.example"}, "must be an https:// URL"),
        ({**SSO, "OIDC_ISSUER": "https://sso.example/" + "x" * 200}, "at most 200"),
        (
            {**SSO, "OIDC_ISSUER": "https://sso.example/.well-known/openid-configuration/"},
            "must not end with /.well-known/openid-configuration",
        ),
        *(
            (
                {**SSO, "OIDC_ISSUER": f"https://login.microsoftonline.com/{tenant}/v2.0/"},
                f"must name your tenant of Entra ID, not {tenant}",
            )
            for tenant in ("common", "organizations", "consumers")
        ),
        ({**SSO, "OIDC_NEW_DOMAINS": "a.example,@b.example"}, "without @"),
        ({**SSO, "OIDC_NEW_ROLE": "admin"}, "OIDC_NEW_ROLE must be editor or viewer"),
    ],
    ids=str,
)
def test_single_sign_on__incomplete_or_unsafe__is_one_sentence(
    env: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=said):
        login.single_sign_on()
