"""What a query that reads all of a stream with KEY begins with: what the stream's own query keeps.

That is there for good, whatever has left the stream; so such a query misses nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dsms.operators.window_latest import LatestWindowOp
from dsms.running.answers import answer_rows
from dsms.running.part import all_stages
from dsms.running.past import Past, rows_of
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.sql.catalog import Catalog
from dsms.sql.keyed import UPSERT
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.ring import between


def past_rows(runtime: Runtime, past: Past, clock: int) -> list[Batch]:
    """The rows with which a query begins at the clock, and later ones that are there already."""
    ring, own = runtime.rings.get(past.stream), keeper(runtime, past)
    if own is None:
        return rows_of(past, ring, clock)
    runtime.run_unit(own, None)
    rows = _rows(own)
    if ring is None or ring.reach > clock:
        return [rows] if len(rows) else []
    parts = [between(rows, ALWAYS, clock), *ring.rows(max(clock, ring.reach))]
    return [b for b in parts if len(b)]


def keeper(runtime: Runtime, past: Past) -> RunningQuery | None:
    """The query that keeps these rows, if one does."""
    return _own(runtime, past.stream) if past.current else None


def unmatched(runtime: Runtime, stream: str) -> int | None:
    """How many deletions have met no row; None: the stream has no KEY."""
    own = _own(runtime, stream)
    if own is None:
        return None
    found = (stage.operator for stage in all_stages(own.pipeline))
    return sum(o.unmatched for o in found if isinstance(o, LatestWindowOp))


def _own(runtime: Runtime, stream: str) -> RunningQuery | None:
    definition = runtime.catalog.streams[stream]
    found = runtime.queries.get(Catalog.key(definition.own or "")) if definition.key else None
    return found if isinstance(found, RunningQuery) else None


def _rows(own: RunningQuery) -> Batch:
    """What it keeps, as rows of the stream that are neither replaced nor deleted."""
    rows = answer_rows(own)
    assert rows is not None
    rows = rows.take(np.lexsort((rows.number, rows.ts)))
    said = pa.repeat(pa.scalar(UPSERT), len(rows))
    return replace(rows, exp=None, cols=(*rows.cols, said))
