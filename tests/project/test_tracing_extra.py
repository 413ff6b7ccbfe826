"""Traces are optional: without the variables nothing is imported, without the packages the server
reports an error."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from project import spans, tracing
from project.env import BadSetting
from project.joining import Joiner
from tests.project.conftest import temporary_folder
from tests.project.observing import observed
from tests.project.running import run_python

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield path


_LOOK = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import project.wsgi, project.asgi
from project import tracing
print(tracing.is_on(), sorted({name for name in sys.modules if name.startswith("opentelemetry")}))
"""


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {**ENDPOINT, "OTEL_SDK_DISABLED": "true"},
        {**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=str,
)
def test_traces__not_requested__nothing_is_imported(env: dict[str, str], folder: Path) -> None:
    done = run_python(folder, "-c", _LOOK, **env)
    assert done.stdout.strip() == "False []", done.stderr


@pytest.mark.parametrize(
    "name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
)
@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://localhost:4318", True),
        ("https://[::1]:4318/v1/traces", True),
        ("localhost:4318", False),
        ("grpc://localhost:4317", False),
        ("http://", False),
        ("http://:4318", False),
        ("http://localhost:port", False),
        ("http://local host", False),
    ],
)
def test_endpoint__not_an_http_url__is_refused(
    name: str, url: str, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, url)
    if accepted:
        assert tracing.is_configured()
    else:
        with pytest.raises(BadSetting, match=f"^{name} must be an http:// or https:// URL$"):
            tracing.is_configured()


_SERVICES = """
import os, pkgutil, sys
from types import FunctionType
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import project.wsgi, project.asgi, project.urls
import state_admin.services, state_admin.tasks
for package in (state_admin.services, state_admin.tasks):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.name.rpartition(".")[2] not in ("second_factors", "single_sign_on"):  # of an extra
            __import__(module.name)
modules = [each for name, each in sys.modules.items() if name.startswith(("state_admin", "project"))]
values = [each for module in modules for each in vars(module).values() if isinstance(each, FunctionType)]
wrapped = {each.__wrapped__ for each in values if each.__code__.co_name == "traced"}
print(len(wrapped), [each for each in values if each in wrapped])
"""


def test_services__with_traces_only__are_wrapped_for_all_who_import_them(folder: Path) -> None:
    assert run_python(folder, "-c", _SERVICES).stdout == "0 []\n"
    done = run_python(folder, "-c", _SERVICES, **ENDPOINT)
    number, _, bare = done.stdout.partition(" ")
    assert (int(number) > 100, bare) == (True, "[]\n"), done.stderr


@pytest.mark.parametrize("env", [ENDPOINT, {"OTEL_TRACES_EXPORTER": "console"}], ids=str)
def test_traces__requested__are_on(env: dict[str, str], folder: Path) -> None:
    done = run_python(folder, "-c", _LOOK, **env)
    assert done.stdout.startswith("True ["), done.stderr


@pytest.mark.parametrize("name", ["sdk", "exporter.otlp.proto.http", "exporter.otlp"])
def test_traces__packages_not_installed__error_is_one_sentence(folder: Path, name: str) -> None:
    without = (
        f"import sys; sys.modules['opentelemetry.{name}'] = None; sys.argv = ['manage.py', 'check'];"
        "import runpy; runpy.run_path('manage.py', run_name='__main__')"
    )
    done = run_python(folder, "-c", without, **ENDPOINT)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_TRACES_EXPORTER need the packages of requirements-otel.txt, "
        "which are not installed: pip install --require-hashes -r requirements-otel.txt"
    )


def test_traces__exporter_is_unknown__error_names_the_variable(folder: Path) -> None:
    done = run_python(
        folder,
        "-c",
        "import sys; sys.argv = ['manage.py', 'check'];"
        "import runpy; runpy.run_path('manage.py', run_name='__main__')",
        OTEL_TRACES_EXPORTER="zipkin",
    )
    assert done.stderr.strip() == "OTEL_TRACES_EXPORTER must be console, none or otlp"


@pytest.mark.system
def test_server__without_a_collector__works_and_stops_in_time() -> None:
    with observed(**ENDPOINT) as server:
        assert server.call("POST", "/threads", {"id": "t1"})["id"] == "t1"
        server.call("POST", "/threads/t1/compactions", {})
        server.line("compaction.finished")  # the worker sends spans, too
        server.running.signal(signal.SIGINT)
        assert server.running.wait() == 0
        assert server.lines("child.killed") == []
        assert "Traceback" not in server.running.output()


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of this process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", provider.get_tracer("tests"), raising=False)
    monkeypatch.setattr(tracing, "_spans", spans)
    return exporter


@asynccontextmanager
async def no_session() -> AsyncIterator[None]:
    yield None


def test_group__of_several_calls__is_in_the_trace_of_each(exported: InMemorySpanExporter) -> None:
    async def work(calls: Sequence[str], _: None) -> list[str]:
        with tracing.statements(["SELECT 1"]):
            return list(calls)

    joiner = Joiner(work, no_session, name="joined tests")

    async def call(name: str) -> None:
        with tracing.span(name):
            await joiner.ask(name, name)

    async def all_at_once() -> None:
        await asyncio.gather(call("a"), call("b"))

    asyncio.run(all_at_once())
    by_name: dict[str, list[ReadableSpan]] = {}
    for span in exported.get_finished_spans():
        by_name.setdefault(span.name, []).append(span)
    groups = by_name["joined tests"]
    assert len(groups) == 2
    parents = {group.parent.span_id for group in groups if group.parent}
    assert parents == {by_name[name][0].context.span_id for name in "ab"}
    (leader,) = [group for group in groups if not group.links]
    (other,) = [group for group in groups if group.links]
    assert other.links[0].context.span_id == leader.context.span_id
    assert other.context.trace_id != leader.context.trace_id
    (statement,) = by_name["SELECT"]
    assert statement.parent
    assert statement.parent.span_id == leader.context.span_id


def test_span__of_an_error__has_its_kind_and_not_its_text(exported: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="canary"), tracing.span("work"):
        raise ValueError("canary")
    (span,) = exported.get_finished_spans()
    assert span.attributes == {"error.type": "ValueError"}
    assert (span.events, span.status.description) == ((), None)


def test_statements__without_a_current_span__begin_no_trace(exported: InMemorySpanExporter) -> None:
    with tracing.statements(["SELECT 1"]) as made:
        made.set({"a": 1})
    assert exported.get_finished_spans() == ()


def test_group__of_a_later_turn__has_no_context_of_an_earlier_call() -> None:
    caller: ContextVar[str] = ContextVar("caller", default="")
    seen: list[str] = []

    async def work(calls: Sequence[str], _: None) -> list[str]:
        seen.append(caller.get())
        return list(calls)

    async def call(joiner: Joiner[str, str, None], name: str) -> None:
        caller.set(name)
        await joiner.ask(name, name)

    async def one_per_group() -> None:
        joiner = Joiner(work, no_session, most=1)
        await asyncio.gather(call(joiner, "a"), call(joiner, "b"))

    asyncio.run(one_per_group())
    assert seen == ["", ""]
