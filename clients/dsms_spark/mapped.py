"""What runs in Spark's Python workers: our own expressions and groupings over Arrow batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dsms.errors import DsmsError
from dsms.oneshot.limits import Room
from dsms.oneshot.parts import AgedRows, from_batch, to_table
from dsms.oneshot.relation import Op
from dsms.oneshot.steps import Env, Map
from dsms.oneshot.unnest import UnnestStep
from dsms.oneshot.valued import GroupStep
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import go_on
from dsms.python_functions import Functions, host
from dsms_spark.rendering import RelationShape

TOLD = "dsms-error:"  # before the fields of an error, on its way through Spark
OVER = ":dsms-error"
ROWS = 1 << 16  # of a batch that goes back


@contextmanager
def dsms_errors() -> Iterator[None]:
    """An error of ours as one whose text Spark passes on (`dsms_spark.errors` reads it)."""
    try:
        yield
    except DsmsError as problem:
        raise RuntimeError(f"{TOLD}{json.dumps(problem.fields())}{OVER}") from None


@dataclass(frozen=True, slots=True)
class Mapped:
    """Filters and projections, batch by batch: from rows of one shape to rows of another."""

    ops: tuple[Op, ...]
    before: RelationShape
    after: RelationShape
    functions: tuple[Functions, ...] = field(default_factory=host.named)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named_here(self.functions)
        run = Map(self.ops)
        for rows in batches:
            with dsms_errors():
                part = run(part_of(rows, self.before), ErrorCounter("stop"))
            if part.n:
                yield from batches_of([part], self.after)


@dataclass(frozen=True, slots=True)
class Opened:
    """UNNEST, batch by batch: each row once for each item of its list."""

    step: UnnestStep
    before: RelationShape
    after: RelationShape
    functions: tuple[Functions, ...] = field(default_factory=host.named)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named_here(self.functions)
        for rows in batches:
            with dsms_errors():
                part = part_of(rows, self.before)
                made = self.step.run(alone(self.step.source, [part], None))
            if made:
                yield from batches_of(made, self.after)


@dataclass(frozen=True, slots=True)
class Grouped:
    """GROUP BY over all rows of a partition, which holds groups as a whole.  `limit`: bytes that
    these may have."""

    step: GroupStep
    before: RelationShape
    after: RelationShape
    limit: int | None
    functions: tuple[Functions, ...] = field(default_factory=host.named)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named_here(self.functions)
        with dsms_errors():
            room, parts = Room(self.limit), list[AgedRows]()
            for rows in batches:
                part = part_of(rows, self.before)
                room.take(part.nbytes)
                parts.append(part)
            if not sum(p.n for p in parts):
                return
            made = self.step.run(alone(self.step.source, parts, self.limit))
        yield from batches_of(made, self.after)


def alone(source: str, parts: list[AgedRows], limit: int | None) -> Env:
    """What a step has that runs by itself, over these rows."""
    return Env(0, {}, ErrorCounter("stop"), no_sql, go_on, Room(limit), {source: parts})


def named_here(functions: tuple[Functions, ...]) -> None:
    """Folders of functions in Python lie at the same place wherever Spark works."""
    for one in functions:
        host.name(one)


def no_sql(*_: Any) -> None:
    """SQL does not run here."""
    raise AssertionError("SQL is Spark's")


def part_of(rows: pa.RecordBatch, shape: RelationShape) -> AgedRows:
    """Rows as Spark hands them over."""
    part = from_batch(rows, shape.schema, shape.width, shape.aged)
    return part if shape.schema or part.n == rows.num_rows else AgedRows(rows.num_rows, ())


def batches_of(parts: list[AgedRows], shape: RelationShape) -> Iterator[pa.RecordBatch]:
    """Rows as Spark takes them."""
    table = spelled(to_table(parts, shape.schema, shape.width, shape.aged, False))
    yield from table.to_batches(ROWS)


def spelled(table: pa.Table) -> pa.Table:
    """With types that Spark has: a column without values counts as INT."""
    for k, f in enumerate(table.schema):
        if pa.types.is_null(f.type):
            table = table.set_column(k, f.name, pa.nulls(table.num_rows, pa.int32()))
    return table.combine_chunks() if table.num_rows else table
