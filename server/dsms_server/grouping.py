"""Small frames of one stream that wait at the same time: one slice, one step of the engine."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

from dsms.api import Cancel, IngestReport
from dsms.errors import DsmsError, UsageError
from dsms.frames import Frame
from dsms_server import clock
from dsms_server.decode import Payload, StreamShape, fitted
from dsms_server.face import EngineFace
from dsms_server.intake import Intake, waited
from dsms_server.names import Names
from dsms_server.slices import MIN_SLICE, caught_up, whole
from dsms_server.worker import Alike, Steps, Worker


@dataclass(slots=True)
class Waiting:
    """A small frame of rows that waits for its turn: `Intake.ingest_steps` has the same."""

    stream: str
    payload: Payload
    client: str | None
    seq: int | None
    user: str | None
    positions: bool = False  # of refused rows are asked for: frames that go together tell none
    upsert: bool = False
    came: float | None = None  # at which time of `clock.elapsed`
    cancel: Cancel = field(init=False)


class Together(Cancel):
    """Set when all of these are: nobody waits for any of them any more."""

    __slots__ = ("_all",)

    def __init__(self, cancels: list[Cancel]) -> None:
        super().__init__()
        self._all = cancels

    @property
    def is_set(self) -> bool:
        """Whether somebody asked, for each of them."""
        return all(cancel.is_set for cancel in self._all)

    def check(self) -> None:
        """As `Cancel.check`."""
        if self.is_set:
            raise UsageError("DS610", "the statement was cancelled")


class Grouping:
    """Which frames go together, and how."""

    def __init__(self, engine: EngineFace, worker: Worker, names: Names, intake: Intake) -> None:
        self._engine = engine
        self._worker = worker
        self._names = names
        self._intake = intake

    def alike(self, frame: Waiting, cancel: Cancel) -> Alike | None:
        """What makes the frame one of a group; None: it goes by itself, as it is large, is for a
        table, or its stream is stamped by the time at which each comes."""
        shape, size = self._names.shape_of(frame.stream), frame.payload.size
        if shape is None or shape.stamped or shape.table or frame.upsert:
            return None
        if size > MIN_SLICE or frame.positions:
            return None
        frame.cancel = cancel
        most = self._intake.pace.of(shape.stream)
        return Alike(shape.stream, size, most, frame, self.together_steps)

    def together_steps(self, frames: list[Waiting]) -> Steps:
        """Apply small frames of one stream in one slice; the result is a list of what became of
        each, IngestReport or DsmsError."""
        stream = frames[0].stream
        together = Together([frame.cancel for frame in frames])
        self._worker.about(f"rows for {stream}")
        yield from whole(self._engine, together)
        shape = self._names.known_shape(stream)
        out = self._converted(frames, shape)
        good = [k for k, found in enumerate(out) if isinstance(found, Frame)]
        began = clock.elapsed()
        done = self._engine.ingest_group(shape.stream, [out[k] for k in good])
        rows = sum(len(out[k].rows) for k in good)
        self._intake.pace.took(shape.stream, rows, clock.elapsed() - began)
        for k, outcome in zip(good, done, strict=True):
            out[k] = outcome
            if isinstance(outcome, IngestReport):
                self._intake.told.shed(shape.stream, outcome, began)
        yield from caught_up(self._engine, together)
        yield from self._intake.kept(shape.stream)
        return out

    def _converted(self, frames: list[Waiting], shape: StreamShape) -> list[Any]:
        """Each frame as it goes to the engine, or why it does not."""
        out: list[Any] = [None] * len(frames)
        may: dict[str | None, DsmsError | None] = {}
        for k, frame in enumerate(frames):
            if frame.user not in may:
                may[frame.user] = self._may_ingest(frame)
            refused = may[frame.user]
            if frame.cancel.is_set:
                out[k] = UsageError("DS610", "the statement was cancelled")
            elif refused is not None:
                out[k] = copy(refused)
        left = [k for k, problem in enumerate(out) if problem is None]
        found = fitted([frames[k].payload for k in left], shape)
        key = self._engine.key_of(shape.stream)
        for k, rows in zip(left, found, strict=True):
            frame = frames[k]
            out[k] = rows if isinstance(rows, DsmsError) else self._frame(frame, shape, rows, key)
        return out

    def _frame(self, frame: Waiting, shape: StreamShape, rows: Any, key: str) -> Frame | DsmsError:
        try:
            self._intake.check_rows(frame.user, shape.stream, len(rows), key)
        except DsmsError as problem:
            return problem
        return Frame(rows, frame.client, frame.seq, waited(frame.came, clock.elapsed()))

    def _may_ingest(self, frame: Waiting) -> DsmsError | None:
        try:
            self._names.check(frame.user, "ingest", frame.stream)
        except DsmsError as problem:
            return problem
        return None
