"""The page of sign-in methods: password, single sign-on, authenticator app. Methods that are not
configured are hidden."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.urls import path

from .actors import page
from .htmx import Request, render


@page()
def sign_in(request: Request) -> HttpResponse:
    context: dict[str, Any] = {"has_password": request.user.has_usable_password()}
    if settings.OIDC:
        # Needs the packages of requirements-login.txt.
        from state_admin.services.single_sign_on import is_linked

        context |= {"sso": settings.OIDC, "linked": is_linked(request.user, settings.OIDC.issuer)}
    if settings.LOGIN_TOTP != "off":
        # Needs the packages of requirements-login.txt.
        from state_admin.services.second_factors import find_state

        context |= {"totp": find_state(request.user), "required": settings.LOGIN_TOTP == "required"}
    return render(request, "account/sign_in.html", context)


urlpatterns = [path("sign-in", sign_in, name="sign-in")]
if settings.OIDC:
    # Needs the packages of requirements-login.txt.
    from . import single_sign_on

    urlpatterns += single_sign_on.urlpatterns
if settings.LOGIN_TOTP != "off":
    # Needs the packages of requirements-login.txt.
    from . import second_factor

    urlpatterns += second_factor.urlpatterns
