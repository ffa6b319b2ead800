"""Whatever a user hands in -> physical columns of a schema, and an account of the rows that were
refused.

Two ways to fail.  A form that can't be right as a whole (unknown column, wrong type, unequal
lengths) is a UsageError and nothing is taken.  A row that alone is wrong (a wrong value in a list
of rows, NULL in a NOT NULL column, an instant outside the years 0001-9999) is refused and counted,
and the others stand.

The forms are read by `dsms.forms`, as the client reads them; what each type takes stands in
`columns.py`.  NaN from pandas means a missing value there and becomes NULL; in Arrow, NumPy, polars
and lists NaN is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms.errors import UsageError
from dsms.forms.arrays import Values, inferred
from dsms.forms.frames import Named, is_rows, named, ordinary, without_extension
from dsms.forms.scalars import Instant, a, as_builtin, kind_name, shown
from dsms.intake.columns import Mismatch, joined, to_physical
from dsms.intake.defaults import default_values, extended, filled, least, needed
from dsms.intake.hints import hint_for
from dsms.intake.keys import Keys
from dsms.intake.values import physical
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Field, Kind, Schema, Type
from dsms.untrusted.types import is_list, why_not


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows refused for one reason: a stable short `reason`, how many, the position of the first,
    and what was wrong.  `places`: int64[count], the positions of all, where they are the writer's
    rows."""

    reason: str
    count: int
    first: int
    detail: str
    places: np.ndarray | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        return f"{rows} refused ({self.reason}): row {self.first}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Converted:
    """`columns`: physical arrays of equal length in schema order, without the refused rows.
    `sent`: rows that came; `kept`: their positions (int64) if some were refused, else None."""

    columns: tuple[pa.Array, ...]
    sent: int
    kept: np.ndarray | None = None
    refusals: tuple[Refusal, ...] = ()

    def __len__(self) -> int:
        return self.sent if self.kept is None else len(self.kept)

    def after(self, count: int) -> Converted:
        """Without the first `count` rows, and what was refused among them."""
        kept = np.arange(len(self)) if self.kept is None else self.kept
        return Converted(tuple(c.slice(count) for c in self.columns), self.sent, kept[count:])


def to_batch(
    data: Any, schema: Schema, name: str = "the stream", computed: Sequence[str] = ()
) -> Converted:
    """Rows of `schema` from a RecordBatch, Table, anything with an Arrow C stream (polars, DuckDB),
    a pandas DataFrame, a dict of column -> list, NumPy array, Series or Arrow array, or a list of
    rows (lists in column order, or dicts).

    Columns with names are matched in any case; a missing column that may be NULL is NULL.  `name`
    is for messages.  Raises UsageError DS501-DS506, and DS443 for a column of those that are
    `computed`.
    """
    if is_rows(data):
        return _from_rows(data, schema, name, computed)
    columns, rows = named(data, name)
    found = _found(columns, schema, name, computed)
    arrays = _align(found, rows, schema, name)
    return checked(arrays, rows, None, [], schema, found)


# -- forms with names ------------------------------------------------------------------------------


def _found(
    columns: Named, schema: Schema, name: str, computed: Sequence[str]
) -> list[Values | None]:
    """The columns in schema order, as they came; None: it did not."""
    found: list[Any] = [None] * len(schema)
    keys = Keys([f.name for f in schema], name, computed)
    for key, column in columns:
        at = keys.position(key)
        if found[at] is not None:
            raise UsageError("DS506", f"column {schema[at].name!r} of {name} is given twice")
        if not isinstance(column, list) and (why := why_not(column.type)) is not None:
            raise UsageError("DS503", f"column {key!r} of {name}: {why}")
        found[at] = column
    missing = [f.name for f, c in zip(schema, found, strict=True) if c is None and needed(f)]
    if missing:
        given = ", ".join(k for k, _ in columns) or "none"
        listed = ", ".join(missing)
        raise UsageError(
            "DS502", f"{name} needs a value for NOT NULL column {listed}; columns given: {given}"
        )
    return found


def _align(found: Sequence[Values | None], rows: int, schema: Schema, name: str) -> list[pa.Array]:
    """They with physical types."""
    return [
        filled(f, rows) if c is None else _column(c, f, name)
        for f, c in zip(schema, found, strict=True)
    ]


def _column(values: Values, field: Field, name: str) -> pa.Array:
    """One column as a physical array."""
    try:
        if isinstance(values, list):
            return _from_values(values, field)
        array = joined(values) if isinstance(values, pa.ChunkedArray) else values
        try:
            return to_physical(array, field.type)
        except Mismatch as err:
            raise _first_wrong(array, field.type) or err from None
    except Mismatch as err:
        why = f": {err.why}" if err.why else ""
        message = f"column {field.name!r} of {name}: expected {field.type}, got {err.got}{why}"
        raise UsageError("DS503", message, hint=err.hint) from None


