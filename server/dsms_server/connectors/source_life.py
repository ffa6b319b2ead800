"""A source at work: messages -> rows (in threads of their own) -> frames of its stream, in order.

Delivery.  Each frame is numbered, and with its rows stands where the source is behind them: in one
record of the journal, and in checkpoints.  So after a restart it goes on behind the last row that
is there; of a frame of which a part was applied, that part is left out as it comes again.  That is
exactly once where the other side gives the same messages again from a position, and at least once
where it keeps the position itself (`Messages.position` None), as it is told behind the rows."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsms.api import Cancel, IngestReport
from dsms.intake.convert import to_batch
from dsms.sql.catalog import ConnectorDef
from dsms_server import clock
from dsms_server.connectors.context import Context
from dsms_server.connectors.formats import Decoded, Reading
from dsms_server.connectors.protocol import Failed, Messages, Source
from dsms_server.connectors.supervisor import Supervised
from dsms_server.decode import Payload, StreamShape
from dsms_server.worker import Steps, Urgency

AHEAD = 2  # batches that are read and decoded while the one before goes into the stream


@dataclass(slots=True)
class Standing:
    """Where it stands: `seq` of the last frame, a `position` of the other side, and how many of the
    rows behind that are in the stream already."""

    seq: int = 0
    position: Any = None
    skip: int = 0

    @property
    def text(self) -> str:
        """As it is kept."""
        return json.dumps([self.position, self.skip], separators=(",", ":"))

    @property
    def shown(self) -> str | None:
        """As users see it."""
        found = self.position
        if found is None:
            return None
        return str(found) if isinstance(found, str | int) else json.dumps(found)


class SourceLife:
    """`values`: what WITH says."""

    def __init__(
        self, context: Context, definition: ConnectorDef, values: Mapping[str, Any]
    ) -> None:
        self._context = context
        self._definition = definition
        self._values = values

    async def __call__(self, watched: Supervised) -> None:
        context, core = self._context, self._context.core
        source, reading = context.source(self._definition, self._values, watched)
        standing: Standing = await core.worker.call(self._standing)
        watched.stands(standing.shown)
        queue: asyncio.Queue[tuple[Messages, Decoded] | BaseException] = asyncio.Queue(AHEAD)
        reader: asyncio.Task[None] | None = None
        try:
            new = standing.position is None
            standing.position = await source.open(standing.position)
            if new and standing.position is not None:
                await self._begin(standing)
            watched.works(lambda: source.lag)
            reader = asyncio.create_task(self._read(source, reading, queue))
            await self._feed(source, queue, standing, watched)
        finally:
            if reader is not None:
                reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reader
            await source.close()
            source.end_thread()

    async def _begin(self, standing: Standing) -> None:
        """Where it begins is kept before anything comes, in a frame without rows: what follows is
        not missed by one that is begun anew before its first row is there."""
        shape = self._shape()
        none = to_batch([], shape.schema, shape.what, shape.computed)
        standing.seq += 1
        await self._ingest(Payload("arrow", None, none, shape), standing, standing.text)

    async def _read(self, source: Source, reading: Reading, queue: asyncio.Queue[Any]) -> None:
        loop, context = asyncio.get_running_loop(), self._context
        try:
            async for messages in source.read():
                shape = self._shape()
                made = await loop.run_in_executor(context.pool, reading.decode, messages, shape)
                await queue.put((messages, made))
            raise Failed("DS669", "the source has ended")
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            await queue.put(problem)

    def _shape(self) -> StreamShape:
        """Of its stream, as it is now."""
        name = self._context.core.engine.called(self._definition.object)
        return self._context.core.names.known_shape(name)

    async def _feed(
        self,
        source: Source,
        queue: asyncio.Queue[Any],
        standing: Standing,
        watched: Supervised,
    ) -> None:
        while True:
            got = await queue.get()
            if isinstance(got, BaseException):
                raise got
            messages, made = got
            if made.why is not None and self._values["on_error"] == "stop":
                raise Failed("DS668", made.why, hint="mend it, or say on_error = skip; then RESUME")
            there = min(standing.skip, len(made.rows))
            rows = made.rows.after(there) if there else made.rows
            before = standing.text
            standing.position, standing.skip = messages.position, standing.skip - there
            taken = 0
            if len(rows) or rows.refusals:
                standing.seq += 1
                payload = Payload("arrow", None, rows, made.shape)
                report = await self._ingest(payload, standing, before)
                taken = report.accepted + report.late + report.shed
                made.refused(report)
            await source.commit(messages)
            watched.took(taken, made.rejected, made.why)
            watched.stands(standing.shown)

    async def _ingest(self, payload: Payload, standing: Standing, before: str) -> IngestReport:
        context, cancel, came = self._context, Cancel(), clock.elapsed()
        core, definition = context.core, self._definition
        # rows of an other side that keeps the position have no numbers: they may come again anyhow
        numbered = standing.position is not None
        client, seq = (definition.writer, standing.seq) if numbered else (None, None)
        positions = (before, standing.text) if numbered else (None, None)
        context.take_rows(payload)

        def steps() -> Steps:
            if core.engine.connectors().get(definition.home) != definition:
                raise Failed("DS669", "it was dropped, paused or replaced")
            return (
                yield from core.intake.ingest_steps(
                    core.engine.called(definition.object),
                    payload,
                    client,
                    seq,
                    cancel,
                    came=came,
                    positions=positions,
                )
            )

        try:
            report: IngestReport = await core.worker.work(steps, Urgency.BULK)
        except asyncio.CancelledError:
            cancel.set()
            raise
        core.ticking.heat()
        context.count_rows(report)
        return report

    def _standing(self) -> Standing:
        """In the engine's thread."""
        engine, definition = self._context.core.engine, self._definition
        part = engine.writer(definition.writer, engine.called(definition.object))
        if part is None or part.position is None:
            return Standing()
        position, skip = json.loads(part.position)
        return Standing(part.seq, position, skip + (0 if part.last else part.done))
