"""Traffic through `road.cql`, and what was told held against `recompute`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import dsms
from dsms.api import Rows
from examples.linear_road.recompute import Road
from examples.linear_road.traffic import SECOND

SCRIPT = (Path(__file__).parent / "road.cql").read_text()


@dataclass(slots=True)
class Played:
    """(instant, columns ...) of each toll and accident, in the end what each car has paid for how
    many segments, and the CPU time of each second."""

    tolls: list[tuple[Any, ...]] = field(default_factory=list)
    accidents: list[tuple[Any, ...]] = field(default_factory=list)
    balances: list[tuple[int, int, int]] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)


def played(traffic: Iterable[pa.RecordBatch], kept: bool = True) -> Played:
    """The reports of one second after the other; what comes out is read, and `kept` where it is
    to be compared."""
    engine, found = dsms.Engine(), Played()
    engine.execute(SCRIPT)
    engine.execute("CREATE QUERY all_tolls AS SELECT * FROM tolls")
    engine.execute("CREATE QUERY all_accidents AS SELECT * FROM accidents")
    readers = engine.subscribe("all_tolls", 0), engine.subscribe("all_accidents", 0)
    for second, reports in enumerate(traffic):
        began = time.process_time()
        engine.ingest("reports", reports)
        engine.heartbeat("reports", (second + 1) * SECOND - 1)
        changes = [reader.take_changes().rows for reader in readers]
        found.costs.append(time.process_time() - began)
        for into, rows in zip((found.tolls, found.accidents), changes, strict=True):
            if kept and rows is not None:
                columns = [column.to_pylist() for column in rows.data.columns]
                into += zip(rows.at.tolist(), *columns, strict=True)
    (balances,) = engine.execute("LOOKUP balance") if kept else (None,)
    if isinstance(balances, Rows):
        found.balances = [tuple(row.values()) for row in balances.data.to_pylist()]
    return found


def compared(traffic: Sequence[pa.RecordBatch], found: Played) -> str:
    """What is different from what comes out report by report; empty if nothing is."""
    road = Road()
    for second, reports in enumerate(traffic):
        road.instant(second * SECOND, reports)
    for what in ("tolls", "accidents", "balances"):
        told, right = (sorted(map(_rounded, getattr(x, what))) for x in (found, road))
        if told != right:
            first = next((p for p in zip(told, right, strict=False) if p[0] != p[1]), None)
            return f"{len(told)} {what} instead of {len(right)}; the first difference: {first}"
    return ""


def _rounded(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Means of floats depend on the order of sums in their last digits."""
    return tuple(f"{x:.6f}" if isinstance(x, float) else str(x) for x in row)
