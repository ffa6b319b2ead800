"""Rows of a file sent when their time has come, on a clock that runs `speed` times as fast as
ours."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms_client.files.send import LoadJob, Outcome, Sender, finish, open_file

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter

STEP = 0.02  # seconds of our time whose rows are sent together
TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}


@dataclass(frozen=True, slots=True)
class Pace:
    """`speed` times as fast as it was (infinity: no waiting), by this column (None: the stream's
    event time)."""

    speed: float
    column: str | None = None


async def replay(client: AsyncClient, job: LoadJob, reporter: Reporter, pace: Pace) -> Outcome:
    """Send everything, paced.  Raises DS530, DS532, DS533 and whatever the server says."""
    began = time.perf_counter()
    name, pieces = await open_file(client, job, reporter)
    column, unit = await _time_column(client, name, pace.column)
    wheel, rows = _Wheel(pace.speed), 0
    async with Sender(client, name, reporter) as sender:
        for piece in pieces:
            reporter.piece(piece)
            instants = _instants(piece.batch, column, unit)
            for start, stop in cuts(instants, pace.speed):
                await wheel.wait_for(int(instants[start]))
                await sender.send(piece.batch.slice(start, stop - start), piece.lines[start:])
                rows += stop - start
                reporter.progress(piece.done, rows)
        report = await finish(client, job, name, sender)
    reporter.summary(name, report, rows, time.perf_counter() - began)
    return Outcome(report, reporter.rejected)


def cuts(instants: np.ndarray, speed: float) -> list[tuple[int, int]]:
    """(start, stop) of runs of rows to send together: those of one step of our time, or all if
    there is no waiting."""
    if not len(instants):
        return []
    if math.isinf(speed):
        return [(s, min(s + 50_000, len(instants))) for s in range(0, len(instants), 50_000)]
    highest = np.maximum.accumulate(instants)  # a row that steps back goes with the one before it
    steps = (highest - highest[0]) // max(1, int(STEP * 1e6 * speed))
    at = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(instants)]
    return list(zip(at[:-1], at[1:], strict=True))  # noqa: RUF007


class _Wheel:
    """Waits until an instant of the file has come on the accelerated clock; the first one comes at
    once."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first: int | None = None
        self._began = 0.0

    async def wait_for(self, instant: int) -> None:
        if self._first is None:
            self._first, self._began = instant, time.monotonic()
        due = self._began + (instant - self._first) / 1e6 / self._speed
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _time_column(client: AsyncClient, stream: str, wanted: str | None) -> tuple[str, str]:
    """The column to pace by, and its unit.  Raises DS533 if there is none."""
    described = await client.query(f'DESCRIBE "{stream}"')
    notes = {row[0]: (row[3] or "") for row in described.rows}
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


def _instants(batch: pa.RecordBatch, column: str, unit: str) -> np.ndarray:
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
