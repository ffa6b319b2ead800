"""Whatever a user hands in -> physical columns of a schema, and an account of the rows that were refused.

Two ways to fail.  A form that can't be right as a whole (unknown column, wrong type, unequal lengths) is a UsageError
and nothing is taken.  A row that alone is wrong (a wrong value in a list of rows, NULL in a NOT NULL column, an instant
outside the years 0001-9999) is refused and counted, and the others stand.

NaN from pandas means a missing value there and becomes NULL; in Arrow, NumPy, polars and lists NaN is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.intake.columns import Mismatch, from_list, joined, to_physical
from dsms.intake.values import physical, shown
from dsms.sql.suggest import nearest
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Field, Kind, Schema


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows refused for one reason: a stable short `reason`, how many, the position of the first, and what was wrong."""

    reason: str
    count: int
    first: int
    detail: str

    def __str__(self) -> str:
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        return f"{rows} refused ({self.reason}): row {self.first}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Converted:
    """`columns`: physical arrays of equal length in schema order, without the refused rows.  `sent`: rows that came;
    `kept`: their positions (int64) if some were refused, else None."""

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


def to_batch(data: Any, schema: Schema, name: str = "the stream") -> Converted:
    """Rows of `schema` from a RecordBatch, Table, anything with an Arrow C stream (polars, DuckDB), a pandas DataFrame,
    a dict of column -> list, NumPy array, Series or Arrow array, or a list of rows (lists in column order, or dicts).

    Columns with names are matched in any case; a missing column that may be NULL is NULL.  `name` is for messages.
    Raises UsageError DS501-DS506.
    """
    if isinstance(data, (list, tuple)):
        return _from_rows(data, schema, name)
    columns, rows = _named(data, name)
    arrays = _align(columns, rows, schema, name)
    return checked(arrays, rows, None, [], schema)


# -- forms with names ------------------------------------------------------------------------------------------------


def _named(data: Any, name: str) -> tuple[list[tuple[str, Any]], int]:
    """(name, column) pairs in the order they came, and the number of rows."""
    if isinstance(data, Mapping):
        return _from_mapping(data, name)
    if _from_package(data, "pandas") and hasattr(data, "iloc") and hasattr(data, "columns"):
        return [(str(c), data.iloc[:, i]) for i, c in enumerate(data.columns)], len(data)
    if isinstance(data, pa.RecordBatch):
        return list(zip(data.schema.names, data.columns, strict=True)), data.num_rows
    if hasattr(data, "__arrow_c_stream__"):
        table = data if isinstance(data, pa.Table) else pa.table(data)
        return list(zip(table.schema.names, table.columns, strict=True)), table.num_rows
    if hasattr(data, "__arrow_c_array__"):
        return _named(pa.record_batch(data), name)
    raise UsageError(
        "DS505",
        f"rows for {name} can't be read from a {type(data).__name__}",
        hint="send an Arrow batch or table, a pandas or polars DataFrame, a dict of columns, or a list of rows",
    )


def _from_mapping(data: Mapping, name: str) -> tuple[list[tuple[str, Any]], int]:
    columns = [(str(k), v) for k, v in data.items()]
    lengths: dict[str, int] = {}
    for key, column in columns:
        if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__"):
            hint = "a dict maps names to columns; one row is written [[1, 2, 3]] or [{'a': 1, 'b': 2}]"
            raise UsageError("DS505", f"column {key!r} is a {type(column).__name__}, not a list or an array", hint=hint)
        lengths[key] = len(column)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{k} {n}" for k, n in lengths.items())
        raise UsageError("DS504", f"columns for {name} have different lengths: {listed}")
    return columns, next(iter(lengths.values()), 0)


