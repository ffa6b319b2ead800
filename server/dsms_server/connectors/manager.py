"""The sources and sinks of a server: those that are declared run; one that is made, replaced,
paused or dropped begins and ends by itself, whatever its neighbours do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from dsms.errors import DsmsError
from dsms.sessions import ConnectorLine
from dsms.sql.catalog import ConnectorDef
from dsms_server import clock
from dsms_server.connectors.context import Context, checked
from dsms_server.connectors.protocol import Failed
from dsms_server.connectors.sink_life import SinkLife, position_name
from dsms_server.connectors.source_life import SourceLife
from dsms_server.connectors.supervisor import Life, Supervised, Time

CLOCK = Time(clock.now_us, asyncio.sleep, random.random)
FIGURES = ("rows", "rejected", "lag", "restarts")


class Manager:
    """`check`, `changed`, `retry` and `line` are called in the engine's thread
    (`dsms.sessions.Connectors`), the rest in the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, time: Time = CLOCK) -> None:
        self._loop = loop
        self._time = time
        self._at_work: dict[str, Supervised] = {}
        self._context: Context | None = None
        self._stopped = False

    # -- what statements ask -----------------------------------------------------------------------

    def check(
        self, kind: str, connector: str, options: Mapping[str, Any], place: tuple[int, int]
    ) -> None:
        try:
            checked(kind, connector, options)
        except DsmsError as problem:
            problem.line, problem.column = place
            raise

    def changed(self) -> None:
        self._loop.call_soon_threadsafe(self._settle)

    def retry(self, key: str) -> None:
        found = self._at_work.get(key)
        if found is not None:
            self._loop.call_soon_threadsafe(found.retry)

    def line(self, key: str) -> ConnectorLine:
        found = self._at_work.get(key)
        if found is None:
            return ConnectorLine("waiting")
        declared = self._context and self._context.core.engine.connectors().get(key)
        if declared and declared != found.definition:  # it is about to be another one
            return ConnectorLine("paused" if declared.paused else "waiting")
        return found.line()

    # -- their course ------------------------------------------------------------------------------

    def start(self, context: Context) -> None:
        """Begin what is declared."""
        self._context = context
        declared = context.core.engine.connectors().values()
        context.positions.keep({position_name(d) for d in declared if d.kind == "sink"})
        self._settle()

    async def stop(self) -> None:
        """End all; rows that were handed over are applied."""
        self._stopped = True
        await asyncio.gather(*(one.stop() for one in self._at_work.values()))
        if self._context is not None:
            self._context.pool.shutdown(wait=False, cancel_futures=True)

    def _settle(self) -> None:
        """What runs is what is declared."""
        context = self._context
        if context is None or context.safe_mode or self._stopped:
            return
        declared = context.core.engine.connectors()
        for key, found in list(self._at_work.items()):
            if key not in declared:
                del self._at_work[key]
                self._loop.create_task(self._end(found))
        for key, definition in declared.items():
            before = self._at_work.get(key)
            if before is None or before.definition != definition:
                if before is not None and before.definition.number != definition.number:
                    self._forget(before)
                made = Supervised(definition, self._life(context, definition), self._time, before)
                self._at_work[key] = made
                made.start()

    def _life(self, context: Context, definition: ConnectorDef) -> Life:
        async def life(watched: Supervised) -> None:
            try:
                values = checked(definition.kind, definition.connector, dict(definition.options))
            except DsmsError as problem:
                raise Failed(problem.code, problem.message, hint=problem.hint) from None
            kind = SourceLife if definition.kind == "source" else SinkLife
            await kind(context, definition, values)(watched)

        return life

    async def _end(self, found: Supervised) -> None:
        await found.stop()
        self._forget(found)

    def _forget(self, found: Supervised) -> None:
        if found.definition.kind == "sink" and self._context is not None:
            self._context.positions.forget(position_name(found.definition))

    # -- figures -----------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """For Prometheus: of each what SHOW has, and 1 for the state that it is in."""
        for kind in ("source", "sink"):
            lines = {
                one.definition.name: one.line()
                for one in list(self._at_work.values())
                if one.definition.kind == kind
            }
            for figure in FIGURES:
                family = GaugeMetricFamily(
                    f"dsms_{kind}_{figure}", f"{kind}: {figure}", labels=[kind]
                )
                for name, line in lines.items():
                    value = getattr(line, figure)
                    if value is not None:
                        family.add_metric([name], float(value))
                yield family
            family = GaugeMetricFamily(f"dsms_{kind}_up", f"{kind}: 1 while it runs", labels=[kind])
            for name, line in lines.items():
                family.add_metric([name], float(line.state == "running"))
            yield family
