"""Text functions.  Arguments that Arrow wants constant are taken one distinct value at a time if
they are columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.lists import counts
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import (
    Value,
    both,
    either,
    from_bits,
    from_ints,
    ints,
    present,
    spread,
)
from dsms.operators.expressions.errors import ARGUMENT, ErrorCounter
from dsms.operators.expressions.growth import MOST, admitted, sizes_of
from dsms.operators.expressions.made import AT_ONCE
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.operators.expressions.slices import Points, offsets_of, slice_points
from dsms.sql.expr import Call
from dsms.sql.types import Kind

LIMIT = 1_000_000  # the longest text that a function may make of a short one
_TEXT = pa.string()


def _simple(name: str, **options: object) -> Builder:
    function = getattr(pc, name)
    return lambda call, args: Built(lambda errors, x: function(x, **options))


def by_distinct(function: Callable[..., pa.Array], to: pa.DataType) -> Kernel:
    """A kernel whose function takes a column and constants: each distinct combination of those has
    its turn."""

    def kernel(errors: ErrorCounter, x: Value, *rest: Value) -> pa.Array:
        n = length(x, *rest)
        x = spread(x, n)
        if all(isinstance(r, pa.Scalar) for r in rest):
            values = [r.as_py() for r in rest]
            return pa.nulls(n, to) if None in values else function(x, *values)
        table = pa.table([spread(r, n) for r in rest], names=[str(i) for i in range(len(rest))])
        out = pa.nulls(n, to)
        for row in table.group_by(table.column_names).aggregate([]).to_pylist():
            if None not in row.values():
                out = _one_turn(function, out, x, rest, list(row.values()))
        return out

    return kernel


def _one_turn(
    function: Callable[..., pa.Array],
    out: pa.Array,
    x: pa.Array,
    rest: Sequence[Value],
    values: list,
) -> pa.Array:
    rows = np.ones(len(x), np.bool_)
    for r, value in zip(rest, values, strict=True):
        same = pc.fill_null(pc.equal(r, pa.scalar(value, r.type)), False)
        rows &= (
            np.broadcast_to(np.asarray(same), len(x)) if isinstance(r, pa.Array) else same.as_py()
        )
    part = function(x.filter(from_bits(rows)), *values)
    return pc.replace_with_mask(out, from_bits(rows), part)


def _turns(function: Callable[..., pa.Array], to: pa.DataType) -> Builder:
    kernel = by_distinct(function, to)
    return lambda call, args: Built(kernel)


# --- concatenation


def _concat(call: Call, args: Sequence[Node]) -> Built:
    empty = b"" if call.type.kind is Kind.BYTES else ""
    if len(args) == 1:
        return Built(lambda errors, x: x)
    between = pa.scalar(empty, call.type.arrow)

    def kernel(errors: ErrorCounter, *xs: Value) -> pa.Array:
        first = admitted(
            errors, spread(xs[0], length(*xs)), _sum_of(xs), xs[1:], "a text put together"
        )
        return pc.binary_join_element_wise(first, *xs[1:], between)

    return Built(kernel, True, True)


def _sum_of(xs: Sequence[Value]) -> np.ndarray:
    total = sizes_of(xs[0])
    for x in xs[1:]:
        total = total + sizes_of(x)
    return total


def _concat_ws(call: Call, args: Sequence[Node]) -> Built:
    return (
        Built(_joined, True, True) if len(args) > 1 else Built(lambda errors, separator: separator)
    )


def _joined(errors: ErrorCounter, separator: Value, *xs: Value) -> pa.Array:
    """Each part with the separator before it, without the first separator.

    Arrow's join that skips NULLs (23.0) loses the rows in which all parts are NULL.
    """
    n = length(separator, *xs)
    sizes = _sum_of(xs) + sizes_of(separator) * len(xs)
    separator = admitted(errors, spread(separator, n), sizes, (), "a text put together")
    parts = [spread(x, n) for x in xs]
    pieces = [pc.fill_null(pc.binary_join_element_wise(separator, x, ""), "") for x in parts]
    whole = pc.binary_join_element_wise(*pieces, "")
    return slice_points(whole, Points(separator).lengths(), np.full(1, 2**41), present(separator))


# --- lengths and places


def _length(call: Call, args: Sequence[Node]) -> Built:
    if args[0].type.kind is Kind.LIST:
        return Built(lambda errors, x: from_ints(counts(x), present(x)))
    function = pc.binary_length if args[0].type.kind is Kind.BYTES else pc.utf8_length
    return Built(lambda errors, x: function(x).cast(pa.int64()))


def _octets(call: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pc.binary_length(x).cast(pa.int64()))


def _place(x: pa.Array, part: str) -> pa.Array:
    """1 + the code points before the first occurrence; 0 if there is none."""
    found = ints(pc.find_substring(x, part).cast(pa.int64()))
    points = Points(x)
    first = points.before(points.bounds[:-1] + np.maximum(found, 0)) - points.first[:-1]
    return from_ints(np.where(found < 0, 0, first + 1), present(x))


def _position(call: Call, args: Sequence[Node]) -> Built:
    kernel = by_distinct(_place, pa.int64())
    if call.fn == "strpos":
        return Built(kernel)
    return Built(lambda errors, part, x: kernel(errors, x, part))


# --- pieces


def _masks(n: int, *args: Value) -> np.ndarray | None:
    here = None
    for a in args:
        here = both(here, present(a))
    return None if here is None else np.broadcast_to(here, n)


def _substr(call: Call, args: Sequence[Node]) -> Built:
    def kernel(errors: ErrorCounter, x: Value, start: Value, *count: Value) -> pa.Array:
        n = length(x, start, *count)
        first = ints(start)
        low = np.clip(first, -(2**40), 2**40) - 1
        stop = _stop(first, low, ints(count[0])) if count else np.full(1, 2**41)
        return slice_points(spread(x, n), low, stop, _masks(n, x, start, *count))

    return Built(_constant_substr(args) or kernel)


def _stop(first: np.ndarray, low: np.ndarray, count: np.ndarray) -> np.ndarray:
    """first + count - 1 without overflow; first <= 0 leaves room for every count, first > 0 takes
    part in few."""
    many = np.maximum(count, 0)
    with np.errstate(over="ignore"):
        stop = np.where(first > 0, low + np.minimum(many, 2**41), first + many - 1)
    return np.where(many > 0, stop, low)


def _constant_substr(args: Sequence[Node]) -> Kernel | None:
    """Arrow's own slice, if the places are constants."""
    values: list = [None if a.const is None else a.const.as_py() for a in args[1:]]
    if None in values or args[0].const is not None:
        return None
    first = values[0] - 1
    stop = max(first + max(values[1], 0), 0) if len(values) > 1 else None
    first = max(first, 0)
    if first > 2**31 or (stop is not None and stop > 2**31):
        return None
    return lambda errors, x, *rest: pc.utf8_slice_codeunits(
        x, first, None if stop is None else max(stop, first)
    )


