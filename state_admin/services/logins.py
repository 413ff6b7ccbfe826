"""How people come in: with a password, throttled, and how they set one; the trail of both in each of
their workspaces, since all of them are opened by it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now

from state_admin.domain.values import Fault
from state_admin.models import LoginAttempt, User

from . import journal
from .actors import actors_of_user
from .errors import Invalid, RateLimited

MOST_FAILURES = 10
WINDOW = timedelta(minutes=15)


def check_password(*, username: str, password: str, address: str) -> User | None:
    """The user with this password, or None. RateLimited after too many failures in a while.

    The attempt is stored before the password is looked at, so that many tries at once count too;
    a success forgets the failures before it.
    """
    username, address = username[:150], _subscriber(address)
    tries = LoginAttempt.objects.filter(username=username, address=address)
    LoginAttempt.objects.create(username=username, address=address)
    if tries.filter(at__gt=Now() - WINDOW).count() > MOST_FAILURES:
        seconds = int(WINDOW.total_seconds())
        raise RateLimited(
            "too many failed logins",
            hint=f"Wait {seconds // 60} minutes, or ask for a login link.",
            retry_after=seconds,
        )
    user = authenticate(username=username, password=password)
    if not isinstance(user, User):
        LoginAttempt.objects.filter(at__lt=Now() - WINDOW).delete()
        return None
    tries.delete()
    return user


def _subscriber(address: str) -> str:
    """Whom an address belongs to, as far as it tells: each host of IPv6 has a /64 to itself, and could
    try from another of its addresses each time."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.IPv6Network((int(ip), 64), strict=False).network_address)


def start_session(
    *, user: User, method: str, begin: Callable[[], None], request_id: str = ""
) -> None:
    """Let `user` in: `begin` makes the session, in the transaction of its trail. `method` says how
    they came, as they read it among their sessions."""
    with transaction.atomic():
        begin()
        _record(user, "session.start", request_id, method=method)


def set_password(*, user: User, password: str, request_id: str = "") -> None:
    """Give `user` a new password. Invalid says what is wrong with it."""
    try:
        validate_password(password, user)
    except ValidationError as refused:
        faults = [Fault("", message) for message in refused.messages]
        raise Invalid("this password will not do", faults) from refused
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        _record(user, "password.set", request_id)


def _record(user: User, action: str, request_id: str, **detail: object) -> None:
    trace = journal.Trace(action, key=user.get_username(), detail=detail)
    for actor in actors_of_user(user, request_id=request_id):
        journal.record(actor, [trace])
