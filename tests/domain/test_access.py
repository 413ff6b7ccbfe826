"""Roles, permissions of an actor, restrictions of tokens."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.access import Actor, Role, narrower


def actor(
    role: Role = Role.EDITOR, namespaces: tuple[str, ...] = (), threads: tuple[str, ...] = ()
) -> Actor:
    return Actor("token", "t1", "bot", 1, role, namespaces, threads)


@pytest.mark.parametrize(
    ("role", "covered"),
    [
        (Role.VIEWER, {Role.VIEWER}),
        (Role.EDITOR, {Role.VIEWER, Role.EDITOR}),
        (Role.ADMIN, {Role.VIEWER, Role.EDITOR, Role.ADMIN}),
    ],
)
def test_role__each__includes_itself_and_those_below(role: Role, covered: set[Role]) -> None:
    assert {other for other in Role if role.covers(other)} == covered
    assert {other for other in Role if actor(role).may(other)} == covered


@pytest.mark.parametrize(
    ("globs", "name", "seen"),
    [
        ((), "anything", True),
        (("team.*",), "team.plan", True),
        (("team.*",), "team", False),
        (("team",), "team", True),
        (("team",), "team2", False),
        (("*.plan", "x"), "a.plan", True),
        (("a*b*c",), "a.b.b.c", True),
        (("a*b",), "ab", True),
        (("ab*ba",), "aba", False),
        (("a*b*b",), "ab", False),
        (("a*b*b",), "acbb", True),
        (("a?c",), "abc", False),
        (("[ab]",), "a", False),
        (("*",), "", True),
    ],
)
def test_namespace__with_globs__is_visible_if_one_matches(
    globs: tuple[str, ...], name: str, seen: bool
) -> None:
    assert actor(namespaces=globs).sees_namespace(name) is seen


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_glob__any__matches_like_a_regex(glob: str, name: str) -> None:
    expected = re.fullmatch(fnmatch.translate(glob), name) is not None
    assert actor(namespaces=(glob,)).sees_namespace(name) is expected


def test_glob__crafted_to_backtrack__terminates() -> None:
    # A backtracking engine would reach the timeout of the tests here.
    assert not actor(namespaces=("a*" * 60 + "b",)).sees_namespace("a" * 128)


def test_thread__with_prefixes__is_visible_if_one_matches() -> None:
    assert actor().sees_thread("t1")
    assert actor(threads=("a-", "b-")).sees_thread("b-7")
    assert not actor(threads=("a-",)).sees_thread("b-a-")


@pytest.mark.parametrize(
    ("role", "namespaces", "threads", "reasons"),
    [
        (Role.EDITOR, ["team.*"], ["a-"], 0),
        (Role.VIEWER, ["team.plan", "team.a*"], ["a-1", "a-"], 0),
        (Role.ADMIN, ["team.*"], ["a-"], 1),
        (Role.EDITOR, [], ["a-"], 1),
        (Role.EDITOR, ["team*"], ["a-"], 1),
        (Role.EDITOR, ["*"], ["a-"], 1),
        (Role.EDITOR, ["team.*", "other", "x*"], ["a-"], 2),
        (Role.EDITOR, ["team.*"], [], 1),
        (Role.EDITOR, ["team.*"], ["a", ""], 2),
        (Role.ADMIN, [], [], 3),
    ],
)
def test_token__permissions_beyond_its_creator__are_refused_with_reasons(
    role: Role, namespaces: list[str], threads: list[str], reasons: int
) -> None:
    creator = actor(Role.EDITOR, ("team.*",), ("a-",))
    assert len(narrower(role, namespaces, threads, creator=creator)) == reasons


def test_token__of_an_unlimited_creator__may_have_any_permissions() -> None:
    assert narrower(Role.ADMIN, [], ["x"], creator=actor(Role.ADMIN)) == []


@given(
    st.lists(st.text("ab*", min_size=1, max_size=4), min_size=1, max_size=2),
    st.text("ab*", min_size=1, max_size=4),
    st.text("ab", max_size=5),
)
def test_token__within_its_creators_permissions__sees_nothing_that_the_creator_does_not(
    limits: list[str], asked: str, name: str
) -> None:
    creator = actor(namespaces=tuple(limits))
    if not narrower(Role.VIEWER, [asked], [], creator=creator):
        made = actor(namespaces=(asked,))
        assert not made.sees_namespace(name) or creator.sees_namespace(name)
