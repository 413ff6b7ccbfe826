"""Sessions of browsers, with their user, so that they can be listed and ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from .access import User, digest

# Session key: the user who has passed the first factor and must still enter a code. Nobody is signed in
# to that session.
PENDING_USER = "pending_user"
# How often the use of a session is stored, at most.
_NOTED_EVERY = timedelta(minutes=5)


class UserSession(AbstractBaseSession):
    """A session of a browser. `user` is the one who is signed in or must still enter a code, and NULL
    before."""

    # The SHA-256 of the cookie's value, so that a copy of the table cannot be used to sign in.
    session_key = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    # The last request, as of SessionStore.note_use.
    active_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta(AbstractBaseSession.Meta):
        db_table = "sessions"

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore

    @property
    def ends_at(self) -> datetime:
        """When it ends if it is not used any more."""
        if not settings.SESSION_IDLE:
            return self.expire_date
        return min(self.expire_date, self.active_at + settings.SESSION_IDLE)


def unexpired() -> Q:
    """The condition that a session neither has expired nor was unused for too long."""
    now = timezone.now()
    condition = Q(expire_date__gt=now)
    if settings.SESSION_IDLE:
        condition &= Q(active_at__gt=now - settings.SESSION_IDLE)
    return condition


class SessionStore(db.SessionStore):
    """The SESSION_ENGINE. Its class must have this name: Django derives the signature from it.

    `session_key` is the value of the cookie; a row holds only its digest.
    """

    # When the session was last used; None before it is read.
    _active_at: datetime | None = None

    # Run the methods below in a thread. Those of the database backend would store the key itself.
    aload = SessionBase.aload
    aexists = SessionBase.aexists
    acreate = SessionBase.acreate
    asave = SessionBase.asave
    adelete = SessionBase.adelete

    @classmethod
    def get_model_class(cls) -> type[UserSession]:
        return UserSession

    def _get_session_from_db(self) -> UserSession | None:
        rows = UserSession.objects.filter(unexpired())
        row = rows.filter(session_key=digest(str(self.session_key))).first()
        if row is None:
            self._session_key = None
        else:
            self._active_at = row.active_at
        return row

    def note_use(self) -> None:
        """Postpone the end of an unused session. Writes only if the last use is some minutes ago. Does not
        write the other columns, which another request may have changed."""
        every = min(_NOTED_EVERY, settings.SESSION_IDLE / 10 or _NOTED_EVERY)
        now = timezone.now()
        if self._active_at is not None and now - self._active_at >= every:
            rows = UserSession.objects.filter(session_key=digest(str(self.session_key)))
            rows.update(active_at=now)
            self._active_at = now

    def exists(self, session_key: str) -> bool:
        return super().exists(digest(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(digest(key))

    def create_model_instance(self, data: dict[str, Any]) -> UserSession:
        row = cast(UserSession, super().create_model_instance(data))
        row.session_key = digest(row.session_key)
        row.active_at = timezone.now()
        row.user_id = data.get(SESSION_KEY, data.get(PENDING_USER))
        return row
