"""Sessions of browsers, with their user, so that they can be listed and ended."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils import timezone

from .access import User, digest

# Session key: the user who has passed the first factor and must still enter a code. Nobody is signed in
# to that session.
PENDING_USER = "pending_user"


class UserSession(AbstractBaseSession):
    """A session of a browser. `user` is the one who is signed in or must still enter a code, and NULL
    before."""

    # The SHA-256 of the cookie's value, so that a copy of the table cannot be used to sign in.
    session_key = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")

    class Meta(AbstractBaseSession.Meta):
        db_table = "sessions"

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore


class SessionStore(db.SessionStore):
    """The SESSION_ENGINE. Its class must have this name: Django derives the signature from it.

    `session_key` is the value of the cookie; a row holds only its digest.
    """

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
        rows = UserSession.objects.filter(expire_date__gt=timezone.now())
        row = rows.filter(session_key=digest(str(self.session_key))).first()
        if row is None:
            self._session_key = None
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(digest(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(digest(key))

    def create_model_instance(self, data: dict[str, Any]) -> UserSession:
        row = cast(UserSession, super().create_model_instance(data))
        row.session_key = digest(row.session_key)
        row.user_id = data.get(SESSION_KEY, data.get(PENDING_USER))
        return row
