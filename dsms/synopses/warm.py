"""Call every kernel of this room with the types it will be given, so that no query waits for its
compilation (`dsms.warmup`)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import chained
from dsms.aggregates.registry import algebra
from dsms.aggregates.warm import calls
from dsms.sql.expr import AggCall
from dsms.sql.types import BOOL, FLOAT, INT, INTERVAL, STRING, TIMESTAMP, Type, decimal
from dsms.synopses.basic import Basic
from dsms.synopses.cells import InParts, Synopsis
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.interval import Interval
from dsms.synopses.landmark import Landmark
from dsms.synopses.running import Running

N = 16
NUMBERS = range(N)
WIDE = decimal(38, 2)
COLUMNS: dict[Type, list[object]] = {
    INT: list(NUMBERS),
    FLOAT: [n / 3 for n in NUMBERS],
    BOOL: [n % 2 == 0 for n in NUMBERS],
    STRING: [f"v{n % 5}" for n in NUMBERS],
    WIDE: [Decimal(n) for n in NUMBERS],
    TIMESTAMP: list(NUMBERS),
    INTERVAL: list(NUMBERS),
}


def _arguments(call: AggCall) -> Iterator[tuple[pa.Array, ...]]:
    """Columns without and with NULLs."""
    yield tuple(pa.array(COLUMNS[a.type], a.type.arrow) for a in call.args)
    yield tuple(pa.array([None, *COLUMNS[a.type][1:]], a.type.arrow) for a in call.args)


def ready() -> None:
    """All algebras in all synopses that they may be kept in, and the index over them."""
    CollectiveIndex().update(0, 0, np.arange(N), np.arange(N))
    order = np.arange(N)
    low, high = np.array([0, 3, 5, 1]), np.array([N, N, 7, 14])
    for call in calls():
        how = algebra(call)
        kinds: list[Synopsis] = [Basic(how), Interval(how), Landmark(how, [6, 11])]
        if how.subtractable:
            kinds.append(Running(how))
        for args in _arguments(call):
            state = how.lift(CellRows(order, order, order, args), N)
            for synopsis in kinds:
                synopsis.append(how.combine(state, state), N)
        for synopsis in kinds:
            how.lower(synopsis.probe(low, high))
            how.lower(synopsis.probe_some(low, high, order[:1]))
            if isinstance(synopsis, InParts):
                how.lower(synopsis.probe_part(low, high, 0, 1))
        if how.subtractable:
            how.lower(how.subtract(state, state))
        if isinstance(how, Additive):
            how.shifted(state, order, how.combine(state, state), -1)
        chained(how, state, order - 1, True)
