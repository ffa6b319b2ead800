"""Rows of a file sent when their time has come, on a clock that runs `speed` times as fast as
ours."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dsms.errors import DsmsError
from dsms_client.files.ahead import Ahead
from dsms_client.files.send import LoadJob, Outcome, Sender, finish, open_files
from dsms_client.files.timecolumn import instants_of, time_column
from dsms_client.results import IngestReport

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter

STEP = 0.02  # seconds of our time whose rows are sent together


@dataclass(frozen=True, slots=True)
class Pace:
    """`speed` times as fast as it was (infinity: no waiting), by this column (None: the stream's
    event time)."""

    speed: float
    column: str | None = None


async def replay(
    client: AsyncClient, jobs: Sequence[LoadJob], reporter: Reporter, pace: Pace
) -> Outcome:
    """Send everything, paced, all jobs on one clock; each is of a stream of its own, whose files
    are merged.  Raises DS530, DS532, DS533 and whatever the server says."""
    wheel = _Wheel(pace.speed, len(jobs))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    _replayed(client, replace(job, merge=True), reporter, pace, wheel)
                )
                for job in jobs
            ]
    except* DsmsError as problems:
        raise problems.exceptions[0] from None
    report = sum((task.result() for task in tasks), IngestReport())
    return Outcome(report, reporter.rejected)


async def _replayed(
    client: AsyncClient, job: LoadJob, reporter: Reporter, pace: Pace, wheel: _Wheel
) -> IngestReport:
    began = time.perf_counter()
    name, pieces, live = await open_files(client, job, reporter)
    column, unit = await time_column(client, name, pace.column)
    rows, enough = 0, False
    wheel_for = wheel.waiter()
    async with Ahead(pieces, live) as ahead, Sender(client, name, reporter, job) as sender:
        async for piece in ahead:
            reporter.piece(piece)
            if piece.batch.num_rows:
                instants = instants_of(piece.batch, column, unit)
                for start, stop in cuts(instants, pace.speed):
                    await wheel_for(int(instants[start]))
                    await sender.send(piece.batch.slice(start, stop - start), piece.lines[start:])
                    rows += stop - start
                    reporter.progress(piece.done, rows)
            if enough := reporter.has_enough(job.max_rejects):
                break
        await wheel_for(None)
        report = await finish(client, job, name, sender, enough)
    reporter.summary(name, report, rows, time.perf_counter() - began)
    return report


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
    """Waits until an instant of the files has come on the accelerated clock; the first one of all
    comes at once."""

    def __init__(self, speed: float, files: int) -> None:
        self._speed = speed
        self._missing = files  # that have not said yet when they begin
        self._all = asyncio.Event()
        self._first: int | None = None
        self._began = 0.0

    def waiter(self) -> Callable[[int | None], Awaitable[None]]:
        """For one file: waits for an instant; None: it has none (more)."""
        begun = False

        async def wait_for(instant: int | None) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._begins(instant)
            if instant is None:
                return
            await self._all.wait()
            assert self._first is not None
            due = self._began + (instant - self._first) / 1e6 / self._speed
            await asyncio.sleep(max(0.0, due - time.monotonic()))

        return wait_for

    def _begins(self, instant: int | None) -> None:
        if instant is not None:
            self._first = instant if self._first is None else min(self._first, instant)
        self._missing -= 1
        if not self._missing:
            self._began = time.monotonic()
            self._all.set()
