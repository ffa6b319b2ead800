"""The column of a stream that says when a row was, and what it says in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient

TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}


async def time_column(client: AsyncClient, stream: str, wanted: str | None) -> tuple[str, str]:
    """The column to pace by, and its unit.  Raises DS533 if there is none."""
    described = await client.query(f'DESCRIBE "{stream}"')
    notes = {row[0]: (row[3] or "").split(", ")[0] for row in described.rows}
    units = {
        name: note.rpartition(" in ")[2]
        for name, note in notes.items()
        if note.startswith("event time in ")
    }
    if wanted is None:
        found = [name for name, note in notes.items() if note.startswith("event time")]
    else:
        found = [name for name in notes if name.casefold() == wanted.casefold()]
    if not found:
        what = (
            f"{stream} has no column {wanted}"
            if wanted
            else f"{stream} is stamped on arrival: it has no event time"
        )
        raise UsageError("DS533", what, hint=f"give one with --time-column: {', '.join(notes)}")
    return found[0], units.get(found[0], "us")


async def own_columns(client: AsyncClient, stream: str) -> tuple[set[str], set[str]]:
    """The columns of a stream that its rows don't give, and those that they may leave out, for
    which there is a default."""
    quoted = stream.replace('"', '""')
    described = await client.query(f'DESCRIBE "{quoted}"')
    notes = {row[0]: (row[3] or "").split(", ") for row in described.rows}
    computed = {name for name, said in notes.items() if "computed" in said}
    return computed, {name for name, said in notes.items() if "has a default" in said}


def instants_of(batch: pa.RecordBatch, column: str, unit: str) -> np.ndarray:
    """Microseconds since the epoch of each row; NULLs count as the row before."""
    if column not in batch.schema.names:
        raise UsageError("DS533", f"the file has no column for {column}")
    array = batch.column(column)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    if pa.types.is_temporal(array.type):
        array, unit = array.cast(pa.int64()), "us"
    if not pa.types.is_integer(array.type):
        raise UsageError("DS533", f"column {column} has no instants but {array.type}")
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    before = np.maximum.accumulate(np.where(valid, np.arange(len(values)), 0))
    return (values[before] * TICKS[unit]).astype(np.int64)
