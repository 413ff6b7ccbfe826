"""Names, keys, ids and scope kinds."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.domain.scopes import (
    BadName,
    ScopeKind,
    agent_type_key,
    check_id,
    check_key,
    check_name,
    global_key,
    parent_thread_key,
    scope_kind,
    thread_key,
)


@pytest.mark.parametrize("name", ["a", "_", "9", "__runtime.run_lifecycle", "A.b:c-d_1", "x" * 128])
def test_name__within_the_grammar__is_valid(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", ":a", "a b", "a/b", "é", "a\n", "x" * 129, "a\0"])
def test_name__outside_the_grammar__is_refused(name: str) -> None:
    with pytest.raises(BadName, match="1 to 128 characters"):
        check_name(name)


@pytest.mark.parametrize(
    "key",
    ["thread::a", "thread__a", "thread//a", "a/b/../c", " pad ", "ключ🙂", "100%25", "x" * 512],
)
def test_key__any_text__is_valid(key: str) -> None:
    check_key(key)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("", "1 to 512 bytes"),
        ("x" * 513, "513 bytes"),
        ("é" * 257, "514 bytes"),
        ("a\0b", r"U\+0000"),
        ("a\nb", r"U\+000A"),
        ("\x7f", r"U\+007F"),
        ("\x9f", r"U\+009F"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_key__empty_long_or_control__is_refused_with_the_rule(key: str, why: str) -> None:
    with pytest.raises(BadName, match=why):
        check_key(key)


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        (check_key, "", "the key has 0 bytes; it must have 1 to 512 bytes of UTF-8"),
        (check_key, "\ud800", "the key contains a lone surrogate; it must be UTF-8 text"),
        (
            check_key,
            "a\tb\0",
            "the key contains the control character U+0009 at character 1; any other character is valid",
        ),
        (check_id, "..", "an id cannot be '..': HTTP clients remove it from a path"),
    ],
)
def test_text__refused__reports_the_rule(check: Any, text: str, message: str) -> None:
    with pytest.raises(BadName) as refused:
        check(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a b", "'a b'"), ("é" * 80, ascii("é" * 80)), (" " * 81, f"'{' ' * 80}'…")],
)
def test_name__refused__is_shown_in_ascii_and_truncated(name: str, shown: str) -> None:
    with pytest.raises(BadName) as refused:
        check_name(name)
    assert str(refused.value) == (
        "a name is 1 to 128 characters: letters, digits, '_', '.', ':' and '-' of ASCII,"
        f" the first one a letter, digit or '_'; got {shown}"
    )


def test_id__up_to_128_bytes__is_valid() -> None:
    check_id("é" * 64)
    with pytest.raises(BadName, match="130 bytes"):
        check_id("é" * 65)
    with pytest.raises(BadName, match="control character"):
        check_id("a\tb")


@pytest.mark.parametrize("dots", [".", ".."])
def test_id__dot_segment__is_refused(dots: str) -> None:
    with pytest.raises(BadName, match="remove it from a path"):
        check_id(dots)
    check_id(f"{dots}/a")


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("global", ScopeKind.GLOBAL),
        ("system", ScopeKind.SYSTEM),
        ("thread::1", ScopeKind.THREAD),
        ("thread::a::b", ScopeKind.THREAD),
        ("parent_thread::1", ScopeKind.PARENT_THREAD),
        ("agent_type::planner", ScopeKind.AGENT_TYPE),
        ("parent_thread::", ScopeKind.CUSTOM),
        ("thread::", ScopeKind.CUSTOM),
        ("thread__1", ScopeKind.CUSTOM),
        ("Thread::1", ScopeKind.CUSTOM),
        ("global::x", ScopeKind.CUSTOM),
        ("free", ScopeKind.CUSTOM),
    ],
)
def test_scope_kind__of_a_key__depends_on_its_form(key: str, kind: ScopeKind) -> None:
    assert scope_kind(key) is kind


def test_scope_keys__of_the_reference_implementation__have_their_kind() -> None:
    assert global_key() == "global"
    assert parent_thread_key("t") == "parent_thread::t"
    assert agent_type_key("a") == "agent_type::a"
    assert thread_key("t") == "thread::t"
    assert [scope_kind(k) for k in ("global", "thread::t")] == ["global", "thread"]
