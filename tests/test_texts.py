"""Codes of texts and bytes, beside a dictionary that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.operators.pieces import go_on
from dsms.state.texts import UNKNOWN, Texts
from tests.effort import examples

_texts = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab", "abc", "abcd"]), st.text())
_steps = st.lists(
    st.tuples(st.sampled_from(["add", "find", "purge", "keep"]), st.lists(_texts, max_size=12)),
    max_size=12,
)


def column(values: list[str | None], kind: pa.DataType) -> pa.Array:
    """In the middle of a longer one."""
    given_ = [v if v is None or kind == pa.string() else v.encode() for v in values]
    pad = "x" if kind == pa.string() else b"x"
    return pa.array([pad, *given_, pad], kind).slice(1, len(values))


def encoded(texts: Texts, col: pa.Array, add: bool) -> list[int]:
    return [int(code) for code in texts.encode(col, add, go_on)]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
@settings(max_examples=examples(200))
@given(steps=_steps)
def test_a_value_keeps_its_code_while_it_is_used(kind: pa.DataType, steps: Any) -> None:
    texts, model = Texts(), dict[str, int]()
    for what, values in steps:
        codes = encoded(texts, column(values, kind), what == "add")
        for value, code in zip(values, codes, strict=True):
            if value is None:
                continue
            if what == "add" and value not in model:
                assert code not in model.values()
                model[value] = code
            assert code == model.get(value, UNKNOWN)
        if what == "purge":  # code 0 is what NULL is written as
            texts.purge(np.array([0, *(c for c in codes if c >= 0)], np.int64))
            model = {v: c for v, c in model.items() if c == 0 or v in values}
        if what == "keep":
            state = texts.__getstate__()
            texts = Texts.__new__(Texts)
            texts.__setstate__(state)
        assert len(texts) == len(model)


def test_many_values_have_codes_of_their_own() -> None:
    texts = Texts()
    values = [f"key {n}" for n in range(50_000)]
    codes = texts.encode(pa.array(values + values[::-1]), True, go_on)
    assert (codes[:50_000] == np.arange(50_000)).all()
    assert (codes[50_000:] == np.arange(50_000)[::-1]).all()
    texts.purge(codes[:100])
    assert encoded(texts, pa.array([values[7], values[500]]), False) == [7, UNKNOWN]
    assert texts.used == sum(map(len, values[:100]))


@pytest.mark.parametrize(
    "change",
    [
        {"known": np.zeros(2, np.uint8)},
        {"place": np.array([[-1, 1], [1, 1]])},
        {"spare": np.array([5])},
        {"spare": np.array([1, 1])},
        {"place": np.zeros((2, 3), np.int64)},
    ],
    ids=["bytes missing", "before the first", "no such code", "twice spare", "another form"],
)
def test_a_state_that_leads_elsewhere_is_refused(change: dict[str, Any]) -> None:
    texts = Texts()
    texts.encode(pa.array(["ab", "cd"]), True, go_on)
    with pytest.raises(ValueError, match="texts are missing"):
        Texts.__new__(Texts).__setstate__({**texts.__getstate__(), **change})
