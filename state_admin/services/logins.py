"""How people come in with a password: throttled, and how they set one."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db.models.functions import Now

from state_admin.domain.values import Fault
from state_admin.models import LoginAttempt, User

from .errors import Invalid, QuotaExceeded

MOST_FAILURES = 10
WINDOW = timedelta(minutes=15)


def check_password(*, username: str, password: str, address: str) -> User | None:
    """The user with this password, or None. QuotaExceeded after too many failures in a while.

    The attempt is stored before the password is looked at, so that many tries at once count too;
    a success forgets the failures before it.
    """
    username = username[:150]
    tries = LoginAttempt.objects.filter(username=username, address=address)
    LoginAttempt.objects.create(username=username, address=address)
    if tries.filter(at__gt=Now() - WINDOW).count() > MOST_FAILURES:
        minutes = int(WINDOW.total_seconds() // 60)
        raise QuotaExceeded(
            "too many failed logins",
            detail=f"Wait {minutes} minutes, or ask for a login link.",
        )
    user = authenticate(username=username, password=password)
    if not isinstance(user, User):
        LoginAttempt.objects.filter(at__lt=Now() - WINDOW).delete()
        return None
    tries.delete()
    return user


def set_password(*, user: User, password: str) -> None:
    """Give `user` a new password. Invalid says what is wrong with it."""
    try:
        validate_password(password, user)
    except ValidationError as refused:
        faults = [Fault("", message) for message in refused.messages]
        raise Invalid("this password will not do", faults) from refused
    user.set_password(password)
    user.save(update_fields=["password"])
