"""Whatever a user holds rows in -> the data fields of `ingest` requests, cut to frames of a sensible size."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

ROWS_PER_FRAME = 16384
BYTES_PER_FRAME = 4 << 20
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def frames_of(data: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """(data field, number of rows) for each frame.

    `data`: Arrow table or batch, pandas or polars DataFrame (anything with ``__arrow_c_stream__``), a mapping of
    column name to list or array, or a list of rows.  Raises DS505 for anything else.
    """
    if isinstance(data, Mapping):
        yield from _from_mapping(data)
    elif isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        for first in range(0, len(data), ROWS_PER_FRAME):
            piece = data[first : first + ROWS_PER_FRAME]
            yield {"rows": piece}, len(piece)
    else:
        yield from _from_table(_as_table(data))


def _from_mapping(data: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    if any(hasattr(values, "__array__") for values in data.values()):
        import pyarrow as pa

        yield from _from_table(pa.table({name: pa.array(values) for name, values in data.items()}))
        return
    sizes = {name: len(values) for name, values in data.items()}
    if len(set(sizes.values())) > 1:
        raise UsageError("DS504", f"the columns differ in length: {sizes}")
    for first in range(0, max(sizes.values(), default=0), ROWS_PER_FRAME):
        piece = {name: list(values[first : first + ROWS_PER_FRAME]) for name, values in data.items()}
        yield {"columns": piece}, len(next(iter(piece.values())))


def _as_table(data: Any) -> pyarrow.Table:
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise UsageError(
        "DS505",
        f"cannot send rows from {type(data).__name__}",
        hint="give a DataFrame, an Arrow table, a dict of columns or a list of rows",
    )


def _from_table(table: pyarrow.Table) -> Iterator[tuple[dict[str, Any], int]]:
    from dsms_client.columns import ipc

    if not table.num_rows:
        return
    per_row = max(1, table.nbytes // table.num_rows)
    size = max(1, BYTES_PER_FRAME // per_row)
    for first in range(0, table.num_rows, size):
        piece = table.slice(first, size)
        yield {"arrow": ipc(piece)}, piece.num_rows


def wire_value(value: Any) -> Any:
    """How a Python value that msgpack does not know travels (the packer's `default`)."""
    match value:
        case decimal.Decimal():
            return str(value)
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (aware - EPOCH) // _MICROSECOND
        case dt.timedelta():
            return value // _MICROSECOND
        case dt.date():
            return wire_value(dt.datetime(value.year, value.month, value.day))
    if hasattr(value, "item"):  # a NumPy scalar
        return value.item()
    raise UsageError("DS503", f"a value of type {type(value).__name__} cannot be sent")
