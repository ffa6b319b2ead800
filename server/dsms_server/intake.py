"""Frames of rows, heartbeats and ends on their way into the engine, a slice at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from dsms.api import Cancel, IngestReport
from dsms.intake.convert import Converted
from dsms.intake.shedding import Waited
from dsms_server import clock
from dsms_server.commit import Committer
from dsms_server.decode import Payload, StreamShape
from dsms_server.face import EngineFace
from dsms_server.names import Names
from dsms_server.pieces import part
from dsms_server.slices import Pace, caught_up, whole
from dsms_server.ticking import Ticking
from dsms_server.worker import Steps, Worker

QUIET = 10.0  # seconds without a row shed, after which a stream is said to keep all
LEAST_OF_TABLE = 1 << 14  # rows of a slice of a frame for a table
Positions = tuple[str | None, str | None]
log = logging.getLogger("dsms.server")


def waited(came: float | None, now: float) -> Waited | None:
    """How long a frame has waited that came at a time of `clock.elapsed`."""
    if came is None:
        return None
    return Waited(max(0, int((now - came) * 1e6)), int(now * 1e6))


class Told:
    """Which streams shed, as the log has it."""

    def __init__(self) -> None:
        self._shed: dict[str, float] = {}  # at which time of `clock.elapsed` a row was shed last

    def shed(self, stream: str, report: IngestReport, now: float) -> None:
        """Log that a stream has begun to shed, or that it has kept all rows for a while.  `now`: a
        time of `clock.elapsed`."""
        if report.shed:
            if stream not in self._shed:
                log.warning("stream %s sheds load: rows come faster than they are taken", stream)
            self._shed[stream] = now
        elif report.accepted and now - self._shed.get(stream, now) >= QUIET:
            del self._shed[stream]
            log.warning("stream %s keeps all rows again", stream)


class Intake:
    """pace        rows of a slice
    check_rows  raises where a quota has no room for rows of a user for a stream"""

    def __init__(
        self,
        engine: EngineFace,
        worker: Worker,
        names: Names,
        ticking: Ticking,
        committer: Committer,
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._names = names
        self._ticking = ticking
        self._committer = committer
        self.pace = Pace()
        self.told = Told()
        self.check_rows: Callable[[str | None, str, int, str], None] = lambda *_: None

    def ingest_steps(
        self,
        stream: str,
        payload: Payload,
        client: str | None,
        seq: int | None,
        cancel: Cancel,
        user: str | None = None,
        upsert: bool = False,
        came: float | None = None,
        positions: Positions = (None, None),
    ) -> Steps:
        """Apply one frame of rows in slices; the result is its IngestReport.

        `came`: at which time of `clock.elapsed` it did; `positions`: kept with its rows, of what
        stands before it, and behind it"""
        cancel.check()
        self._worker.about(f"rows for {stream}")
        self._names.check(user, "ingest", stream)
        shape = self._names.known_shape(stream)
        rows = payload.fitted(shape)
        payload.converted = None
        self.check_rows(user, shape.stream, len(rows), self._engine.key_of(shape.stream))
        reports: list[IngestReport] = []
        first = 0
        while True:
            yield from whole(self._engine, cancel)
            while shape.table and (changing := self._engine.changing(shape.stream)) is not None:
                yield changing
                cancel.check()
                yield from whole(self._engine, cancel)
            piece = part(rows, first, self._size(shape))
            last = first + len(piece) >= len(rows)
            reports.append(
                self._ingest_piece(
                    shape, piece, client, seq, first, last, cancel, upsert, came, positions[last]
                )
            )
            first += len(piece)
            yield from caught_up(self._engine, cancel)
            if last:
                yield from self.kept(shape.stream)
                return _sum(reports)
            yield None
            cancel.check()

    def _size(self, shape: StreamShape) -> int:
        """Rows of the next slice.  One of a table goes to the disk by itself."""
        size = self.pace.of(shape.stream)
        return max(size, LEAST_OF_TABLE) if shape.table else size

    def _ingest_piece(
        self,
        shape: StreamShape,
        piece: Converted,
        client: str | None,
        seq: int | None,
        first: int,
        last: bool,
        cancel: Cancel,
        upsert: bool,
        came: float | None,
        position: str | None,
    ) -> IngestReport:
        if shape.stamped:
            self._ticking.tick(cancel)  # the rows bear the time of their arrival
        began = clock.elapsed()
        report = self._engine.ingest(
            shape.stream,
            piece,
            client=client,
            seq=seq,
            first=first,
            last=last,
            cancel=cancel,
            upsert=upsert,
            waited=waited(came, began),
            **({} if position is None else {"position": position}),
        )
        self.told.shed(shape.stream, report, began)
        self.pace.took(shape.stream, len(piece), clock.elapsed() - began)
        return report

    def heartbeat_steps(
        self,
        stream: str,
        ts: int | None,
        cancel: Cancel,
        user: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Steps:
        """MAX FUTURE holds for all but those who have ADMIN on the stream."""
        self._worker.about(f"a heartbeat of {stream}")
        yield from whole(self._engine, cancel)
        self._names.check(user, "heartbeat", stream)
        name = self._names.known_shape(stream).stream
        owns = user is not None and self._engine.rights.owns(user, self._engine.key_of(name))
        if where is None and ts is not None and not owns:
            self._engine.check_heartbeat(name, ts)
        self._engine.heartbeat(name, ts, cancel, where)
        yield from caught_up(self._engine, cancel)
        yield from self.kept(name)

    def end_steps(self, stream: str, cancel: Cancel, user: str | None = None) -> Steps:
        yield from whole(self._engine, cancel)
        self._names.check(user, "end", stream)
        name = self._names.known_shape(stream).stream
        self._engine.end(name, cancel)
        yield from caught_up(self._engine, cancel)
        yield from self.kept(name)

    def kept(self, stream: str) -> Steps:
        """Wait until what the stream was given is as safe as its durability says."""
        if self._engine.durability(stream) == "sync":
            yield self._committer.wait()
            self._engine.check_written(stream)


def _sum(reports: list[IngestReport]) -> IngestReport:
    if len(reports) == 1:
        return reports[0]
    return IngestReport(
        sum(r.accepted for r in reports),
        sum(r.late for r in reports),
        sum(r.refused for r in reports),
        int(all(r.repeated for r in reports)),
        reasons=tuple(dict.fromkeys(reason for r in reports for reason in r.reasons)),
        positions=tuple(found for r in reports for found in r.positions),
        shed=sum(r.shed for r in reports),
    )