def _left(call: Call, args: Sequence[Node]) -> Built:
    def kernel(errors: ErrorCounter, x: Value, count: Value) -> pa.Array:
        n = length(x, count)
        x, many = spread(x, n), np.clip(ints(count), -(2**40), 2**40)
        stop = np.where(many < 0, np.maximum(Points(x).lengths() + many, 0), many)
        return slice_points(x, np.zeros(1, np.int64), stop, _masks(n, x, count))

    return Built(kernel)


def _right(call: Call, args: Sequence[Node]) -> Built:
    def kernel(errors: ErrorCounter, x: Value, count: Value) -> pa.Array:
        n = length(x, count)
        x, many = spread(x, n), np.clip(ints(count), -(2**40), 2**40)
        start = np.where(many < 0, -many, np.maximum(Points(x).lengths() - many, 0))
        return slice_points(x, start, np.full(1, 2**41), _masks(n, x, count))

    return Built(kernel)


# --- padding and repeating


def _pad(after: bool) -> Builder:
    def kernel(errors: ErrorCounter, x: Value, count: Value, *fill: Value) -> pa.Array:
        n = length(x, count, *fill)
        x, count = (
            spread(x, n),
            _limited(errors, spread(count, n), [x, *fill], "a padded text is too long"),
        )
        size = np.maximum(ints(count), 0)
        widest = _widest(fill[0]) if fill else 1
        x = admitted(errors, x, sizes_of(x) + size * widest, [count, *fill], "a padded text")
        here = _masks(n, x, count, *fill)
        missing = np.maximum(size - Points(x).lengths(), 0)
        missing = missing if here is None else np.where(here, missing, 0)
        more = _filling(spread(fill[0] if fill else pa.scalar(" "), n), missing)
        kept = slice_points(x, np.zeros(1, np.int64), size, here)
        return pc.binary_join_element_wise(*((kept, more) if after else (more, kept)), "")

    return lambda call, args: Built(kernel, True, True)


def _widest(fill: Value) -> np.ndarray:
    """Bytes of each row's code points, at most."""
    return np.minimum(np.maximum(sizes_of(fill), 1), 4)


