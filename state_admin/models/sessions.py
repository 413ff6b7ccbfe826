"""Logins that are still good, with whose they are, so that they can be listed and ended."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from .access import User


class UserSession(AbstractBaseSession):
    """A session of a browser. `user` is NULL before somebody logs in."""

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")

    class Meta(AbstractBaseSession.Meta):
        db_table = "sessions"

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore


class SessionStore(db.SessionStore):
    """The SESSION_ENGINE. Its class must have this name: Django derives the signature from it."""

    @classmethod
    def get_model_class(cls) -> type[UserSession]:
        return UserSession

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        made = cast(UserSession, super().create_model_instance(data))
        made.user_id = data.get(SESSION_KEY)
        return made
