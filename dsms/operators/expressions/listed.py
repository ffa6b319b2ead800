"""Functions of lists, over all items of a batch at once: texts are taken apart (`dsms.lists`), and
only those items become values that a function asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms import lists
from dsms.lists import Items
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import (
    Value,
    both,
    floats,
    from_bits,
    from_floats,
    from_ints,
    ints,
    order_keys,
    present,
    spread,
)
from dsms.operators.expressions.decimals import WIDE, rescale
from dsms.operators.expressions.errors import ARGUMENT, CAST, RANGE, ErrorCounter
from dsms.operators.expressions.growth import admitted, sizes_of
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length, literal
from dsms.operators.expressions.show import show
from dsms.operators.expressions.strings import by_distinct
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type, item_of

_TEXT = pa.string()
_MOST = f"a list has at most {lists.MOST} items"
_LOW = np.int64(0xFFFFFFFF)


# ---------------------------------------------------------------- CAST


def parsed(to: Type) -> Built:
    """The kernel from STRING to a LIST."""
    item = str(item_of(to))

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        found, bad = lists.canonical(x, item)
        if bad.any():
            sample = x[int(np.flatnonzero(bad)[0])].as_py()
            errors.add(int(bad.sum()), CAST, f"'{sample[:40]}' is no {to}")
        return found

    return Built(kernel, True, True)


def converted(source: Type, to: Type, cast: Built) -> Built:
    """The kernel from one LIST to another, whose items are `cast`."""
    have, want = item_of(source), item_of(to)
    if have.kind is Kind.NULL:
        return Built(lambda errors, x: x)

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        there, values = _taken_apart(x, have)
        out = cast.kernel(errors.probe(), values)
        found = _put_together(there.starts, lists.spelled_items(out, str(want)), x)
        bad = np.zeros(len(x), np.bool_)
        bad[there.rows[_nulls(out) & ~_nulls(values)]] = True
        return refuse(errors, found, bad, [x], CAST, f"an item of a {source} is no {want}")

    return Built(kernel, cast.fallible, True)


def _taken_apart(x: pa.Array, item: Type) -> tuple[Items, pa.Array]:
    there = lists.items(x)
    return there, lists.item_values(there, str(item))[0]


def _put_together(starts: np.ndarray, spelled: pa.Array, like: pa.Array) -> pa.Array:
    found = lists.joined(starts, spelled)
    return (
        found if not like.null_count else pc.if_else(like.is_valid(), found, pa.nulls(1, _TEXT)[0])
    )


def _nulls(x: pa.Array) -> np.ndarray:
    return x.is_null().to_numpy(zero_copy_only=False)


# ---------------------------------------------------------------- made


def _list_value(call: Call, args: Sequence[Node]) -> Built | Node:
    if not call.args:
        return literal("[]", call.type)
    item = str(item_of(call.type))

    def kernel(errors: ErrorCounter, *xs: Value) -> pa.Array:
        n = length(*xs)
        parts = [lists.spelled_items(spread(x, n), item) for x in xs]
        sizes = sum((sizes_of(p) + 2 for p in parts), np.full(1, 2))
        first = admitted(errors, parts[0], sizes, (), "a list")
        inside = pc.binary_join_element_wise(first, *parts[1:], ", ")
        return pc.binary_join_element_wise("[", inside, "]", "")

    return Built(kernel, True, True)


def _split(x: pa.Array, separator: str) -> pa.Array:
    """NULL where there are too many parts."""
    if separator:
        parts = pc.split_pattern(x, pattern=separator)
    else:
        parts = pa.ListArray.from_arrays(pa.array(np.arange(len(x) + 1, dtype=np.int32)), x)
    many = pc.greater(pc.list_value_length(parts), lists.MOST).fill_null(False)
    found = lists.written(parts, "STRING")
    found = pc.if_else(x.is_valid(), found, pa.nulls(1, _TEXT)[0])
    return pc.if_else(many, pa.nulls(1, _TEXT)[0], found) if pc.any(many).as_py() else found


def _string_split(call: Call, args: Sequence[Node]) -> Built:
    turns = by_distinct(_split, _TEXT)

    def kernel(errors: ErrorCounter, x: Value, separator: Value) -> pa.Array:
        n = length(x, separator)
        given = admitted(errors, spread(x, n), 6 * sizes_of(x) + 4, (separator,), "a list")
        found = turns(errors, given, separator)
        return refuse(errors, found, _nulls(found), [given, separator], ARGUMENT, _MOST)

    return Built(kernel, True, True)


# ---------------------------------------------------------------- asked


def cardinality(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    """Items of each list."""
    return from_ints(lists.counts(x), present(x))


def _element_at(call: Call, args: Sequence[Node]) -> Built:
    item = str(item_of(args[0].type))

    def kernel(errors: ErrorCounter, x: Value, place: Value) -> pa.Array:
        n = length(x, place)
        there = lists.items(spread(x, n))
        at = np.broadcast_to(ints(place), n)
        inside = (at >= 1) & (at <= np.diff(there.starts))
        known = both(present(x), present(place))
        here = inside if known is None else known & inside
        picked = np.where(here, there.starts[:-1] + at - 1, 0)
        texts = there.texts.take(from_ints(picked, here))
        quoted = there.quoted[picked] if len(there.quoted) else np.zeros(n, np.bool_)
        return lists.item_values(Items(np.arange(n + 1), texts, quoted & here), item)[0]

    return Built(kernel)


def _list_contains(call: Call, args: Sequence[Node]) -> Built:
    item = str(item_of(args[0].type))

    def kernel(errors: ErrorCounter, x: Value, wanted: Value) -> pa.Array:
        n = length(x, wanted)
        there = lists.items(spread(x, n))
        one = lists.plain_items(spread(wanted, 1 if isinstance(wanted, pa.Scalar) else n), item)
        one = one[0] if isinstance(wanted, pa.Scalar) else one.take(pa.array(there.rows))
        same = pc.equal(there.texts, one).fill_null(False).to_numpy(zero_copy_only=False)
        found = np.bincount(there.rows[same], minlength=n) > 0
        here = both(present(x), present(wanted))
        return from_bits(found, None if here is None else np.broadcast_to(here, n))

    return Built(kernel)


def _extreme(order: str) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        item = item_of(args[0].type)

        def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
            there, values = _taken_apart(x, item)
            return _first_of(values, there.rows, len(x), order)

        return Built(kernel)

    return build


def _first_of(values: pa.Array, rows: np.ndarray, n: int, order: str) -> pa.Array:
    """Of each row the value that is first in that order, NULL if there is none."""
    some = ~_nulls(values)
    values, rows = values.filter(from_bits(some)), rows[some]
    table = pa.table({"row": rows, "key": _keys(values)})
    sorting = [("row", "ascending"), ("key", order)]
    index = pc.sort_indices(table, sort_keys=sorting).to_numpy()
    first = np.flatnonzero(np.diff(rows, prepend=-1))  # rows ascend, sorted or not
    where, here = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    where[rows[first]], here[rows[first]] = index[first], True
    return values.take(from_ints(where, here))


def _keys(values: pa.Array) -> Value:
    if pa.types.is_floating(values.type):
        return order_keys(values)
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


# ---------------------------------------------------------------- sums


def _list_sum(call: Call, args: Sequence[Node]) -> Built:
    item = item_of(args[0].type)
    add: Kernel = {Kind.FLOAT: _sum_floats, Kind.DECIMAL: _sum_decimals(call.type)}.get(
        item.kind, _sum_ints
    )

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        there, values = _taken_apart(x, item)
        some = ~_nulls(values)
        rows = there.rows[some]
        here = np.bincount(rows, minlength=len(x)) > 0
        return add(errors, values.filter(from_bits(some)), rows, here)

    return Built(kernel, item.kind is not Kind.FLOAT)


def _sum_ints(errors: ErrorCounter, x: pa.Array, rows: np.ndarray, here: np.ndarray) -> pa.Array:
    """In halves of words, whose sums no list makes too large."""
    values, n = ints(x), len(here)
    high, low = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(high, rows, values >> 32)
    np.add.at(low, rows, values & _LOW)
    high, low = high + (low >> 32), low & _LOW
    bad = (high < -(2**31)) | (high >= 2**31)
    found = from_ints((np.where(bad, 0, high) << 32) | low, here)
    return refuse(errors, found, bad, [], RANGE, "a sum of a list leaves 64 bits")


@njit(cache=True, nogil=True)
def _added(values, rows, total):
    """Each list from left to right.  `total`: 0 by list; rows ascend."""
    for i in range(len(values)):
        if i > 0 and rows[i] == rows[i - 1]:
            total[rows[i]] += values[i]
        else:
            total[rows[i]] = values[i]


def ready() -> None:
    """Compile the kernel, or load it from the cache."""
    _added(np.zeros(1), np.zeros(1, np.int64), np.zeros(1))


def _sum_floats(errors: ErrorCounter, x: pa.Array, rows: np.ndarray, here: np.ndarray) -> pa.Array:
    total = np.zeros(len(here))
    _added(floats(x).copy(), rows, total)  # a copy: of one kind for the kernel, as views are not
    return from_floats(total, here)


def _sum_decimals(to: Type) -> Kernel:
    def kernel(errors: ErrorCounter, x: pa.Array, rows: np.ndarray, here: np.ndarray) -> pa.Array:
        wide = pa.table({"row": rows, "x": x.cast(pa.decimal256(WIDE, x.type.scale))})
        sums = wide.group_by("row").aggregate([("x", "sum")])
        where = np.zeros(len(here), np.int64)
        where[sums["row"].to_numpy()] = np.arange(len(sums))
        total = sums["x_sum"].combine_chunks().take(from_ints(where, here))
        return rescale(errors, total, to, "a sum of a list has more than 38 digits")

    return kernel


# ---------------------------------------------------------------- shown


def _array_to_string(call: Call, args: Sequence[Node]) -> Built:
    item = item_of(args[0].type)

    def kernel(errors: ErrorCounter, x: Value, separator: Value) -> pa.Array:
        n = length(x, separator)
        column = spread(x, n)
        sizes = sizes_of(x) + lists.counts(column) * sizes_of(separator)
        column = admitted(errors, column, sizes, (separator,), "a text put together")
        there, values = _taken_apart(column, item)
        texts = show(item).kernel(errors.probe(), values)
        bad = np.zeros(n, np.bool_)
        bad[there.rows[_nulls(texts) & ~_nulls(values)]] = True
        found = _with_separators(there.rows, texts, spread(separator, n), column)
        why = "an item is no UTF-8 text"
        return refuse(errors, found, bad, [column, separator], CAST, why)

    return Built(kernel, True, True)


def _with_separators(
    rows: np.ndarray, texts: pa.Array, separator: pa.Array, like: pa.Array
) -> pa.Array:
    some = ~_nulls(texts)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[some], minlength=len(like)))])
    parts = pa.ListArray.from_arrays(
        pa.array(starts.astype(np.int32)), texts.filter(from_bits(some))
    )
    joined = pc.binary_join(parts, separator)
    return pc.if_else(like.is_valid(), joined, pa.nulls(len(like), _TEXT))


BUILDERS: dict[str, Builder] = {
    "list_value": _list_value,
    "cardinality": lambda call, args: Built(cardinality),
    "element_at": _element_at,
    "list_contains": _list_contains,
    "list_min": _extreme("ascending"),
    "list_max": _extreme("descending"),
    "list_sum": _list_sum,
    "array_to_string": _array_to_string,
    "string_split": _string_split,
}
