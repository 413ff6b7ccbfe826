"""Traces: spans of requests, services, statements, jobs and deliveries, if an OpenTelemetry collector is configured.

The packages are optional (requirements-otel.txt). Without the standard variables OTEL_*, nothing of them
is imported (project/spans.py does it), and each function here returns at once. docs/traces.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any, Final, Literal, Protocol

from project.addresses import is_http_url
from project.env import BadSetting, read_environment

Attributes = Mapping[str, Any]
Kind = Literal["internal", "server", "client", "consumer"]

_EXTRA: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_TRACES_EXPORTER need the packages of requirements-otel.txt, "
    "which are not installed: pip install --require-hashes -r requirements-otel.txt"
)
# The module project.spans while traces are on.
_spans: Any = None


class Span(Protocol):
    """A span that has begun."""

    def set(self, attributes: Attributes) -> None: ...

    def fail(self, kind: str) -> None:
        """Mark it as failed, with the kind of the error. The text of an error may contain values."""


class _NoSpan:
    def set(self, attributes: Attributes) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass


_NONE: Final[AbstractContextManager[Span]] = nullcontext(_NoSpan())


def is_configured() -> bool:
    """Whether the environment requests traces. Raises BadSetting if they are not possible."""
    env = read_environment()
    endpoint = env.otel_exporter_otlp_endpoint or env.otel_exporter_otlp_traces_endpoint
    if env.otel_sdk_disabled or env.otel_traces_exporter == "none":
        return False
    if not (endpoint or env.otel_traces_exporter):
        return False
    for name, url in (
        ("OTEL_EXPORTER_OTLP_ENDPOINT", env.otel_exporter_otlp_endpoint),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", env.otel_exporter_otlp_traces_endpoint),
    ):
        if url and not is_http_url(url):
            raise BadSetting(f"{name} must be an http:// or https:// URL")
    if not all(map(_is_installed, ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))):
        raise BadSetting(_EXTRA)
    return True


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def start() -> None:
    """Begin to send spans, if the environment requests it. Once per process, and after it was forked,
    because a thread sends them."""
    global _spans
    if _spans is None and is_configured():
        spans = importlib.import_module("project.spans")
        spans.start(console=read_environment().otel_traces_exporter == "console")
        _spans = spans


def is_on() -> bool:
    return _spans is not None


def trace_requests(application: Any) -> Any:
    """The ASGI application with a span for each request; the same one if traces are off."""
    return application if _spans is None else _spans.TracedApplication(application)


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Kind = "internal",
    parent: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    """A span for a `with` block, which an exception marks as failed. `parent`: headers with the
    traceparent of the caller, in place of the current span."""
    if _spans is None:
        return _NONE
    context: AbstractContextManager[Span] = _spans.span(name, attributes, kind, parent)
    return context


def child(name: str, attributes: Attributes) -> AbstractContextManager[Span]:
    """A span for a `with` block, if a span is current."""
    if _spans is None:
        return _NONE
    context: AbstractContextManager[Span] = _spans.child(name, attributes, "internal")
    return context


def statements(texts: Sequence[str]) -> AbstractContextManager[Span]:
    """A span for statements that are sent together, if a span is current. The texts have
    placeholders, no values."""
    if _spans is None:
        return _NONE
    context: AbstractContextManager[Span] = _spans.statements(texts)
    return context


def group(name: str, parents: Sequence[Any]) -> AbstractContextManager[None]:
    """A span in the trace of each call of a group (project/joining.py). `parents`: `current()` of
    each call."""
    if _spans is None:
        return nullcontext()
    context: AbstractContextManager[None] = _spans.group(name, parents)
    return context


def current() -> Any:
    """The current span, for `group`."""
    return None if _spans is None else _spans.current()


def describe(attributes: Attributes, *, route: str = "") -> None:
    """Add attributes to the current span. `route`: the path of a request as a template."""
    if _spans is not None:
        _spans.describe(attributes, route)


def traceparent() -> str:
    """The traceparent header of the current span; "" without one."""
    if _spans is None:
        return ""
    header: str = _spans.headers().get("traceparent", "")
    return header


def inject(headers: MutableMapping[str, Any]) -> None:
    """Add the headers that continue the trace: traceparent, and tracestate if there is one."""
    if _spans is not None:
        headers.update(_spans.headers())


def ids() -> dict[str, str]:
    """trace_id and span_id of the current span, for log lines; {} without one."""
    if _spans is None:
        return {}
    found: dict[str, str] = _spans.ids()
    return found
