"""Which origins, host names and broker URLs the settings may contain. Each check raises ValueError with the
message for the operator, without the value, which may contain a password."""

from __future__ import annotations

import re
from urllib.parse import urlsplit


def check_origins(name: str, *origins: str) -> None:
    if not all(map(_is_origin, origins)):
        raise ValueError(f"{name} must have the form https://state.example.com, without a path")


def _is_origin(text: str) -> bool:
    form = re.fullmatch(r"https?://[^/?#@\s]+", text)
    return form is not None and _has_valid_port(text) and bool(urlsplit(text).hostname)


def is_http_url(text: str) -> bool:
    """Whether the text is an http or https URL with a host, and a valid port if it has one."""
    form = re.fullmatch(r"https?://[^/?#\s]\S*", text)
    return form is not None and _has_valid_port(text) and bool(urlsplit(text).hostname)


def _has_valid_port(url: str) -> bool:
    """Whether a URL has no port or a valid one."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def check_hosts(hosts: tuple[str, ...]) -> None:
    if not all(re.fullmatch(r"[^/:@\[\]\s]+|\[[\da-fA-F:.]+\]", host) for host in hosts):
        raise ValueError(
            "ALLOWED_HOSTS must list host names such as state.example.com, without scheme, port and "
            "path; write an IPv6 address as [::1]"
        )


def check_broker(url: str) -> None:
    if not re.match(r"(redis|amqp)s?://|pgmq://$", url):
        raise ValueError(
            "BROKER_URL must start with redis://, rediss://, amqp:// or amqps://; "
            "unset it to queue jobs in PostgreSQL"
        )
    # kombu accepts several brokers, separated by semicolons.
    if not all(_has_valid_port(each) for each in url.split(";")):
        raise ValueError(
            "BROKER_URL must have the form redis://user:password@host:6379/0, with a port from 1 to "
            "65535 (special characters of the password percent-encoded)"
        )
    for each in url.split(";"):
        if re.match(r"rediss?://", each) and not re.fullmatch(r"/?\d*", urlsplit(each).path):
            raise ValueError(
                "BROKER_URL must end with the number of a Redis database, such as /0, or with the port"
            )
