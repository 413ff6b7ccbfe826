"""The places of the nodes of a tree."""

from __future__ import annotations

from state_admin.domain.tree_layout import place_nodes


def test_places__tree__has_a_column_for_each_depth_and_a_row_for_each_leaf() -> None:
    places = place_nodes({"a": None, "b": "a", "c": "a", "d": "b", "e": "b", "f": "c"})
    assert places == {
        "a": (0, 0), "b": (1, 0), "d": (2, 0), "e": (2, 1), "c": (1, 2), "f": (2, 2),
    }  # fmt: skip
    assert list(places) == ["a", "b", "d", "e", "c", "f"]


def test_places__deep_tree__needs_no_recursion() -> None:
    depth = 20_000
    places = place_nodes({node: node - 1 if node else None for node in range(depth)})
    assert places[depth - 1] == (depth - 1, 0)


def test_places__several_roots__share_no_row() -> None:
    assert place_nodes({1: None, 2: None, 3: 1}) == {1: (0, 0), 3: (1, 0), 2: (0, 1)}


def test_places__no_nodes__are_none() -> None:
    assert place_nodes({}) == {}
