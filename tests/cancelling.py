"""A cancel that comes after so many looks, and engines to be cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import Cancel, Rows, Subscription
from dsms.engine import Engine
from dsms.operators import group, join, nrr, pieces, semijoin
from dsms.reads.watch import watching
from dsms.running import pipeline
from dsms.running.prepare import prepare
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query
from dsms.sql.catalog import QueryDef
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS

STREAMS = "".join(
    f"CREATE STREAM {s} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;" for s in "abc"
)


TABLE = "".join(
    f"CREATE TABLE {r} (k INT PRIMARY KEY, w INT) {kind};INSERT INTO {r} VALUES (0, 1), (1, 2), "
    "(2, 3) AT '1970-01-01';"
    for r, kind in (("r", ""), ("n", "NON RETROACTIVE"))
)


WIDE = "[RANGE 1 h]"


CROSS = f"SELECT a.v, b.v, c.v FROM a {WIDE}, b {WIDE}, c {WIDE}"


class Tripped(Cancel):
    """Cancelled from the n-th look on; `seen(look number)` is called at each."""

    def __init__(self, after: int, seen=lambda n: None) -> None:
        super().__init__()
        self.left, self.looks, self.seen = after, 0, seen

    def check(self) -> None:
        self.looks += 1
        self.seen(self.looks)
        if self.looks > self.left:
            self.set()
        super().check()


def rows(n: int, step: int = 10, first: int = 0) -> pa.RecordBatch:
    at = np.arange(first, first + n)
    return pa.record_batch({"k": at % 3, "v": at, "t": at * step})


def filled(n: int, step_rows: int = 1 << 22) -> Engine:
    engine = Engine(settings=Settings(step_rows=step_rows))
    engine.execute(STREAMS)
    for s in "abc":
        engine.ingest(s, rows(n))
        engine.heartbeat(s, 10 * n)
    return engine


def counted(engine: Engine, sql: str) -> list[int]:
    (result,) = engine.execute(sql)
    assert isinstance(result, Rows)
    return result.data.column(0).to_pylist()


def standing(engine: Engine, query: str) -> list[int]:
    answer = engine.runtime.queries[query].answer()
    assert answer is not None
    return answer.column(0).to_pylist()


def through_operators(engine: Engine, sql: str, cancel: Cancel) -> None:
    """A SELECT once through the operators that persistent queries run."""
    statement = parse_one(sql)
    assert isinstance(statement, SelectStatement)
    bound = bind_query(statement, engine.runtime.catalog, persistent=False)
    core = bound.child.child if isinstance(bound.child, lp.Sort) else bound.child
    plan = engine.runtime.plan(lp.Output(core, "rstream", True, False, None, core.schema))
    running = prepare(engine.runtime, QueryDef("", ""), plan)
    for leaf, stream in running.streams.items():
        for batch in engine.runtime.rings[stream].rows(ALWAYS):
            running.pipeline.sources[leaf].push(batch)
    with watching(running, engine.runtime.settings.statement_bytes, cancel) as look:
        running.start()
        running.advance(engine.runtime.clock_of(sorted(set(running.streams.values()))))
        running.check()
        look()


@contextmanager
def sizes(
    slice_: int, part: int, halves: int | None = None, many: int | None = None
) -> Iterator[None]:
    """Steps of so many rows, pieces of so many results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "SLICE", slice_)
        for module in (join, nrr, semijoin):
            patch.setattr(module, "PART", part)
        patch.setattr(pieces, "STRETCH", part)
        patch.setattr(group, "SLICE", part)
        patch.setattr(pipeline, "MANY", many or pipeline.MANY)
        if halves is not None:
            patch.setattr(join, "SPARE_CORE", True)
            patch.setattr(join, "HALVES_FROM", 2)
            patch.setattr(join, "HALVES_UNTIL", halves)
        yield


def told(reader: Subscription) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for push in reader.take():
        at = (
            [push.at] * (push.data.num_rows if push.data else 0)
            if push.ats is None
            else push.ats.to_pylist()
        )
        values = zip(*(c.to_pylist() for c in push.data.columns), strict=True) if push.data else []
        lines = [
            (push.seq + i, push.kind, t, *v)
            for i, (t, v) in enumerate(zip(at, values, strict=False))
        ]
        out += lines or [(push.kind, push.code)]
    return out
