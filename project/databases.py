"""Django's DATABASES entry from one URL; without one, the embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from project.env import BadSetting, read_environment

env = read_environment()


def replicas_from_urls(urls: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The settings of the read replicas, by alias: `replica1`, `replica2`, …"""
    return {f"replica{number}": _replica_from_url(url) for number, url in enumerate(urls, start=1)}


def _replica_from_url(url: str) -> dict[str, Any]:
    replica = from_url(url, "DATABASE_REPLICA_URLS")
    if "," in replica["HOST"]:
        raise BadSetting("DATABASE_REPLICA_URLS must name one host in each URL")
    # The primary answers meanwhile, so a replica has less time to connect.
    replica["OPTIONS"] = {**replica["OPTIONS"], "connect_timeout": 2}
    return {**replica, "REPLICA": True, "TEST": {"MIRROR": "default"}}


def from_url(url: str | None, setting: str = "DATABASE_URL") -> dict[str, Any]:
    """The settings of one database. `setting` is named in errors.

    `url` is any form that libpq accepts (`postgresql://user@host/name?sslmode=require`). None means
    the embedded server: its backend starts the cluster on the first connection.
    """
    common: dict[str, Any] = {
        "ENGINE": "project.postgres",
        "SETTING": setting,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": False,
        "DISABLE_SERVER_SIDE_CURSORS": False,
        "OPTIONS": {
            "application_name": env.commonhold_role or "commonhold",
            # For the hand-written statements (state_admin/models/hot.py); Django's own are never
            # prepared.
            "prepare_threshold": 2,
        },
    }
    if url is None:
        return {**common, "EMBEDDED": True, "NAME": "commonhold", "USER": "postgres"}
    parts = _parse(url, setting)
    options = {
        **common["OPTIONS"],
        # A server that disappeared without closing its connections is detected in seconds, not
        # hours.
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "tcp_user_timeout": 20_000,
        **{
            k: v
            for k, v in parts.items()
            if k not in ("dbname", "user", "password", "host", "port")
        },
    }
    return {
        **common,
        "NAME": parts.get("dbname", "commonhold"),
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
        "OPTIONS": options,
    }


def _parse(url: str, setting: str) -> dict[str, Any]:
    # libpq's own message would quote the URL, password included.
    problem = BadSetting(
        f"{setting} is not a PostgreSQL URL; write it as postgresql://user:password@host:5432/name"
        " (special characters of the password percent-encoded)"
    )
    if not url.startswith(("postgresql://", "postgres://")):
        raise problem
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
        # Of several hosts, those without a port have an empty one, which is the default.
        ports = [int(port or 5432) for port in str(parts.get("port", "")).split(",")]
    except (ProgrammingError, ValueError):
        raise problem from None
    if not all(0 < port < 65536 for port in ports):
        raise problem
    return parts
