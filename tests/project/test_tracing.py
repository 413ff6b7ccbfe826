"""Traces of a real server, received by a collector of OpenTelemetry's protocol over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from typing import Any
from urllib.request import Request, urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from tests.modelling import completion, replies
from tests.project.observing import Server, observed
from tests.project.running import wait_for
from tests.receiving import answer, receiving

pytestmark = pytest.mark.system

KIND = ProtoSpan.SpanKind
CANARY = "canary7c1e"


@dataclass(frozen=True)
class Span:
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector(ThreadingHTTPServer):
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []
        self.bodies: list[bytes] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def of(self, trace_id: str) -> list[Span]:
        return [span for span in list(self.spans) if span.trace_id == trace_id]

    def find(self, trace_id: str, name: str) -> Span:
        """The span of a trace with this name, when it has arrived."""

        def found() -> Span | None:
            return next((span for span in self.of(trace_id) if span.name == name), None)

        span = wait_for(found, lambda: f"{name} in {[each.name for each in self.of(trace_id)]}")
        assert span is not None
        return span


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces"
        self.server.bodies.append(body)
        # At once: a test that finds a span also finds those that ended before it.
        self.server.spans += [
            _span(span, _attributes(resource.resource.attributes))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_: Any) -> None:
        pass


def _span(span: Any, resource: dict[str, Any]) -> Span:
    return Span(
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple(link.span_id.hex() for link in span.links),
        span.status.code == span.status.STATUS_CODE_ERROR,
        _attributes(span.attributes),
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.shutdown()
    collector.server_close()


@pytest.fixture(scope="module")
def server(collector: Collector) -> Iterator[Server]:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    with observed(**env) as server:
        server.call("PUT", "/namespaces/notes", {})
        yield server


def new_trace() -> tuple[str, str]:
    """An id of a trace, and the traceparent of its caller."""
    trace_id = token_hex(16)
    return trace_id, f"00-{trace_id}-00f067aa0ba902b7-01"


ENTRY = "/api/v1/state/{namespace}/{key}"


def test_write__in_the_lane__continues_the_trace_of_the_caller_down_to_the_statement(
    server: Server, collector: Collector
) -> None:
    server.call("PUT", "/state/notes/k", {"value": 1})

    def in_lane() -> tuple[str, Span] | None:
        """The trace of a write, and the span of its request. None: it was not in the lane, which has to
        know the token and the namespace from a call within the last seconds."""
        trace_id, parent = new_trace()
        server.call("PUT", "/state/notes/k", {"value": CANARY}, Traceparent=parent, Run_Id="r1")
        request = collector.find(trace_id, f"PUT {ENTRY}")
        names = {span.name for span in collector.of(trace_id)}
        return None if "write_entry" in names else (trace_id, request)

    found = wait_for(in_lane, "a write in the lane")
    assert found is not None
    trace_id, request = found
    assert request.kind == KIND.SPAN_KIND_SERVER
    assert request.parent_id == "00f067aa0ba902b7"
    expected = {
        "http.request.method": "PUT", "http.route": ENTRY, "http.response.status_code": 200,
        "url.scheme": "http", "commonhold.actor": "token:1", "commonhold.workspace": 1,
        "commonhold.run_id": "r1",
    }  # fmt: skip
    assert expected.items() <= request.attributes.items()
    assert request.resource["service.name"] == "commonhold"
    assert request.resource["commonhold.role"] == "web"
    group = collector.find(trace_id, "joined writes")
    assert (group.parent_id, group.attributes["commonhold.group.size"]) == (request.span_id, 1)
    statements = [span for span in collector.of(trace_id) if "db.query.text" in span.attributes]
    assert {span.parent_id for span in statements} == {group.span_id}
    assert all(span.kind == KIND.SPAN_KIND_CLIENT for span in statements)


def test_request__served_by_django__has_spans_of_operation_and_statements(
    server: Server, collector: Collector
) -> None:
    trace_id, parent = new_trace()
    server.call("POST", "/threads", {"id": "traced"}, Traceparent=parent, Tracestate="a=1,b=2")
    request = collector.find(trace_id, "POST /api/v1/threads")
    operation = collector.find(trace_id, "create_thread")
    assert operation.parent_id == request.span_id
    service = collector.find(trace_id, "threads.create_thread")
    assert (service.kind, service.parent_id) == (KIND.SPAN_KIND_INTERNAL, operation.span_id)
    function = {"code.function.name": "state_admin.services.threads.create_thread"}
    assert service.attributes == function | {"commonhold.thread_id": "traced"}
    statements = [span for span in collector.of(trace_id) if "db.query.text" in span.attributes]
    assert service.span_id in {span.parent_id for span in statements}

    server.call("POST", "/threads/traced/runs", {"id": "r1"}, Traceparent=parent)
    path = "/api/v1/threads/{thread_id}/runs"
    started = collector.find(trace_id, f"POST {path}")
    assert started.attributes["commonhold.thread_id"] == "traced"
    service = collector.find(trace_id, "runs.start_run")
    assert service.attributes["commonhold.run_id"] == "r1"


def test_request__that_is_refused__is_no_failure(server: Server, collector: Collector) -> None:
    trace_id, parent = new_trace()
    server.call("GET", "/threads/absent", Traceparent=parent)
    request = collector.find(trace_id, "GET /api/v1/threads/{thread_id}")
    assert (request.attributes["http.response.status_code"], request.failed) == (404, False)
    server.call("POST", "/threads", {"id": "twice"})
    trace_id, parent = new_trace()
    server.call("POST", "/threads", {"id": "twice", "title": "another"}, Traceparent=parent)
    service = collector.find(trace_id, "threads.create_thread")
    assert (service.attributes["error.type"], service.failed) == ("Conflict", False)


def test_request__that_crashes__has_failed_and_its_log_line_has_the_trace(
    server: Server, collector: Collector
) -> None:
    server.execute(b"ALTER TABLE threads ADD CONSTRAINT broken CHECK (false) NOT VALID")
    trace_id, parent = new_trace()
    body = {"id": "t9", "metadata": {"a": CANARY}}
    server.call("POST", "/threads", body, Traceparent=parent)
    server.execute(b"ALTER TABLE threads DROP CONSTRAINT broken")
    request = collector.find(trace_id, "POST /api/v1/threads")
    assert request.failed
    assert request.attributes["error.type"] == "500"
    line = server.line("database.error", trace_id=trace_id)
    assert line["span_id"] in {span.span_id for span in collector.of(trace_id)}


@pytest.mark.parametrize(
    "parent",
    [
        "00-{}-00f067aa0ba902b7",
        "ff-{}-00f067aa0ba902b7-01",
        "00-{}-0000000000000000-01",
        "00-{}-00f067aa0ba902b7-01-extra",
        "00-{}-00F067AA0BA902B7-01",
        "nonsense",
    ],
)
def test_traceparent__invalid__begins_a_trace(
    parent: str, server: Server, collector: Collector
) -> None:
    given, request_id = token_hex(16), token_hex(8)
    server.call("GET", "/threads", Traceparent=parent.format(given), X_Request_Id=request_id)

    def find() -> Span | None:
        mine = (
            s for s in collector.spans if s.attributes.get("commonhold.request_id") == request_id
        )
        return next(mine, None)

    span = wait_for(find, "the span of the request")
    assert span is not None
    assert span.trace_id != given
    assert span.parent_id == ""


def test_traceparent__not_sampled__has_no_span(server: Server, collector: Collector) -> None:
    trace_id, parent = new_trace()
    server.call("GET", "/threads", Traceparent=parent[:-2] + "00")
    after, next_parent = new_trace()
    server.call("GET", "/threads", Traceparent=next_parent)
    collector.find(after, "GET /api/v1/threads")
    assert collector.of(trace_id) == []


def test_job__queued_by_a_request__is_in_its_trace(server: Server, collector: Collector) -> None:
    server.call("POST", "/threads", {"id": "compacted"})
    trace_id, parent = new_trace()
    server.call("POST", "/threads/compacted/compactions", {}, Traceparent=parent)
    job = collector.find(trace_id, "process state_admin.tasks.compaction.run")
    assert job.kind == KIND.SPAN_KIND_CONSUMER
    assert job.resource["commonhold.role"] == "worker"
    assert job.attributes["commonhold.thread_id"] == "compacted"
    statements = [span for span in collector.of(trace_id) if span.parent_id == job.span_id]
    assert statements


def test_delivery__of_a_change__sends_the_trace_of_the_request(
    server: Server, collector: Collector
) -> None:
    for method, path, route, body in [
        ("PUT", "/state/notes/hooked", ENTRY, {"value": CANARY}),
        ("POST", "/threads", "/api/v1/threads", {"id": "hooked"}),
    ]:
        with receiving(answer(200)) as receiver:
            hook = server.call("POST", "/webhooks", {"name": token_hex(4), "url": receiver.url})
            trace_id, parent = new_trace()
            server.call(method, path, body, Traceparent=parent)
            delivery = collector.find(trace_id, "webhook delivery")
            assert delivery.attributes["commonhold.webhook_id"] == hook["id"]
            sent = collector.find(trace_id, "POST")
            assert sent.parent_id == delivery.span_id
            assert sent.attributes["http.response.status_code"] == 200
            (received,) = [r for r in receiver.received if trace_id in r.headers["traceparent"]]
            assert received.headers["traceparent"] == f"00-{trace_id}-{sent.span_id}-01"
            request = collector.find(trace_id, f"{method} {route}")
            assert delivery.parent_id == request.span_id
            assert received.event["traceparent"] == f"00-{trace_id}-{request.span_id}-01"
            assert server.line("webhook.attempt", trace_id=trace_id)
            server.call("DELETE", f"/webhooks/{hook['id']}")


def test_summary__by_a_model__has_the_span_of_its_call(
    server: Server, collector: Collector
) -> None:
    with receiving(replies(completion("A summary."))) as model:
        base = model.url.removesuffix("/hook")
        provider = {"adapter": "openai_compatible", "base_url": base}
        server.call("PUT", "/config/providers/p", {"value": provider})
        chosen = {"provider_id": "p", "upstream_model": "m-large"}
        server.call("PUT", "/config/models/m", {"value": chosen})
        server.call("POST", "/threads", {"id": "long"})
        message = {"role": "user", "content": f"{CANARY} " * 200}
        server.call("POST", "/threads/long/messages", {"messages": [message] * 20})
        policy = {"summarizer": "model", "summary_model": "m", "raw_suffix_messages": 2}
        server.call("PUT", "/compaction-policies/threads/long", policy)
        trace_id, parent = new_trace()
        server.call("POST", "/threads/long/compactions", {}, Traceparent=parent)
        call = collector.find(trace_id, "chat m-large")
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "p",
        "gen_ai.request.model": "m-large", "gen_ai.usage.input_tokens": 1_000,
        "gen_ai.usage.output_tokens": 50,
    }  # fmt: skip
    assert expected.items() <= call.attributes.items()
    job = collector.find(trace_id, "process state_admin.tasks.compaction.run")
    assert call.parent_id == job.span_id


def call_tool(server: Server, name: str, arguments: Any, parent: str) -> Any:
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    url = f"http://127.0.0.1:{server.running.port}/mcp"
    headers = {
        "Authorization": f"Bearer {server.token}", "Traceparent": parent,
        "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
    }  # fmt: skip
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def test_tool__called_over_mcp__has_a_span(server: Server, collector: Collector) -> None:
    trace_id, parent = new_trace()
    call_tool(server, "list_namespaces", {}, parent)
    request = collector.find(trace_id, "POST")
    tool = collector.find(trace_id, "execute_tool list_namespaces")
    assert tool.parent_id == request.span_id
    assert tool.attributes["gen_ai.tool.name"] == "list_namespaces"
    asked = [span for span in collector.of(trace_id) if span.parent_id == tool.span_id]
    assert [span.name for span in asked] == ["GET /api/v1/namespaces"]


def test_spans__of_all_tests__contain_no_value(server: Server, collector: Collector) -> None:
    server.call("GET", f"/threads?metadata={CANARY}")
    server.running.get(f"/login/once/{CANARY}")
    server.call("PUT", f"/state/notes/{CANARY}", {"value": CANARY})
    trace_id, parent = new_trace()
    assert "error" in call_tool(server, CANARY, {}, parent)
    collector.find(trace_id, "POST")
    assert [body for body in collector.bodies if CANARY.encode() in body] == []
    assert collector.bodies