def _filling(fill: pa.Array, missing: np.ndarray) -> pa.Array:
    """`missing` code points of each row's fill, repeated."""
    size = Points(fill).lengths()
    times = -(-missing // np.maximum(size, 1))
    return slice_points(
        pc.binary_repeat(fill, from_ints(times)), np.zeros(1, np.int64), missing, present(fill)
    )


def _limited(errors: ErrorCounter, count: pa.Array, others: Sequence[Value], why: str) -> pa.Array:
    return refuse(
        errors,
        count,
        ints(count) > LIMIT,
        [count, *others],
        ARGUMENT,
        f"{why}: {LIMIT} is the most",
    )


def _repeat(errors: ErrorCounter, x: Value, count: Value) -> pa.Array:
    n = length(x, count)
    x, count = spread(x, n), spread(count, n)
    times = np.maximum(ints(count), 0)
    size = np.diff(offsets_of(x))
    long = (size > 0) & (times > LIMIT // np.maximum(size, 1))
    x = admitted(
        errors, x, np.where(long, 0, size * np.minimum(times, LIMIT)), [count], "a repeated text"
    )
    count = from_ints(np.where(long | (size == 0), 0, times), present(count))
    return refuse(
        errors,
        pc.binary_repeat(x, count),
        long,
        [x, count],
        ARGUMENT,
        "a repeated text is too long",
    )


# --- parts


def _replace(errors: ErrorCounter, x: Value, *rest: Value) -> pa.Array:
    return by_distinct(partial(_replaced, errors), _TEXT)(errors, x, *rest)


def _replaced(errors: ErrorCounter, x: pa.Array, old: str, new: str) -> pa.Array:
    if not old:
        return x
    size, more = sizes_of(x), len(new.encode()) - len(old.encode())
    if more > 0:
        most = size + size // len(old.encode()) * more
        if most.sum() > AT_ONCE or most.max(initial=0) > MOST:
            most = size + ints(pc.fill_null(pc.count_substring(x, old).cast(pa.int64()), 0)) * more
        x = admitted(errors, x, most, (), "a text with replacements")
    return pc.replace_substring(x, old, new)


def _split_part(errors: ErrorCounter, x: Value, separator: Value, place: Value) -> pa.Array:
    n = length(x, separator, place)
    x = spread(x, n)
    if not isinstance(place, pa.Scalar) or place.as_py() == 0:
        place = spread(place, n)
        place = refuse(
            errors,
            place,
            ints(place) == 0,
            [x, separator, place],
            ARGUMENT,
            "parts count from 1, or from -1",
        )
    kernel = by_distinct(_nth_part, _TEXT)
    return kernel(errors, x, separator, place)


def _nth_part(x: pa.Array, separator: str, place: int) -> pa.Array:
    if not separator:
        return x if abs(place) == 1 else either(pc.is_valid(x), pa.scalar(""), None)
    parts = pc.split_pattern(x, separator, max_splits=place if place > 0 else None)
    bounds = ints(parts.offsets.cast(pa.int64()))
    counts = np.diff(bounds)
    index = place - 1 if place > 0 else counts + place
    here = (index >= 0) & (index < counts)
    found = parts.values.take(from_ints(np.where(here, bounds[:-1] + index, 0), here))
    return either(pc.is_valid(x), pc.fill_null(found, ""), None)


def _trim(side: str) -> Builder:
    function = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[side]

    def cut(x: pa.Array, characters: str = " ") -> pa.Array:
        return function(x, characters) if characters else x

    kernel = by_distinct(cut, _TEXT)
    return lambda call, args: Built(kernel)


def _contains(x: pa.Array, part: str) -> pa.Array:
    return pc.match_substring(x, part)


BUILDERS: dict[str, Builder] = {
    "lower": _simple("utf8_lower"),
    "upper": _simple("utf8_upper"),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "length": _length,
    "octet_length": _octets,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "substr": _substr,
    "left": _left,
    "right": _right,
    "replace": lambda call, args: Built(_replace, True, True),
    "position": _position,
    "strpos": _position,
    "contains": _turns(_contains, pa.bool_()),
    "starts_with": _turns(lambda x, part: pc.starts_with(x, part), pa.bool_()),
    "ends_with": _turns(lambda x, part: pc.ends_with(x, part), pa.bool_()),
    "lpad": _pad(False),
    "rpad": _pad(True),
    "repeat": lambda call, args: Built(_repeat, True, True),
    "reverse": _simple("utf8_reverse"),
    "split_part": lambda call, args: Built(_split_part, True),
}
