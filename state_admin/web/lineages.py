"""The lineage of a thread (parents, children and forks) and of a run (delegated runs) as a drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from state_admin.domain.access import Actor
from state_admin.domain.tree_layout import Place, place_nodes
from state_admin.models import Run, Thread, lineages_sql
from state_admin.services.runs import find_run
from state_admin.templatetags.threads import run_state

from .addresses import run_url, thread_url
from .htmx import Request, render
from .id_address import id_page, id_path
from .runs import run_tabs

# The nodes of a drawing; how many of them are above the current one; how many are counted.
MOST = 200
_ABOVE = 50
COUNTED = 1000
# Pixels: a node, and the room between nodes.
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 232, 48, 40, 12, 4


@dataclass(frozen=True)
class Label:
    """What a node says. `kind` says how it comes from its origin."""

    title: str
    note: str
    state: str
    url: str
    kind: str = ""


@dataclass(frozen=True)
class LineageNode:
    """A node of the drawing; `x` and `y` are its corner."""

    label: Label
    x: int
    y: int
    current: bool
    description: str


@dataclass(frozen=True)
class Lineage:
    """A drawing: nodes, the paths between them (with the kind), and its size. `hidden` says how many
    nodes are not shown, "" if all are."""

    nodes: list[LineageNode]
    edges: list[tuple[str, str]]
    width: int
    height: int
    hidden: str


def lineage_of_thread(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the Lineage tab of a thread."""
    actor = request.actor

    def labels(ids: list[int]) -> dict[int, Label]:
        rows = Thread.objects.visible_to(actor).select_related("active_run").in_bulk(ids)
        return {pk: _label_of_thread(row) for pk, row in rows.items()}

    return {
        "lineage": _draw(actor, "threads", thread.pk, labels),
        "noun": "thread",
        "forms": "thread,threads",
    }


def _label_of_thread(thread: Thread) -> Label:
    state, status = run_state(thread.active_run) if thread.active_run else ("", "idle")
    kind = "child" if thread.parent_id else ""
    if not kind and thread.forked_from:
        kind = f"fork at revision {thread.forked_from['revision']:,}"
    return Label(
        thread.title or thread.public_id,
        " · ".join(filter(None, (status, kind))),
        state,
        thread_url(thread.public_id, tab="lineage"),
        kind.partition(" ")[0],
    )


@id_page(replica=True)
def run_lineage(request: Request, run_id: str) -> HttpResponse:
    run = find_run(request.actor, run_id)

    def labels(ids: list[int]) -> dict[int, Label]:
        rows = Run.objects.visible_to(request.actor).timed().in_bulk(ids)
        return {pk: _label_of_run(row) for pk, row in rows.items()}

    context = {
        "run": run,
        "thread": run.thread,
        "tabs": run_tabs(run.public_id),
        "tab": "lineage",
        "lineage": _draw(request.actor, "runs", run.pk, labels),
        "noun": "run",
        "forms": "run,runs",
    }
    return render(request, "runs/lineage.html", context, part="run")


def _label_of_run(run: Run) -> Label:
    state, status = run_state(run)
    note = " · ".join(filter(None, (status, run.agent_id)))
    return Label(run.public_id, note, state, run_url(run.public_id), "delegated")


def _draw(
    actor: Actor, table: str, current: int, read_labels: Callable[[list[int]], Mapping[int, Label]]
) -> Lineage:
    """The tree that `current` belongs to. If it is larger than the drawing, the path to `current` and
    what is below it come first. What the actor may not see is left out with all behind it."""
    workspace = actor.workspace_id
    path = lineages_sql.read_origins(table, workspace, current, _ABOVE)
    seen = read_labels(path)
    # Above what the actor may not see, nothing is visible.
    path = path[: next((at for at, pk in enumerate(path) if pk not in seen), len(path))]
    tree = lineages_sql.read_tree(table, workspace, path[-1], COUNTED + 1)
    below = tree
    if len(tree) > MOST and len(path) > 1:
        below = lineages_sql.read_tree(table, workspace, current, MOST // 2)
    downwards = path[::-1]
    origins: dict[int, int | None] = dict(zip(downwards, [None, *downwards], strict=False))
    for edge in [*below, *tree]:
        if len(origins) < MOST:
            origins.setdefault(edge.id, edge.above)
    labels = read_labels(list(origins))
    drawn: dict[int, int | None] = {}
    for node, origin in origins.items():
        if node in labels and (origin is None or origin in drawn):
            drawn[node] = origin
    return _lay_out(drawn, labels, current, len(tree), len(origins))


def _lay_out(
    origins: Mapping[int, int | None],
    labels: Mapping[int, Label],
    current: int,
    counted: int,
    drawn: int,
) -> Lineage:
    depths: dict[int, int] = {}
    for node, origin in origins.items():
        depths[node] = 0 if origin is None else depths[origin] + 1
    # Siblings by age, whichever walk has found them.
    ordered = sorted(origins, key=lambda node: (depths[node], node))
    places = place_nodes({node: origins[node] for node in ordered})
    nodes, edges = [], []
    for node, place in places.items():
        label, origin = labels[node], origins[node]
        x, y = _corner(place)
        said = f"{label.title}, {label.note}"
        if origin is not None:
            said += f", from {labels[origin].title}"
            edges.append((_path(_corner(places[origin]), (x, y)), label.kind))
        nodes.append(LineageNode(label, x, y, node == current, said))
    hidden = max(counted - drawn, 0)
    text = f"{hidden:,}{'+' if counted > COUNTED else ''}" if hidden else ""
    width = max(node.x for node in nodes) + _WIDTH + _EDGE
    height = max(node.y for node in nodes) + _HEIGHT + _EDGE
    return Lineage(nodes, edges, width, height, text)


def _corner(place: Place) -> tuple[int, int]:
    return (
        _EDGE + place.column * (_WIDTH + _GAP_X),
        _EDGE + place.row * (_HEIGHT + _GAP_Y),
    )


def _path(origin: tuple[int, int], node: tuple[int, int]) -> str:
    """From the right side of a node to the left side of one that comes from it."""
    (left, top), (x, y) = origin, node
    start, middle = left + _WIDTH, left + _WIDTH + _GAP_X // 2
    return f"M{start} {top + _HEIGHT // 2}H{middle}V{y + _HEIGHT // 2}H{x}"


urlpatterns = [id_path("run/lineage", run_lineage, "run-lineage")]