def _align(columns: list[tuple[str, Any]], rows: int, schema: Schema, name: str) -> list[pa.Array]:
    """The columns in schema order with physical types."""
    found: list[Any] = [None] * len(schema)
    for key, column in columns:
        at = _position(key, schema, name)
        if found[at] is not None:
            raise UsageError("DS506", f"column {schema[at].name!r} of {name} is given twice")
        found[at] = column
    missing = [f.name for f, c in zip(schema, found, strict=True) if c is None and not f.nullable]
    if missing:
        given = ", ".join(k for k, _ in columns) or "none"
        listed = ", ".join(missing)
        raise UsageError("DS502", f"{name} needs a value for NOT NULL column {listed}; columns given: {given}")
    return [
        pa.nulls(rows, f.type.arrow) if c is None else _column(c, f, name) for f, c in zip(schema, found, strict=True)
    ]


def _position(key: str, schema: Schema, name: str) -> int:
    names = [f.name for f in schema]
    if key in names:
        return names.index(key)
    same = [i for i, n in enumerate(names) if n.casefold() == key.casefold()]
    if len(same) == 1:
        return same[0]
    if same:
        raise UsageError("DS506", f"column {key!r} could be {' or '.join(names[i] for i in same)}", hint="spell it so")
    close = nearest(key, names)
    raise UsageError(
        "DS501",
        f"{name} has no column {key!r}; it has {', '.join(names)}",
        hint=f"did you mean {close}?" if close else None,
    )


def _column(column: Any, field: Field, name: str) -> pa.Array:
    """One column of whatever form as a physical array."""
    try:
        if isinstance(column, (list, tuple, range)):
            return _from_values(column, field)
        if isinstance(column, np.ndarray) and column.dtype == object:
            return _from_values(column.tolist(), field)
        array = _arrow(column, field)
        return to_physical(array, field.type, whole=_from_package(column, "pandas"))
    except Mismatch as err:
        why = f": {err.why}" if err.why else ""
        message = f"column {field.name!r} of {name}: expected {field.type}, got {err.got}{why}"
        raise UsageError("DS503", message, hint=err.hint) from None


def _arrow(column: Any, field: Field) -> pa.Array:
    try:
        if isinstance(column, np.ndarray):
            array = _from_numpy(column)
        elif _from_package(column, "pandas"):
            array = pa.Array.from_pandas(column)
        elif isinstance(column, (pa.Array, pa.ChunkedArray)):
            array = column
        elif hasattr(column, "__arrow_c_stream__"):
            array = pa.chunked_array(column)
        else:
            array = pa.array(column)
        return joined(array) if isinstance(array, pa.ChunkedArray) else array
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as err:
        lines = str(err).splitlines()
        raise Mismatch(f"a {type(column).__name__}", lines[0] if lines else "") from None


def _from_numpy(column: np.ndarray) -> pa.Array:
    if column.dtype.byteorder in "<>" and not column.dtype.isnative:
        column = column.astype(column.dtype.newbyteorder("="))
    return pa.array(column)


def _from_values(values: Sequence[Any], field: Field) -> pa.Array:
    """A list, as a whole or else value by value; the first value that is wrong is named."""
    try:
        return from_list(values, field.type)
    except Mismatch:
        out = []
        for i, value in enumerate(values):
            try:
                out.append(physical(value, field.type))
            except ValueError as err:
                raise Mismatch(f"{type(value).__name__} {shown(value)} in row {i}", _why(err)) from None
        return pa.array(out, field.type.arrow)


def _why(err: ValueError) -> str:
    _, _, why = str(err).partition(", which ")
    return f"it {why}" if why else ""


def _from_package(thing: Any, package: str) -> bool:
    return type(thing).__module__.partition(".")[0] == package


# -- rows ------------------------------------------------------------------------------------------------------------


