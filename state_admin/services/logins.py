"""Signs users in with a throttled password, and sets passwords.

Each writes the audit of all workspaces of the user, because it gives access to all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import Count, Q

from project import hashing
from state_admin.domain.networks import subscriber_of
from state_admin.domain.values import Fault
from state_admin.models import LoginAttempt, User

from . import journal
from .actors import actors_of_user, system_actor
from .errors import Conflict, Invalid, NotFound, RateLimited, Unavailable
from .users import cancel_login_links, make_login_link

# Failures within WINDOW after which further attempts are refused: with one name from one address, and
# with whatever names from one address.
MOST_FAILURES = 10
MOST_FAILURES_OF_ADDRESS = 50
WINDOW = timedelta(minutes=15)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def check_password(*, username: str, password: str, address: str) -> User | None:
    """The user with this password, or None.

    Raises RateLimited after too many failures, and Unavailable while too many others sign in. An
    unknown name takes the same steps as a wrong password. Addresses without recent failures are
    served first, so that attacks from elsewhere do not keep their users out.
    """
    username, address = username[:150], subscriber_of(address)
    attempt, failures = _record_attempt(username, address)
    try:
        with hashing.ranked(failures):
            user = authenticate(username=username, password=password)
    except hashing.Busy:
        attempt.delete()
        raise _busy() from None
    if not isinstance(user, User):
        return None
    LoginAttempt.objects.filter(username=username, address=address).delete()
    return user


def _record_attempt(username: str, address: str) -> tuple[LoginAttempt, int]:
    """Count the attempt before the password is checked, so that concurrent attempts count too.
    Returns the number of earlier failures from the address. Refused attempts are not counted."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_LOCK, [f"login attempts {address}"])
        of_address = LoginAttempt.objects.filter(address=address).recent(WINDOW)
        found = of_address.aggregate(
            all=Count("pk"), named=Count("pk", filter=Q(username=username))
        )
        if found["named"] >= MOST_FAILURES or found["all"] >= MOST_FAILURES_OF_ADDRESS:
            seconds = int(WINDOW.total_seconds())
            raise RateLimited(
                "too many failed logins",
                hint=f"Wait {seconds // 60} minutes, or ask for a login link.",
                retry_after=seconds,
            )
        return LoginAttempt.objects.create(username=username, address=address), found["all"]


def _busy() -> Unavailable:
    return Unavailable(
        "too many sign-ins are in progress",
        hint="Nothing was changed. Try again in a few seconds.",
        retry_after=5,
    )


def create_login_url(*, username: str) -> str:
    """A URL that signs a user in once, for operators with a shell. Raises NotFound."""
    with transaction.atomic():
        user = User.objects.filter(username=username, is_active=True).first()
        workspaces = [actor.workspace_id for actor in actors_of_user(user)] if user else []
        if user is None or not workspaces:
            raise NotFound(f"active member not found: {username}")
        secret = make_login_link(user)
        for workspace_id in workspaces:  # the link signs in to all of them
            trace = journal.Trace("member.link", key=username)
            journal.record(system_actor(workspace_id, "operator"), [trace])
    return f"{settings.SITE_URL}/login/once/{secret}"


def start_session(
    *, user: User, method: str, begin: Callable[[], None], request_id: str = ""
) -> None:
    """Sign `user` in: `begin` creates the session, in the transaction of the audit. `method` is how
    they signed in, as shown in the list of their sessions."""
    with transaction.atomic():
        begin()
        _record(user, "session.start", request_id, method=method)


def set_password(
    *,
    user: User,
    password: str,
    renew: Callable[[], None] = lambda: None,
    request_id: str = "",
) -> None:
    """Set the password of `user`. Their unused login links stop working, as their sessions do. `renew`
    continues the session of the request, in the transaction of the change.

    Raises Invalid with the reasons, Unavailable, and Conflict if another request has set it since `user`
    was read: that has ended the session of this one.
    """
    try:
        validate_password(password, user)
    except ValidationError as refused:
        faults = [Fault("", message) for message in refused.messages]
        raise Invalid("the password does not meet the requirements", faults) from refused
    before = user.password
    try:
        user.set_password(password)  # outside of the transaction, because it may wait
    except hashing.Busy:
        raise _busy() from None
    with transaction.atomic():
        rows = User.objects.filter(pk=user.pk, password=before)
        if not rows.update(password=user.password):
            raise Conflict("the password was changed in the meantime", hint="Sign in again.")
        renew()
        cancel_login_links(user)
        _record(user, "password.set", request_id)


def _record(user: User, action: str, request_id: str, **detail: object) -> None:
    trace = journal.Trace(action, key=user.get_username(), detail=detail)
    for actor in actors_of_user(user, request_id=request_id):
        journal.record(actor, [trace])
