"""State as bytes and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from dsms.aggregates.parts.coded import Words
from dsms.aggregates.parts.picks import Picked
from dsms.aggregates.parts.words import Coding
from dsms.errors import InternalError, UsageError
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_many, compile_predicate
from dsms.sql.expr import Call, Col, Lit
from dsms.sql.types import BOOL, INT
from dsms.state.vec import Vec
from dsms.storage import forms, layout
from dsms.storage.frozen import copy, freeze, thaw
from dsms.storage.layout import LayoutError, by_tag


def again(state, outside=None, refer=lambda o: None, resolve=lambda r: None):
    data = b"".join(map(bytes, freeze(state, outside or {}, refer)))
    return thaw(data, outside or {}, resolve, "a file")


# nothing, one of the arrays, all is compressed later
@pytest.mark.parametrize("most", [0, 9_000, 1 << 20])
def test_what_changes_after_the_copy_is_not_part_of_it(most):
    state = {"a": np.arange(1000), "b": np.arange(2000), "c": np.arange(3)}
    pack = copy(state, {}, most=most)
    for array in state.values():
        array[:] = -1
    state.clear()
    found = thaw(b"".join(map(bytes, pack())), {}, lambda r: None, "a file")
    assert {name: (len(array), array.sum()) for name, array in found.items()} == {
        "a": (1000, 499_500),
        "b": (2000, 1_999_000),
        "c": (3, 3),
    }


def test_arrays_come_back_as_they_were_and_shared_ones_once():
    array = np.arange(100_000)
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    back = again(
        [array, array, [fixed, np.zeros((4, 2), np.int8), np.empty(0, bool), array[10:20]]]
    )
    assert back[0] is back[1]
    assert (back[0] == array).all() and back[0].flags.writeable
    assert not back[2][0].flags.writeable
    assert back[2][1].shape == (4, 2) and back[2][2].dtype == bool
    assert back[2][3].tolist() == list(range(10, 20))


def test_slices_of_arrow_arrays_leave_the_rest_behind():
    whole = pa.array([f"text {i}" for i in range(100_000)])
    data = freeze([whole.slice(5, 2)], {})
    assert sum(map(len, data)) < 5_000
    assert thaw(b"".join(map(bytes, data)), {}, lambda r: None, "a file")[0].to_pylist() == [
        "text 5",
        "text 6",
    ]


def test_compiled_expressions_are_compiled_again():
    twice = Call("add", (Col(0, INT), Col(0, INT)), INT)
    more = Call("gt", (Col(0, INT), Lit(2, INT)), BOOL)
    one, many, mask = again(
        (compile_expr(twice), compile_many((twice, Col(0, INT))), compile_predicate(more))
    )
    cols, errors = [pa.array([1, 2, 3])], ErrorCounter()
    assert one(cols, 3, errors).to_pylist() == [2, 4, 6]
    assert [c.to_pylist() for c in many(cols, 3, errors)] == [[2, 4, 6], [1, 2, 3]]
    assert mask(cols, 3, errors).to_pylist() == [False, False, True]


def test_what_stands_outside_is_put_in_again():
    class Settings:
        """Can't be pickled: it is local."""

    settings = Settings()
    assert again([settings, 1], {"settings": settings})[0] is settings


def test_references_stand_for_what_is_kept_elsewhere():
    kept = Vec(np.int64)
    back = again(
        ["x", kept], refer=lambda o: ("kept", 7) if o is kept else None, resolve=lambda r: r
    )
    assert back == ["x", ("kept", 7)]


def test_words_keep_their_columns():
    words = Words(Coding(INT))
    column = Picked(np.arange(3), np.arange(3), np.ones(3, np.bool_))
    words.columns[column] = "best"
    back, same = again([words, column])
    assert list(back.columns.items()) == [(same, "best")]


def test_what_cannot_be_written_down_is_an_error_of_ours():
    with pytest.raises(InternalError, match="DS931"):
        freeze([(i for i in range(3))], {})


@pytest.mark.parametrize("place", [0, 9, 20, 200, -5])
def test_a_flipped_byte_is_found(place):
    data = bytearray(b"".join(map(bytes, freeze({"a": np.arange(1000), "b": ["x"] * 100}, {}))))
    data[place] ^= 0x40
    with pytest.raises(UsageError, match=r"DS545: the state in a file is damaged"):
        thaw(bytes(data), {}, lambda r: None, "a file")


def test_a_cut_file_is_found():
    data = b"".join(map(bytes, freeze({"a": np.arange(1000)}, {})))
    for size in (0, 5, 40, len(data) - 1):
        with pytest.raises(UsageError, match="DS545"):
            thaw(data[:size], {}, lambda r: None, "a file")


def test_a_class_that_is_not_registered_can_not_be_written_down():
    class Other:
        pass

    with pytest.raises(InternalError, match=r"DS931.*Other is not among the stored classes"):
        freeze([Other()], {})


@dataclass(slots=True)
class Now:
    """A class as it is now: `c` has come, `old` has gone."""

    a: int
    b: list[int]
    c: str = "new"


@dataclass(frozen=True, slots=True)
class Fixed:
    x: int


@pytest.fixture
def kinds(monkeypatch):
    """Stored classes of this page: `now` is of version 2, `turned` has become another class."""
    lines = {s.tag: s for s in by_tag().values()}
    here = Now.__module__
    for tag, version, name in (("now", 2, "Now"), ("turned", 2, "Fixed"), ("fixed", 1, "Fixed")):
        lines[tag] = layout.Stored(tag, version, here, name)
    monkeypatch.setattr(layout, "by_tag", lambda: lines)
    monkeypatch.setattr(
        layout,
        "UPGRADES",
        {
            ("now", 1): lambda f: {"a": f["a"], "b": f.pop("old")},
            ("turned", 1): lambda f: ("turned", f["x"]),
        },
    )
    for known in (layout._kind, layout._simple, layout.kind_of):
        known.cache_clear()
    yield
    for known in (layout._kind, layout._simple, layout.kind_of):
        known.cache_clear()


def test_earlier_versions_are_brought_up(kinds):
    old = layout.new(("now", 1, ("a", "old")))
    layout.fill(old, (("now", 1, ("a", "old")), 7, [1]))
    assert old == Now(7, [1], "new")
    assert layout.value(("turned", 1, ("x",)), 5) == ("turned", 5)
    assert layout.value(("fixed", 1, ("x",)), 5) == Fixed(5)


@pytest.mark.parametrize(
    ("shape", "values", "message"),
    [
        (("now", 3, ("a", "b")), (1, []), "`now` of version 3; 2 is known"),
        (("now", 2, ("a", "b", "d")), (1, [], 2), "has no field d"),
        (("now", 2, ("a",)), (1,), "lacks its field b"),
        (("nobody", 1, ()), (), "a `nobody`, which this version does not know"),
    ],
)
def test_what_does_not_fit_is_told(kinds, shape, values, message):
    with pytest.raises(layout.LayoutError, match=message):
        layout.fill(layout.new(shape), (shape, *values))


@pytest.mark.parametrize(
    ("length", "nulls", "offset"),
    [(-1, 0, 0), (2, 0, -1), (2, 0, 2**62), (2**62, 0, 2**62), (2, 5, 0), (2, -2, 0)],
)
def test_columns_of_impossible_lengths_are_refused_before_arrow_reads_them(
    length: int, nulls: int, offset: int
) -> None:
    with pytest.raises(LayoutError):
        forms.arrow_array(pa.int64(), length, nulls, offset, None, bytes(16))
