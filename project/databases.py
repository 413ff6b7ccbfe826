"""Django's DATABASES entry from one URL; without one, the embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from project.env import BadSetting, read_environment

env = read_environment()

_SCHEMES = ("postgresql://", "postgres://")


def replicas_from_urls(urls: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The settings of the read replicas, by alias: `replica1`, `replica2`, …"""
    # A comma between two hosts of a URL separates two items, too.
    if not all(url.startswith(_SCHEMES) for url in urls):
        raise BadSetting(
            "DATABASE_REPLICA_URLS must be complete URLs (postgresql://user:password@host:5432/name) that"
            " are separated by commas; each names one host, and a comma within a URL is written as %2C"
        )
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
            # psycopg's own limit for a server that hangs is two minutes.
            "connect_timeout": 5,
            # For the hand-written statements (state_admin/models/hot.py); Django's own are never
            # prepared.
            "prepare_threshold": 2,
        },
    }
    if url is None:
        return {**common, "EMBEDDED": True, "NAME": "commonhold", "USER": "postgres"}
    parts = _parse(url, setting)
    return {
        **common,
        "NAME": parts.pop("dbname", "commonhold"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": {
            **common["OPTIONS"],
            # A server that disappeared without closing its connections is detected in seconds, not
            # hours.
            "keepalives_idle": 30,
            "tcp_user_timeout": 20_000,
            **parts,
        },
    }


def _parse(url: str, setting: str) -> dict[str, Any]:
    # libpq's own message would quote the URL, password included.
    problem = BadSetting(
        f"{setting} is not a PostgreSQL URL; write it as postgresql://user:password@host:5432/name"
        " (special characters of the password percent-encoded)"
    )
    if not url.startswith(_SCHEMES):
        raise problem
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
        # Of several hosts, those without a port have an empty one, which is the default.
        ports = [int(port or 5432) for port in str(parts.get("port", "")).split(",")]
    except (ProgrammingError, ValueError):
        raise _unknown_parameter(url, setting) or problem from None
    if not all(0 < port < 65536 for port in ports):
        raise problem
    return parts


def _unknown_parameter(url: str, setting: str) -> BadSetting | None:
    """The problem if libpq has no parameter of a name after the `?`. The message names similar ones of
    libpq, and not that name: it may be a part of a password that is not percent-encoded."""
    parameters = {option.keyword.decode() for option in Conninfo.get_defaults()}
    names = {each.partition("=")[0] for each in url.partition("?")[2].split("&") if each}
    unknown = sorted(names - parameters - {"ssl"})
    if not unknown:
        return None
    similar = [match for name in unknown for match in get_close_matches(name, parameters, 1)]
    advice = f"did you mean {' and '.join(similar)}?" if similar else "use those of libpq"
    return BadSetting(f"{setting} has an unknown parameter after the question mark; {advice}")