def _from_values(values: Sequence[Any], field: Field) -> pa.Array:
    """A list, as a whole or else value by value; the first value that is wrong is named."""
    try:
        return _whole(values, field.type)
    except Mismatch:
        values = [as_builtin(value) for value in values]  # as which a client would send them
    try:
        return _whole(values, field.type)
    except Mismatch as whole:
        out = []
        for row, value in enumerate(values):
            try:
                out.append(physical(value, field.type))
            except ValueError as err:
                raise _wrong_value(value, row, err, whole.hint) from None
        return pa.array(out, field.type.arrow)


def _first_wrong(array: pa.Array, type_: Type) -> Mismatch | None:
    """A column can't be taken: the first value that can't, if it is one value's fault."""
    if why_not(array.type) is not None or _too_long(array):
        return None
    for row, scalar in enumerate(without_extension(array)):
        try:
            value = as_builtin(scalar)
        except (ValueError, OverflowError):  # no date of Python's
            return None
        try:
            physical(value, type_)
        except ValueError as err:
            return _wrong_value(value, row, err, hint_for(array.type, type_))
    return None


def _too_long(array: pa.Array) -> bool:
    """Whether it has lists of too many items, of which nobody wants to see one by one."""
    array = without_extension(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    elif pa.types.is_run_end_encoded(array.type):
        array = array.values
    if not is_list(array.type):
        return False
    return (pc.max(pc.list_value_length(array)).as_py() or 0) > lists.MOST


def _wrong_value(value: Any, row: int, err: Exception, hint: str | None) -> Mismatch:
    value = as_builtin(value)
    why = getattr(err, "why", "").removeprefix("which ")
    return Mismatch(f"{kind_name(value)} {shown(value)} in row {row}", why, hint)


def _whole(values: Sequence[Any], type_: Type) -> pa.Array:
    """Values of one kind, as a whole.  Raises Mismatch."""
    array = inferred(values)
    if array is None:
        raise Mismatch("a list of mixed or unknown values")
    return to_physical(array, type_)


# -- rows ------------------------------------------------------------------------------------------


def _from_rows(
    rows: Sequence[Any], schema: Schema, name: str, computed: Sequence[str]
) -> Converted:
    """Lists in column order, or dicts.  Columns that convert as a whole cost no work per value."""
    rows = ordinary(rows)
    fewest = least(schema)
    if fewest < len(schema):
        rows = [extended(row, schema, fewest) for row in rows]
    if dict in set(map(type, rows)):
        return _from_dicts(rows, schema, name, computed)
    columns = _transposed(rows, len(schema))
    if columns is not None:
        return _from_columns(columns, len(rows), None, [], schema)
    return _without(
        rows,
        {i: _shape(r, schema) for i, r in enumerate(rows) if not _is_row(r, len(schema))},
        schema,
    )


def _without(rows: Sequence[Any], bad: dict[int, str], schema: Schema) -> Converted:
    """The rows but for those that are none, which are refused."""
    kept = np.array([i for i in range(len(rows)) if i not in bad], np.int64)
    columns = _transposed([rows[i] for i in kept], len(schema)) or []
    refusals = [_refusal("not a row of this stream", bad)] if bad else []
    return _from_columns(columns, len(rows), kept, refusals, schema)


def _from_dicts(
    rows: Sequence[Any], schema: Schema, name: str, computed: Sequence[str]
) -> Converted:
    """Rows of which some are dicts: each by its own keys."""
    keys = Keys([f.name for f in schema], name, computed, default_values(schema))
    lists: list[Any] = []
    bad: dict[int, str] = {}
    for i, row in enumerate(rows):
        if type(row) is dict:
            found = keys.values(row)
            if found is None:
                bad[i] = keys.clash(row)
            row = found
        elif not _is_row(row, len(schema)):
            bad[i] = _shape(row, schema)
        lists.append(row)
    if bad:
        return _without(lists, bad, schema)
    return _from_columns(_transposed(lists, len(schema)) or [], len(rows), None, [], schema)


def _transposed(rows: Sequence[Any], width: int) -> list[Sequence[Any]] | None:
    """Columns of the rows; None if a row has another width or is no row."""
    if not rows:
        return [()] * width
    if not set(map(type, rows)) <= {list, tuple} or set(map(len, rows)) != {width}:
        return None
    return [[r[i] for r in rows] for i in range(width)]


def _is_row(row: Any, width: int) -> bool:
    return isinstance(row, (list, tuple)) and len(row) == width


def _shape(row: Any, schema: Schema) -> str:
    if isinstance(row, (list, tuple)):
        return f"{len(row)} values for {len(schema)} columns ({', '.join(f.name for f in schema)})"
    return f"{a(type(row).__name__)} {shown(row)} is not a list of values in column order"


def _from_columns(
    columns: Sequence[Sequence[Any]],
    sent: int,
    kept: np.ndarray | None,
    refusals: list[Refusal],
    schema: Schema,
) -> Converted:
    """Lists per column: whole columns where that works, else value by value, refusing rows."""
    arrays: list[pa.Array] = []
    bad: dict[int, str] = {}
    for column, values in zip(schema, columns, strict=True):
        try:
            arrays.append(_whole(values, column.type))
        except Mismatch:
            arrays.append(_one_by_one(values, column, bad))
    if bad:
        positions = np.arange(sent, dtype=np.int64) if kept is None else kept
        refusals.append(_refusal("wrong value", {int(positions[i]): why for i, why in bad.items()}))
        good = np.setdiff1d(np.arange(len(positions)), list(bad))
        arrays, kept = [a.take(pa.array(good)) for a in arrays], positions[good]
        columns = [[values[i] for i in good] for values in columns]
    return checked(arrays, sent, kept, refusals, schema, columns)


def _one_by_one(values: Sequence[Any], field: Field, bad: dict[int, str]) -> pa.Array:
    out = []
    for i, value in enumerate(values):
        try:
            out.append(physical(value, field.type))
        except ValueError as err:
            out.append(None)
            bad.setdefault(i, f"column {field.name}: {err}")
    return pa.array(out, field.type.arrow)


def _refusal(reason: str, bad: dict[int, str]) -> Refusal:
    first = min(bad)
    return Refusal(reason, len(bad), first, bad[first], np.array(sorted(bad), np.int64))


# -- what every form is checked for ----------------------------------------------------------------


def checked(
    arrays: list[pa.Array],
    sent: int,
    kept: np.ndarray | None,
    refusals: list[Refusal],
    schema: Schema,
    given: Sequence[Sequence[Any] | pa.Array | None] | None = None,
) -> Converted:
    """Without rows that have NULL in a NOT NULL column or an instant outside the years that can be
    printed.  `given`: the columns as they came, of which messages show a value."""
    bad: np.ndarray | None = None
    came = given or [None] * len(schema)
    for column, array, values in zip(schema, arrays, came, strict=True):
        for reason, mask in _bad_rows(array, column):
            wrong = mask if bad is None else mask & ~bad
            at = np.flatnonzero(wrong)
            if len(at):
                places = at if kept is None else kept[at]
                first = int(at[0])
                shown_as = array if values is None else values
                detail = f"column {column.name}: {_bad_value(array[first], shown_as[first])}"
                refusals.append(Refusal(reason, len(at), int(places[0]), detail, places))
                bad = wrong if bad is None else bad | wrong
    if bad is None:
        return Converted(tuple(arrays), sent, kept, tuple(refusals))
    good = np.flatnonzero(~bad)
    return Converted(
        tuple(a.take(pa.array(good)) for a in arrays),
        sent,
        good if kept is None else kept[good],
        tuple(refusals),
    )


def _bad_value(value: pa.Scalar, given: Any) -> str:
    """What is wrong about it, as it was given."""
    if not value.is_valid:
        return "NULL"
    try:
        found = as_builtin(given)
    except (ValueError, OverflowError):  # Arrow knows no other form of it
        found = None
    micros = found.us if isinstance(found, Instant) else value.as_py()
    counted = -(2**63) <= micros < 2**63 and MIN_INSTANT <= micros // 1000 <= MAX_INSTANT
    return f"{micros} µs since 1970{' (is it in nanoseconds?)' if counted else ''}"


def _bad_rows(array: pa.Array, field: Field) -> Iterator[tuple[str, np.ndarray]]:
    """Reasons and rows (masks) that the column makes unacceptable."""
    if not field.nullable and array.null_count:
        yield "NULL in a NOT NULL column", array.is_null().to_numpy(zero_copy_only=False)
    if field.type.kind is Kind.TIMESTAMP:
        low, high = pc.min_max(array).values()
        if low.is_valid and (low.as_py() < MIN_INSTANT or high.as_py() > MAX_INSTANT):
            outside = pc.or_(pc.less(array, MIN_INSTANT), pc.greater(array, MAX_INSTANT)).fill_null(
                False
            )
            yield "outside the years 0001-9999", outside.to_numpy(zero_copy_only=False)
