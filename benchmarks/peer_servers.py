"""Servers that Commonhold is compared with over HTTP: two with LangGraph's API, and one with an
empty view."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.database_floors import Database
from benchmarks.load import Work
from benchmarks.own_server import (
    KEYS,
    LONG_STEP,
    READ,
    ROOT,
    STEP,
    WRITE,
    Api,
    free_port,
    make_step,
    make_text,
    make_value,
    pick_key,
    vary,
)

LANGGRAPH = Path(__file__).parent / "peers" / "langgraph_dev"


@contextmanager
def run_server(
    command: list[str], port: int, ready: str, folder: Path = ROOT, **env: str
) -> Iterator[Api]:
    """Run a server and yield its API. `ready` is a path that it serves."""
    with TemporaryDirectory() as name:
        log = Path(name) / "log"
        with log.open("wb") as output:
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | env,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            api = Api(port)
            try:
                api.wait(ready, child)
            except Exception as error:
                raise RuntimeError(log.read_text(errors="replace")[-2000:]) from error
            yield api
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


# LangGraph's API -----------------------------------------------------------------------------


@contextmanager
def run_langgraph(python: str) -> Iterator[Api]:
    """LangGraph's dev server. Its state is in memory; it writes a copy to its folder from time to
    time."""
    port = free_port()
    with TemporaryDirectory() as name:
        folder = shutil.copytree(LANGGRAPH, Path(name) / "app")
        command = [
            str(Path(python).parent / "langgraph"),
            *("dev", "--no-browser", "--no-reload", "--server-log-level", "error"),
            *("--port", str(port)),
        ]
        with run_server(command, port, "/ok", folder, LOG_LEVEL="ERROR") as api:
            yield api


@contextmanager
def run_aegra(python: str, database: Database) -> Iterator[Api]:
    """A server of LangGraph's API that keeps its state in PostgreSQL."""
    port = free_port()
    database.create("aegra")
    with TemporaryDirectory() as name:
        folder = shutil.copytree(LANGGRAPH, Path(name) / "app")
        (folder / "langgraph.json").rename(folder / "aegra.json")
        url = f"postgresql://{database.user}@/aegra?host={database.host}"
        command = [
            *(python, "-m", "uvicorn", "aegra_api.main:app"),
            *("--port", str(port), "--log-level", "error"),
        ]
        settings = {"DATABASE_URL": url, "PORT": str(port), "LOG_LEVEL": "ERROR"}
        with run_server(command, port, "/health", folder, **settings) as api:
            yield api


def find_langgraph_works(api: Api) -> list[Work]:
    """The store's items and the state of threads. LangGraph's API has no preconditions, patches or
    batches."""

    def put(number: int) -> dict[str, object]:
        return {"namespace": ["bench"], "key": f"k{number}", "value": make_value()}

    for number in range(KEYS):
        api.call("PUT", "/store/items", put(number))
    reads = [api.render("GET", f"/store/items?namespace=bench&key=k{n}") for n in range(KEYS)]
    writes = [vary(api.render("PUT", "/store/items", put(n))) for n in range(KEYS)]
    return [
        Work(READ, lambda connection, turn, _: reads[pick_key(connection, turn)]),
        Work(WRITE, lambda c, turn, _: writes[pick_key(c, turn)](c, turn)),
        _update_state(api, STEP, long=False),
        _update_state(api, LONG_STEP, long=True),
    ]


def _update_state(api: Api, row: str, *, long: bool) -> Work:
    step = make_step()
    body = {"values": {**step["updates"], "messages": step["messages"]}, "as_node": "step"}
    calls: list[Callable[[int, int], bytes]] = []

    def prepare(connections: int) -> None:
        calls.clear()
        for _ in range(connections):
            created = api.call("POST", "/threads", {"metadata": {"graph_id": "bench"}})
            path = f"/threads/{created['thread_id']}/state"
            if long:
                messages = [{"role": "user", "content": make_text(270)} for _ in range(1000)]
                held = {f"held{n}": {"text": make_text(5000)} for n in range(10)}
                before = {"values": {"held": held, "messages": messages}, "as_node": "step"}
                api.call("POST", path, before)
            calls.append(vary(api.render("POST", path, body)))

    return Work(row, lambda c, turn, _: calls[c](c, turn), prepare=prepare)


# Floors --------------------------------------------------------------------------------------


@contextmanager
def run_empty_view(workers: int, threads: int) -> Iterator[Api]:
    port = free_port()
    command = [
        str(Path(sys.executable).parent / "granian"),
        *("--interface", "wsgi", "--workers", str(workers), "--blocking-threads", str(threads)),
        *("--port", str(port), "--log-level", "error", "benchmarks.empty_view:application"),
    ]
    # DJANGO_SETTINGS_MODULE of this process belongs to another project.
    with run_server(command, port, "/empty", DJANGO_SETTINGS_MODULE="") as api:
        yield api


def find_empty_works(api: Api, path: str, *, writes: bool) -> list[Work]:
    """A GET and, with `writes`, a PUT whose body is parsed."""
    read = api.render("GET", path)
    works = [Work(READ, lambda *_: read)]
    if writes:
        write = vary(api.render("PUT", path, {"value": make_value()}))
        works.append(Work(WRITE, lambda c, turn, _: write(c, turn)))
    return works
