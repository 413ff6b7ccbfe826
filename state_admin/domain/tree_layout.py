"""Places the nodes of a tree in layers: the depth of a node is its column, and each leaf has a row.

Lineages are trees, so this is all that a drawing of them needs. A library for graphs would also solve
crossings of edges, which trees do not have.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)


class Place(NamedTuple):
    column: int
    row: int


def place_nodes(origins: Mapping[Node, Node | None]) -> dict[Node, Place]:
    """The places of all nodes, in the order in which people read them: each is followed by its
    branches, the first of which is in its row.

    `origins` has the node that each comes from, None for a root; a node is after its origin. Branches
    keep this order."""
    branches: dict[Node, list[Node]] = {node: [] for node in origins}
    roots: list[Node] = []
    for node, origin in origins.items():
        (roots if origin is None else branches[origin]).append(node)
    places: dict[Node, Place] = {}
    rows = 0
    open_nodes = [(node, 0) for node in reversed(roots)]
    while open_nodes:
        node, column = open_nodes.pop()
        places[node] = Place(column, rows)
        open_nodes += [(branch, column + 1) for branch in reversed(branches[node])]
        if not branches[node]:
            rows += 1
    return places