def _from_rows(rows: Sequence[Any], schema: Schema, name: str) -> Converted:
    """Lists in column order, or dicts.  Columns that convert as a whole cost no work per value."""
    if rows and all(isinstance(r, Mapping) for r in rows):
        return _from_dicts(rows, schema, name)
    kept: np.ndarray | None = None
    refusals: list[Refusal] = []
    columns = _transposed(rows, len(schema))
    if columns is None:
        bad = {i: _shape(r, schema) for i, r in enumerate(rows) if not _is_row(r, len(schema))}
        refusals = [_refusal("not a row of this stream", bad)]
        kept = np.array([i for i in range(len(rows)) if i not in bad], np.int64)
        columns = _transposed([rows[i] for i in kept], len(schema)) or []
    return _from_columns(columns, len(rows), kept, refusals, schema)


def _from_dicts(rows: Sequence[Mapping], schema: Schema, name: str) -> Converted:
    names = dict.fromkeys(k for r in rows for k in r)
    places: dict[int, str] = {}
    for key in names:
        at = _position(str(key), schema, name)
        if at in places:
            raise UsageError("DS506", f"column {schema[at].name!r} of {name} is given twice")
        places[at] = key
    columns = [[r.get(places[i]) if i in places else None for r in rows] for i in range(len(schema))]
    return _from_columns(columns, len(rows), None, [], schema)


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
    return f"a {type(row).__name__} {shown(row)} is not a list of values in column order"


def _from_columns(
    columns: Sequence[Sequence[Any]], sent: int, kept: np.ndarray | None, refusals: list[Refusal], schema: Schema
) -> Converted:
    """Lists per column: whole columns where that works, else value by value, refusing rows."""
    arrays: list[pa.Array] = []
    bad: dict[int, str] = {}
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(from_list(values, field.type))
        except Mismatch:
            arrays.append(_one_by_one(values, field, bad))
    if bad:
        positions = np.arange(sent, dtype=np.int64) if kept is None else kept
        refusals.append(_refusal("wrong value", {int(positions[i]): why for i, why in bad.items()}))
        good = np.setdiff1d(np.arange(len(positions)), list(bad))
        arrays, kept = [a.take(pa.array(good)) for a in arrays], positions[good]
    return checked(arrays, sent, kept, refusals, schema)


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
    return Refusal(reason, len(bad), first, bad[first])


# -- what every form is checked for -----------------------------------------------------------------------------------


def checked(
    arrays: list[pa.Array], sent: int, kept: np.ndarray | None, refusals: list[Refusal], schema: Schema
) -> Converted:
    """Without rows that have NULL in a NOT NULL column or an instant outside the years that can be printed."""
    bad: np.ndarray | None = None
    for field, array in zip(schema, arrays, strict=True):
        for reason, mask in _bad_rows(array, field):
            wrong = mask if bad is None else mask & ~bad
            at = np.flatnonzero(wrong)
            if len(at):
                first = int(at[0]) if kept is None else int(kept[at[0]])
                detail = f"column {field.name}: {_bad_value(array[int(at[0])])}"
                refusals.append(Refusal(reason, len(at), first, detail))
                bad = wrong if bad is None else bad | wrong
    if bad is None:
        return Converted(tuple(arrays), sent, kept, tuple(refusals))
    good = np.flatnonzero(~bad)
    return Converted(
        tuple(a.take(pa.array(good)) for a in arrays), sent, good if kept is None else kept[good], tuple(refusals)
    )


def _bad_value(value: pa.Scalar) -> str:
    return "NULL" if not value.is_valid else f"{value.as_py()} µs since 1970"


def _bad_rows(array: pa.Array, field: Field) -> Iterator[tuple[str, np.ndarray]]:
    """Reasons and rows (masks) that the column makes unacceptable."""
    if not field.nullable and array.null_count:
        yield "NULL in a NOT NULL column", array.is_null().to_numpy(zero_copy_only=False)
    if field.type.kind is Kind.TIMESTAMP:
        low, high = pc.min_max(array).values()
        if low.is_valid and (low.as_py() < MIN_INSTANT or high.as_py() > MAX_INSTANT):
            outside = pc.or_(pc.less(array, MIN_INSTANT), pc.greater(array, MAX_INSTANT)).fill_null(False)
            yield "outside the years 0001-9999", outside.to_numpy(zero_copy_only=False)
