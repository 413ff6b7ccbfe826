"""Which host names this server accepts: the only code that reads ALLOWED_HOSTS besides Django."""

from __future__ import annotations

import functools

import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from state_admin.services.errors import BadRequest
from state_admin.services.problem_statuses import MisdirectedRequest

log = structlog.get_logger(__name__)

# Characters of a refused Host header in the log.
_LOGGED = 200


def is_served(header: str) -> bool:
    """Whether ALLOWED_HOSTS lists the host of a Host header."""
    return _is_among(header, tuple(settings.ALLOWED_HOSTS))


@functools.lru_cache(maxsize=256)
def _is_among(header: str, hosts: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(header)
    return bool(domain) and validate_host(domain, hosts)


def check_host(header: str) -> None:
    """Raise BadRequest for a malformed Host header, MisdirectedRequest for a host that
    ALLOWED_HOSTS does not list. Django's rules apply: `.example.com` and `*` are patterns."""
    if is_served(header):
        return
    log.warning("request.host_refused", host=header[:_LOGGED])
    if not split_domain_port(header)[0]:
        raise BadRequest("the Host header is missing or malformed")
    raise MisdirectedRequest(
        "the host is not served here",
        hint="Use a host that the setting ALLOWED_HOSTS of this server lists, or add this one to it.",
    )
