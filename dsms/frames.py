"""Frames of one stream that wait together: applied as one step, answered one by one.

Answers can't depend on how rows are cut into frames, so a group is one larger frame: one record of
the journal, one step of the queries.  What is told of each frame is what would be told had it come
alone.  A frame that would lose rows by itself is taken by itself, in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dsms.api import IngestReport
from dsms.errors import DsmsError
from dsms.intake.convert import Converted
from dsms.intake.grouped import Cut, foreseen, joined, reports
from dsms.intake.shedding import Waited
from dsms.running.computing import completed
from dsms.running.runtime import Runtime
from dsms.running.writers import FramePart, Writers

Outcome = IngestReport | DsmsError


@dataclass(frozen=True, slots=True)
class Frame:
    """All rows of a frame, and if it has a number, its writer and that; how long it has waited."""

    rows: Converted | Cut
    client: str | None = None
    seq: int | None = None
    waited: Waited | None = None

    @property
    def part(self) -> FramePart | None:
        """What is noted of it once it is applied; None: it has no number."""
        if self.client is None or self.seq is None:
            return None
        return FramePart(self.client, self.seq, len(self.rows), True)


class Taker(Protocol):
    """The engine (`dsms.engine.Engine`)."""

    runtime: Runtime
    writers: Writers

    def ingest(
        self,
        stream: str,
        data: Any,
        *,
        client: str | None = None,
        seq: int | None = None,
        waited: Waited | None = None,
    ) -> IngestReport: ...

    def take_group(
        self, key: str, rows: Converted, now: int | None = None, parts: Sequence[FramePart] = ()
    ) -> None: ...


def take_frames(engine: Taker, key: str, frames: Sequence[Frame]) -> list[Outcome]:
    """Apply frames of the stream of that key; what became of each."""
    out: list[Outcome] = []
    run: list[Frame] = []
    numbers: dict[str, int] = {}  # the newest of each writer in `run`
    for frame in frames:
        if not _joins(engine, key, frame, numbers):
            out += _together(engine, key, run)
            run, numbers = [], {}
            if not _joins(engine, key, frame, numbers):
                out.append(_alone(engine, key, frame))
                continue
        run.append(frame)
        if frame.client is not None and frame.seq is not None:
            numbers[frame.client] = frame.seq
    return out + _together(engine, key, run)


def _joins(engine: Taker, key: str, frame: Frame, numbers: dict[str, int]) -> bool:
    """Whether the frame may be one of a group: none of it was refused, none applied before."""
    rows = frame.rows
    if engine.runtime.inputs[key].definition.weight is not None:
        return False  # each has waited for a time of its own, and is thinned
    if isinstance(rows, Converted) and (rows.refusals or rows.kept is not None):
        return False
    if frame.client is None or frame.seq is None:
        return True
    if frame.client in numbers:
        return frame.seq > numbers[frame.client]
    return engine.writers.applied(frame.client, key, frame.seq) == 0


def _together(engine: Taker, key: str, run: list[Frame]) -> list[Outcome]:
    """Apply frames as one; where that can't be, the halves of them."""
    runtime = engine.runtime
    if len(run) <= 1 or runtime.archivings:  # each of them may be one too many for an archive
        return [_alone(engine, key, frame) for frame in run]
    entry = runtime.inputs[key]
    rows, sizes = joined([f.rows for f in run]), [len(f.rows) for f in run]
    try:
        whole = completed(rows, entry.definition, runtime.settings.statement_bytes)
        if whole.refusals:
            raise ValueError("some are refused as they are completed")
        late = foreseen(entry, whole.columns, sizes)
    except (ValueError, DsmsError):
        return _halves(engine, key, run)
    parts = [part for f in run if (part := f.part) is not None]
    taken = entry.counts.accepted, entry.counts.late
    try:
        engine.take_group(key, rows, None, parts)
    except DsmsError as problem:
        if (entry.counts.accepted, entry.counts.late) != taken:
            return [problem] * len(run)  # it is done, and something behind it failed
        return _halves(engine, key, run)
    return [*reports(sizes, late)]


def _halves(engine: Taker, key: str, run: list[Frame]) -> list[Outcome]:
    middle = len(run) // 2
    return _together(engine, key, run[:middle]) + _together(engine, key, run[middle:])


def _alone(engine: Taker, key: str, frame: Frame) -> Outcome:
    rows = frame.rows.alone if isinstance(frame.rows, Cut) else frame.rows
    try:
        return engine.ingest(key, rows, client=frame.client, seq=frame.seq, waited=frame.waited)
    except DsmsError as problem:
        return problem
