"""Logs as events: structlog for us and for the standard library, one line each.

No bodies, no tokens, no values: events carry ids, counts and times.
"""

from __future__ import annotations

import logging.config
from typing import Any

import structlog

from project.env import env

_ROLE = env.str("COMMONHOLD_ROLE", "")


def _add_role(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Which of the processes speaks: web, worker, beat or the supervisor."""
    if _ROLE:
        event["role"] = _ROLE
    return event


def logging_config(*, level: str, as_json: bool) -> None:
    """Configure structlog and the standard library together (called once, by settings)."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _add_role,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "events": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.format_exc_info,
                        render,
                    ],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django.request": {"level": "ERROR"},
                "django.security.DisallowedHost": {"level": "ERROR"},
                "celery": {"level": "WARNING"},
                "_granian": {"level": "WARNING"},
                "kombu": {"level": "WARNING"},
                "granian": {"level": "WARNING"},
            },
        }
    )
