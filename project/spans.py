"""The spans of project/tracing.py. Imports OpenTelemetry, so nothing imports this module unless traces are on.

Spans follow the semantic conventions, with two exceptions: they have no path, URL or query, because these may
contain keys and the secrets of login links, and no messages of exceptions, because these may contain values.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from django.db.backends.signals import connection_created
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from project.channel import Message, Receive, Send
from project.env import read_environment
from project.middleware import PROBES
from project.tracing import Attributes
from state_admin import __version__

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
_LAST_SECONDS: Final = 2.0
_METHODS: Final = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_provider: TracerProvider
_tracer: trace.Tracer


def start(*, console: bool) -> None:
    """Install the provider that sends spans. The SDK reads its settings from the variables OTEL_*."""
    global _provider, _tracer
    role = read_environment().commonhold_role
    attributes = {SERVICE_VERSION: __version__, "commonhold.role": role}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        attributes[SERVICE_NAME] = "commonhold"
    _provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    exporter = ConsoleSpanExporter() if console else OTLPSpanExporter()
    _provider.add_span_processor(BatchSpanProcessor(exporter))
    # Not the global provider: spans of libraries contain the texts of errors.
    _tracer = _provider.get_tracer("commonhold", __version__)
    connection_created.connect(_trace_connection)
    atexit.register(stop)


def stop() -> None:
    """Send the last spans, for two seconds at most: without a collector, the SDK would try for half a
    minute, and the process would be killed."""
    ending = threading.Thread(target=_provider.shutdown, daemon=True)
    ending.start()
    ending.join(_LAST_SECONDS)


class Span:
    """A span of project/tracing.py."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes({name: each for name, each in attributes.items() if each})

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR)


@contextmanager
def span(
    name: str, attributes: Attributes | None, kind: str, parent: Mapping[str, str] | None
) -> Iterator[Span]:
    # Invalid headers have no span: the trace begins here.
    context = None if parent is None else _PROPAGATOR.extract(parent, contexts.Context())
    with _tracer.start_as_current_span(
        name,
        context,
        _KINDS[kind],
        attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as started:
        current = Span(started)
        try:
            yield current
        except Exception as error:
            # A refused request is not a failure.
            if getattr(error, "status", 500) >= 500:
                current.fail(type(error).__qualname__)
            else:
                current.set({"error.type": type(error).__qualname__})
            raise


def child(name: str, attributes: Attributes, kind: str) -> AbstractContextManager[Span]:
    if not trace.get_current_span().get_span_context().is_valid:
        # Probes and tasks in the background would begin a trace with each statement.
        return nullcontext(Span(trace.INVALID_SPAN))
    return span(name, attributes, kind, None)


def statements(texts: Sequence[str]) -> AbstractContextManager[Span]:
    operation = "BATCH" if len(texts) > 1 else texts[0].split(None, 1)[0].upper()
    attributes: dict[str, Any] = {
        "db.system.name": "postgresql",
        "db.operation.name": operation,
        "db.query.text": ";\n".join(text.strip() for text in texts),
    }
    if len(texts) > 1:
        attributes["db.operation.batch.size"] = len(texts)
    return child(operation, attributes, "client")


@contextmanager
def group(name: str, parents: Sequence[trace.Span]) -> Iterator[None]:
    """The statements of the group are in the trace of its first call, and the spans of the others are
    linked to it."""
    first, *others = parents
    attributes = {"commonhold.group.size": len(parents)}

    def begin(parent: trace.Span, links: Sequence[Link]) -> trace.Span:
        context = trace.set_span_in_context(parent)
        return _tracer.start_span(name, context, attributes=attributes, links=links)

    leader = begin(first, [])
    spans = [leader, *(begin(each, [Link(leader.get_span_context())]) for each in others)]
    try:
        with trace.use_span(leader, record_exception=False, set_status_on_exception=False):
            yield
    except Exception as error:
        for each in spans:
            Span(each).fail(type(error).__qualname__)
        raise
    finally:
        for each in spans:
            each.end()


def current() -> trace.Span:
    return trace.get_current_span()


def describe(attributes: Attributes, route: str) -> None:
    here = trace.get_current_span()
    if not here.is_recording():
        return
    here.set_attributes(attributes)
    if route:
        here.set_attribute("http.route", route)
        method = (getattr(here, "attributes", None) or {}).get("http.request.method", "HTTP")
        here.update_name(f"{method} {route}")


def headers() -> dict[str, str]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier


def ids() -> dict[str, str]:
    where = trace.get_current_span().get_span_context()
    if not where.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(where.trace_id),
        "span_id": trace.format_span_id(where.span_id),
    }


def _send_after_last_spans(send: Send) -> Send:
    """Send the last spans of the process before the server learns that it may end: it cancels what still
    runs then. A web worker does not call what is registered with atexit."""

    async def stop_and_send(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown."):
            await asyncio.to_thread(stop)
        await send(message)

    return stop_and_send


class TracedApplication:
    """An ASGI application with a server span for each request except PROBES. A traceparent header
    continues the caller's trace; one that is invalid or repeated is ignored."""

    def __init__(self, application: Callable[[Message, Receive, Send], Any]) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, _send_after_last_spans(send))
        elif scope["path"] in PROBES:
            await self._application(scope, receive, send)
        else:
            await self._trace(scope, receive, send)

    async def _trace(self, scope: Message, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "HTTP"
        attributes = {
            "http.request.method": method if method != "HTTP" else "_OTHER",
            "url.scheme": scope["scheme"],
            "network.protocol.version": scope["http_version"],
        }
        with span(method, attributes, "server", _parent_of(scope["headers"])) as current:

            async def note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    current.set({"http.response.status_code": status})
                    if status >= 500:
                        current.fail(str(status))
                await send(message)

            await self._application(scope, receive, note)


def _parent_of(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    parents = [text for name, text in headers if name == b"traceparent"]
    if len(parents) != 1:
        return {}
    states = [text for name, text in headers if name == b"tracestate"]
    return {
        "traceparent": parents[0].decode("latin-1"),
        "tracestate": b",".join(states).decode("latin-1"),
    }


def _trace_connection(connection: Any, **_: Any) -> None:
    """Have a span for each statement of Django's cursors."""
    if _trace_statement not in connection.execute_wrappers:
        connection.execute_wrappers.append(_trace_statement)


def _trace_statement(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Mapping[str, Any]
) -> Any:
    with statements([str(sql)]):
        return execute(sql, params, many, context)
