"""Tables, frames and dicts of columns -> named columns; lists of rows -> rows of lists or dicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from dsms.errors import UsageError
from dsms.forms.arrays import PROBLEMS, Unreadable, Values
from dsms.forms.columns import array_of, is_from
from dsms.forms.scalars import Instant, Length, Other, a

Named = list[tuple[str, Values]]
_STORED = ("arrow.json", "arrow.uuid")  # extension types whose storage says what they mean
_ORDINARY = frozenset({list, tuple, dict})


def is_rows(data: Any) -> bool:
    """Whether the data is a list of rows (or of what should be rows)."""
    return isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray, memoryview))


def as_row(row: Any) -> Any:
    """A row as a list of values in column order or as a dict; what is no row, as it is."""
    if isinstance(row, Mapping):
        return {str(k): v for k, v in row.items()}
    if isinstance(row, (Instant, Length, Other)):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if is_rows(row) or (is_from(row, "numpy") and getattr(row, "ndim", 0) == 1):
        return list(row)
    return row


def ordinary(rows: Sequence[Any]) -> Sequence[Any]:
    """Rows as lists, tuples and dicts with names; the same object if they are so already."""
    found = set(map(type, rows))
    if found <= _ORDINARY and (dict not in found or _has_names(rows)):
        return rows
    return [row if type(row) in (list, tuple) else as_row(row) for row in rows]


def _has_names(rows: Sequence[Any]) -> bool:
    keys = set().union(*(row for row in rows if type(row) is dict))
    return all(type(key) is str for key in keys)


def named(data: Any, name: str) -> tuple[Named, int]:
    """(name, column) pairs in the order they came, and the number of rows; `name` is of what takes
    them, for messages.

    Raises UsageError DS503 for a column that can't be read, DS504 for columns of different lengths,
    DS505 for what holds no rows."""
    if not isinstance(data, (pa.RecordBatch, pa.Table)):
        pairs = _pairs(data, name)
    elif not any(
        field.metadata or isinstance(field.type, pa.BaseExtensionType) for field in data.schema
    ):
        plain = zip(data.schema.names, data.columns, strict=True)
        return [(key, _column(key, column, name)) for key, column in plain], data.num_rows
    else:
        pairs = _from_table(data)
    columns = [(key, _column(key, column, name)) for key, column in pairs]
    lengths = {key: len(column) for key, column in columns}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{k} {n}" for k, n in lengths.items())
        raise UsageError("DS504", f"columns for {name} have different lengths: {listed}")
    return columns, len(columns[0][1]) if columns else 0


def _pairs(data: Any, name: str) -> list[tuple[str, Any]]:
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if is_from(data, "pandas") and hasattr(data, "iloc") and hasattr(data, "columns"):
        return [(str(key), data.iloc[:, place]) for place, key in enumerate(data.columns)]
    if is_from(data, "polars") and hasattr(data, "get_columns"):
        return [(series.name, series) for series in data.get_columns()]
    return _from_table(_table(data, name))


def _from_mapping(data: Mapping) -> list[tuple[str, Any]]:
    for key, column in data.items():
        loose = isinstance(column, (str, bytes, bytearray, Mapping, set, frozenset))
        if loose or not hasattr(column, "__len__") or getattr(column, "shape", None) == ():
            hint = (
                "a dict maps names to columns; one row is written [[1, 2, 3]] or [{'a': 1, 'b': 2}]"
            )
            raise UsageError(
                "DS505",
                f"column {key!r} is {a(type(column).__name__)}, not a list or an array",
                hint=hint,
            )
    return [(str(key), column) for key, column in data.items()]


def _table(data: Any, name: str) -> pa.RecordBatch | pa.Table:
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.record_batch(data)
    except PROBLEMS as problem:
        raise _no_rows(data, name, f": {str(problem).splitlines()[0]}") from None
    raise _no_rows(data, name)


def _no_rows(data: Any, name: str, why: str = "") -> UsageError:
    return UsageError(
        "DS505",
        f"rows for {name} can't be read from {a(type(data).__name__)}{why}",
        hint="send an Arrow batch or table, a pandas or polars DataFrame, a dict of columns, or a "
        "list of rows",
    )


def _from_table(table: pa.RecordBatch | pa.Table) -> list[tuple[str, Any]]:
    marks = [field.metadata for field in table.schema]
    columns = table.columns
    return [
        (key, column if not mark else _marked(column, mark))
        for key, column, mark in zip(table.schema.names, columns, marks, strict=True)
    ]


def _marked(column: Any, mark: Mapping[bytes, bytes]) -> Any:
    """A column whose extension type is named in its metadata only, as where it is not
    registered."""
    extension = mark.get(b"ARROW:extension:name")
    return column if extension is None else _Extended(extension.decode(errors="replace"), column)


class _Extended:
    """A column by the name of its extension type and its storage."""

    def __init__(self, extension: str, storage: Any) -> None:
        self.extension, self.storage = extension, storage

    def __len__(self) -> int:
        return len(self.storage)


def _column(key: str, column: Any, name: str) -> Values:
    try:
        if isinstance(column, _Extended):
            return _stored(column.storage, column.extension)
        values = array_of(column)
        return values if isinstance(values, list) else without_extension(values)
    except Unreadable as problem:
        message = f"column {key!r} of {name}: got {problem.got}"
        raise UsageError("DS503", message, hint=problem.hint) from None


def without_extension(array: Any) -> Any:
    """The same values without an extension type.  Raises Unreadable for one whose storage means
    something else."""
    if not isinstance(array.type, pa.BaseExtensionType):
        return array
    return _stored(array, array.type.extension_name)


def _stored(array: Any, extension: str) -> Any:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    if extension == "arrow.bool8" and kinds.is_int8(array.type):
        return array.cast(pa.bool_())
    if extension in _STORED:
        return array
    hint = (
        "send a column of plain instants: in pandas, .dt.to_timestamp()"
        if "period" in extension
        else None
    )
    raise Unreadable(f"the extension type {extension}", hint)
