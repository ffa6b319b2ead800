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
from dsms.storage import forms, layout, opcodes, packed
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


def strange(kind: pa.DataType, n: int = 40) -> pa.Array:
    """Some of the values NULL, texts of all lengths."""
    numbers = [None if i % 7 == 3 else i for i in range(n)]
    if pa.types.is_boolean(kind):
        return pa.array([None if i is None else i % 3 == 0 for i in numbers])
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or kind == pa.large_string():
        return pa.array([None if i is None else "é" * (i % 5) for i in numbers]).cast(kind)
    return pa.array(numbers).cast(kind)


KINDS = (pa.int64(), pa.float64(), pa.bool_(), pa.int8(), pa.timestamp("us"), pa.null(),
         pa.decimal128(38, 9), pa.string(), pa.binary(), pa.large_string())  # a list  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("first, n", [(0, 40), (0, 8), (3, 20), (8, 9), (17, 0), (40, 0), (39, 1)])
def test_slices_of_all_kinds_come_back(kind: pa.DataType, first: int, n: int) -> None:
    array = (pa.nulls(40) if kind == pa.null() else strange(kind)).slice(first, n)
    (back,) = again([array])
    back.validate(full=True)
    assert back.equals(array) and back.null_count == array.null_count
    (twice,) = again([pa.concat_arrays([back, back]).slice(n)])
    assert twice.equals(array)


def test_arrays_without_values_come_back() -> None:
    for kind in KINDS:
        for array in (pa.array([], kind), pa.nulls(9, kind), pa.nulls(0, kind)):
            assert again([array])[0].equals(array), kind


def test_columns_of_arrow_never_change_and_are_not_copied() -> None:
    texts = pa.array(["x" * 1000] * 1000)
    packing = copy([texts, texts.slice(500), np.arange(1000)], {})
    assert 8_000 <= packing.held < 16_000  # the numbers, the places of a slice, what is said
    whole, half, _ = thaw(b"".join(packing()), {}, lambda r: None, "a file")
    assert packing.held == 0 and not packing.parts
    assert whole.equals(texts) and half.equals(texts.slice(500))


@pytest.mark.parametrize("piece", [1, 600, 1000, 8000, 1 << 20])
def test_large_parts_are_written_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "PIECE", piece)
    state = {"a": np.arange(1000), "b": pa.array(["text"] * 1000), "c": np.empty(0), "d": b"few"}
    pieces = list(copy(state, {}, most=0)())
    back = thaw(b"".join(pieces), {}, lambda r: None, "a file")
    assert back["a"].tolist() == list(range(1000)) and back["b"].equals(state["b"])
    assert len(back["c"]) == 0 and back["d"] == b"few"


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


@pytest.mark.parametrize(
    "said",
    [
        b"\x80\x05Nr\x00\x00\x00\x40.",
        b"Np999999999\n.",
        b"I1\n.",
        b"\x96" + b"\xff" * 7 + b"\x00N.",
    ],
)
def test_numbers_of_objects_make_no_room(said: bytes) -> None:
    """A reader makes room for as many objects as are said to have been put down."""
    with pytest.raises(LayoutError, match=r"no part of a state|more than there is"):
        opcodes.check(said)
    with pytest.raises(UsageError, match="DS546"):
        thaw(b"".join(map(bytes, packed.written((packed.pack(said),), 1))), {}, str, "here")
