"""State as bytes and back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from dsms.errors import InternalError, UsageError
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_many, compile_predicate
from dsms.operators.join_kernels import __name__ as KERNELS
from dsms.sql.expr import Call, Col, Lit
from dsms.sql.types import BOOL, INT
from dsms.storage.frozen import freeze, thaw
from dsms.synopses.coded import Words


def again(state, outside=None, refer=lambda o: None, resolve=lambda r: None):
    data = b"".join(map(bytes, freeze(state, outside or {}, refer)))
    return thaw(data, outside or {}, resolve, "a file")


@dataclass
class Thing:
    array: np.ndarray
    also: np.ndarray
    rest: list = field(default_factory=list)


def test_arrays_come_back_as_they_were_and_shared_ones_once():
    array = np.arange(100_000)
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    back = again(Thing(array, array, [fixed, np.zeros((4, 2), np.int8), np.empty(0, bool), array[10:20]]))
    assert back.array is back.also
    assert (back.array == array).all() and back.array.flags.writeable
    assert not back.rest[0].flags.writeable
    assert back.rest[1].shape == (4, 2) and back.rest[2].dtype == bool
    assert back.rest[3].tolist() == list(range(10, 20))


def test_slices_of_arrow_arrays_leave_the_rest_behind():
    whole = pa.array([f"text {i}" for i in range(100_000)])
    data = freeze([whole.slice(5, 2)], {})
    assert sum(map(len, data)) < 5_000
    assert thaw(b"".join(map(bytes, data)), {}, lambda r: None, "a file")[0].to_pylist() == ["text 5", "text 6"]


def test_compiled_expressions_are_compiled_again():
    twice = Call("add", (Col(0, INT), Col(0, INT)), INT)
    more = Call("gt", (Col(0, INT), Lit(2, INT)), BOOL)
    one, many, mask = again((compile_expr(twice), compile_many((twice, Col(0, INT))), compile_predicate(more)))
    cols, errors = [pa.array([1, 2, 3])], ErrorCounter()
    assert one(cols, 3, errors).to_pylist() == [2, 4, 6]
    assert [c.to_pylist() for c in many(cols, 3, errors)] == [[2, 4, 6], [1, 2, 3]]
    assert mask(cols, 3, errors).to_pylist() == [False, False, True]


def test_kernels_travel_by_name():
    from importlib import import_module

    module = import_module(KERNELS)
    kernel = next(v for v in vars(module).values() if hasattr(v, "py_func"))
    assert again([kernel])[0] is kernel


def test_what_stands_outside_is_put_in_again():
    class Settings:
        """Can't be pickled: it is local."""

    settings = Settings()
    assert again([settings, 1], {"settings": settings})[0] is settings


def test_references_stand_for_what_is_kept_elsewhere():
    kept = Thing(np.arange(3), np.arange(3))
    back = again(["x", kept], refer=lambda o: ("kept", 7) if o is kept else None, resolve=lambda r: r)
    assert back == ["x", ("kept", 7)]


def test_words_keep_their_columns():
    class Coding:
        pass

    words = Words.__new__(Words)
    words.__init__(None)  # type: ignore[misc]
    column = Thing(np.arange(3), np.arange(3))
    column.__class__.__hash__ = object.__hash__  # type: ignore[method-assign]
    words.columns[column] = "array"
    back, same = again([words, column])
    assert list(back.columns.items()) == [(same, "array")]


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


def test_a_class_that_is_no_more_names_the_version():
    import sys
    import types

    module = types.ModuleType("gone_by_then")
    sys.modules["gone_by_then"] = module
    exec("class Gone: pass", module.__dict__)
    data = b"".join(map(bytes, freeze([module.Gone()], {})))
    del sys.modules["gone_by_then"]
    with pytest.raises(UsageError, match=r"DS546.*another version"):
        thaw(data, {}, lambda r: None, "a file")
