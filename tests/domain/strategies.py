"""Hypothesis strategies for JSON values, patches and conversations."""

from __future__ import annotations

from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)
# Few keys and few scalars, so that two values have much in common.
_key = st.sampled_from(["a", "b", "c/d", "e~f", "", "0"])
_scalar = st.sampled_from([None, True, False, 0, 1, 1.0, 2, "x", "1", 10**25])
close_values = st.recursive(
    _scalar,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_key, inner, max_size=3),
    max_leaves=10,
)
# Arrays whose items have an identity in most cases, in any order.
keyed_arrays = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["a", "b", "c", 1, 1.0, 2, 10**25])},
        optional={"n": _scalar, "items": st.lists(_scalar, max_size=3)},
    )
    | st.fixed_dictionaries({"key": st.just("a")}),
    max_size=6,
)
