"""Structured logs: structlog for this code and for the standard library, one line per event.

No bodies, tokens or values: events have ids, counts and times. Texts of errors, and the arguments
of libraries' messages, may contain values; both are left out.
"""

from __future__ import annotations

import logging
import logging.config
import sys
import threading
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict

from project import tracing
from project.env import read_environment
from project.failures import describe_error, format_traceback, is_outage

_ROLE = read_environment().commonhold_role
_OURS = ("project", "state_admin")
# Celery's messages that the broker is unreachable, in worker and beat.
_BROKER_FAILS = (
    "consumer: Cannot connect",
    "consumer: Connection to broker lost",
    "beat: Connection error",
)


def _add_role(_: Any, __: str, event: EventDict) -> EventDict:
    """Add the process that logs: web, worker, beat or the supervisor."""
    if _ROLE:
        event["role"] = _ROLE
    return event


def _add_trace(_: Any, __: str, event: EventDict) -> EventDict:
    """Add trace_id and span_id if there is a trace."""
    event.update(tracing.ids())
    return event


def _omit_values(_: Any, __: str, event: EventDict) -> EventDict:
    """Keep the template of a library's message, without its arguments."""
    record: logging.LogRecord = event["_record"]
    arguments = event.pop("positional_args", None) or ()
    context = arguments if isinstance(arguments, Mapping) else {}
    event["event"] = str(record.msg).partition("\n")[0]
    errors = [a for a in (context.values() or arguments) if isinstance(a, BaseException)]
    if errors:
        event["errors"] = [describe_error(error) for error in errors]
    if record.name == "django.request":
        event.update(_describe_request(record))
        if event.get("status") == 503:  # no defect: `database.unavailable` has the cause
            event.pop("exc_info", None)
    elif str(event["event"]).startswith(_BROKER_FAILS):
        event["event"] = "broker.unreachable"
    elif record.name == "celery.app.trace":
        event.update(event="task.failed", task=context.get("name"), id=context.get("id"))
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and is_outage(error):  # a traceback per job would hide everything else
            event.pop("exc_info", None)
            event["errors"] = [describe_error(error)]
    return event


def _describe_request(record: logging.LogRecord) -> dict[str, Any]:
    """The route rather than the path, because a path may contain a key or the secret of a login
    link."""
    request = getattr(record, "request", None)
    match = getattr(request, "resolver_match", None)
    description = {
        "event": "request.failed",
        "status": getattr(record, "status_code", None),
        "method": getattr(request, "method", None),
        "route": match.route if match else None,
        "request_id": getattr(request, "META", {}).get("REQUEST_ID"),
    }
    return {name: what for name, what in description.items() if what is not None}


def logging_config(*, level: str, as_json: bool) -> None:
    """Configure structlog and the standard library together (called once, by settings)."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _add_role,
        _add_trace,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # Libraries' messages below WARNING are for their own developers, and may contain whole
    # statements.
    quiet = max(logging.WARNING, logging.getLevelNamesMapping().get(level, logging.WARNING))
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "events": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": [_omit_values, *shared],
                    "use_get_message": False,
                    "pass_foreign_args": True,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.ExceptionRenderer(
                            lambda exc_info: format_traceback(exc_info[1])
                        ),
                        render,
                    ],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
            "root": {"handlers": ["stderr"], "level": quiet},
            "loggers": {
                **{name: {"level": level} for name in _OURS},
                "django.request": {"level": "ERROR"},
                # Without a collector, each attempt would be a warning.
                "opentelemetry": {"level": "ERROR"},
                "django.security.DisallowedHost": {"level": "ERROR"},
            },
        }
    )
    if _ROLE:
        log_crashes()


def log_crashes() -> None:
    """Log uncaught exceptions of any thread, instead of Python's own report, which quotes
    values."""
    log = structlog.get_logger(__name__)

    def crashed(kind: type[BaseException], error: BaseException, *_: Any) -> None:
        if not isinstance(error, KeyboardInterrupt):
            log.critical("process.crashed", exc_info=error)

    def thread_crashed(crash: threading.ExceptHookArgs) -> None:
        if crash.exc_value is not None and not isinstance(crash.exc_value, SystemExit):
            name = crash.thread.name if crash.thread else None
            log.error("thread.crashed", thread=name, exc_info=crash.exc_value)

    def ignored(crash: sys.UnraisableHookArgs) -> None:
        log.error("error.ignored", exc_info=crash.exc_value)

    sys.excepthook = crashed
    threading.excepthook = thread_crashed
    sys.unraisablehook = ignored
