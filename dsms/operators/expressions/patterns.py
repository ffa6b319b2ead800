"""LIKE and regular expressions.  A LIKE pattern becomes the cheapest test that says the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import Value, ints, spread
from dsms.operators.expressions.errors import ARGUMENT, ErrorCounter
from dsms.operators.expressions.growth import MOST, admitted, sizes_of
from dsms.operators.expressions.made import AT_ONCE
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.operators.expressions.slices import data_of, offsets_of
from dsms.operators.expressions.strings import by_distinct
from dsms.sql.expr import Call
from dsms.sql.functions.groups import NAME, one_group

ANY, ONE = object(), object()  # % and _
Test = Callable[[pa.Array], pa.Array]


def tokens(pattern: str, escape: str | None) -> list[object] | None:
    """Texts, ANY and ONE in turn; None if the pattern ends in its escape."""
    out: list[object] = []
    chars = iter(pattern)
    for c in chars:
        if c == escape:
            c = next(chars, "")
            if not c:
                return None
        elif c in "%_":
            out.append(ANY if c == "%" else ONE)
            continue
        if out and isinstance(out[-1], str):
            out[-1] += c
        else:
            out.append(c)
    return out


def like_test(parts: Sequence[object]) -> Test:
    """The test for such a pattern."""
    match parts:
        case []:
            return lambda x: pc.equal(x, "")
        case [str() as text]:
            return lambda x: pc.equal(x, text)
        case [str() as text, a] if a is ANY:
            return lambda x: pc.starts_with(x, text)
        case [a, str() as text] if a is ANY:
            return lambda x: pc.ends_with(x, text)
        case [a, str() as text, b] if a is ANY and b is ANY:
            return lambda x: pc.match_substring(x, text)
    regex = "(?s)^" + "".join(_regex(p) for p in parts) + "$"
    return lambda x: pc.match_substring_regex(x, regex)


def _regex(part: object) -> str:
    if part is ANY:
        return ".*"
    if part is ONE:
        return "."
    return "".join("\\" + c if not c.isalnum() and c.isascii() else c for c in str(part))


def _like(call: Call, args: Sequence[Node]) -> Built:
    escape = str(call.params[0]) if call.params and call.params[0] is not None else None
    const = args[1].const
    if (
        const is not None
        and const.is_valid
        and (parts := tokens(const.as_py(), escape)) is not None
    ):
        test = like_test(parts)
        return Built(lambda errors, x, pattern: test(spread(x, length(x, pattern))))

    def kernel(errors: ErrorCounter, x: Value, pattern: Value) -> pa.Array:
        def one(column: pa.Array, text: str) -> pa.Array:
            parts = tokens(text, escape)
            if parts is None:
                errors.add(
                    len(column) - column.null_count,
                    ARGUMENT,
                    f"the pattern '{text[:40]}' ends in its escape",
                )
                return pa.nulls(len(column), pa.bool_())
            return like_test(parts)(column)

        return by_distinct(one, pa.bool_())(errors, x, pattern)

    return Built(kernel, escape is not None)


def _matches(x: pa.Array, regex: str) -> pa.Array:
    return pc.match_substring_regex(x, regex)


def _replace(errors: ErrorCounter, x: Value, *rest: Value) -> pa.Array:
    return by_distinct(partial(_replaced, errors), pa.string())(errors, x, *rest)


def _replaced(errors: ErrorCounter, x: pa.Array, regex: str, to: str) -> pa.Array:
    size = sizes_of(x)
    # matches do not overlap: each group is no longer than the text
    kept = size * (1 + to.count("\\"))
    most = kept + (size + 1) * len(to.encode())
    if most.sum() > AT_ONCE or most.max(initial=0) > MOST:
        found = _matches_of(x, regex)
        if found is not None:
            most = kept + found * len(to.encode())
    return pc.replace_substring_regex(
        admitted(errors, x, most, (), "a text with replacements"), regex, to
    )


# ---------------------------------------------------------------- what has matched

BEGIN, END = b"\xff", b"\xfe"  # bytes that stand in no text


def _group(args: Sequence[Node]) -> tuple[str, int]:
    """The regular expression, and which group of it is asked for."""
    regex, *more = [a.const.as_py() for a in args[1:] if a.const is not None]
    return str(regex), int(more[0]) if more else 0


def _extract(call: Call, args: Sequence[Node]) -> Built:
    regex = one_group(*_group(args))

    def kernel(errors: ErrorCounter, x: Value, *_: Value) -> pa.Array:
        found = pc.extract_regex(spread(x, length(x, *_)), regex)
        return pc.struct_field(found, NAME)  # NULL where the whole is

    return Built(kernel)


def _extract_all(call: Call, args: Sequence[Node]) -> Built:
    regex, group = _group(args)
    to = BEGIN + (b"\\1" if group else b"\\0") + END
    one = one_group(regex, group) if group else regex

    def kernel(errors: ErrorCounter, x: Value, *_: Value) -> pa.Array:
        x = spread(x, length(x, *_))
        x = admitted(errors, x, _listed_size(x, one), (), "a list of matches")
        marked = pc.replace_substring_regex(x.fill_null(""), one, to)
        starts, items = _between_marks(marked)
        many = np.diff(starts) > lists.MOST
        found = lists.joined(starts, lists.spelled_items(items, "STRING"))
        if x.null_count:
            found = pc.if_else(x.is_valid(), found, pa.nulls(len(x), pa.string()))
        why = f"a list has at most {lists.MOST} items"
        return refuse(errors, found, many, [x], ARGUMENT, why)

    return Built(kernel, True, True)


def _listed_size(x: pa.Array, regex: str) -> np.ndarray:
    """int64: bytes of each row's list of matches, or more."""
    size = sizes_of(x)
    most = 10 * size + 6
    if most.sum() > AT_ONCE or most.max(initial=0) > MOST:
        matches = _matches_of(x, regex)
        most = most if matches is None else 6 * size + 4 * matches + 2
    return most


def _matches_of(x: pa.Array, regex: str) -> np.ndarray | None:
    """How often each matches; None where that may be nowhere, between any two characters."""
    if pc.match_substring_regex(pa.scalar(""), regex).as_py():
        return None
    return ints(pc.fill_null(pc.count_substring_regex(x, regex).cast(pa.int64()), 0))


def _between_marks(marked: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """(where the items of each text begin among all, int64[n + 1]; the items)."""
    ends = offsets_of(marked)
    data = data_of(marked)
    begin = np.flatnonzero(data[: ends[-1]] == BEGIN[0])
    end = np.flatnonzero(data[: ends[-1]] == END[0])
    inside = begin >= ends[0]
    begin, end = begin[inside], end[inside]
    return np.searchsorted(begin, ends), lists.cut(data, begin + 1, end)


def _turns(function: Callable[..., pa.Array], to: pa.DataType) -> Builder:
    kernel = by_distinct(function, to)
    return lambda call, args: Built(kernel)


BUILDERS: dict[str, Builder] = {
    "like": _like,
    "regexp_matches": _turns(_matches, pa.bool_()),
    "regexp_extract": _extract,
    "regexp_extract_all": _extract_all,
    "regexp_replace": lambda call, args: Built(_replace, True, True),
}
