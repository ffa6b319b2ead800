"""Steps of a rendered plan: each takes relations by name and leaves one.  Rows stay columnar all
the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.oneshot import windows
from dsms.oneshot.limits import Room
from dsms.oneshot.parts import (
    AgedRows,
    concat,
    from_batch,
    gathered,
    ints,
    nothing,
    of_batch,
    to_table,
)
from dsms.oneshot.relation import Bound, Op, Where
from dsms.operators.basic import sorted_by
from dsms.operators.expressions import ErrorCounter, compile_many, compile_predicate
from dsms.operators.pieces import Look
from dsms.plan.windows import alone
from dsms.sql.expr import Expr
from dsms.sql.types import ALWAYS, Schema
from dsms.sql.window import WindowSpec
from dsms.state.batch import Batch
from dsms.state.columns import numpy_true

STRETCH = 1 << 16  # rows between two looks whether to go on
Take = Callable[[pa.RecordBatch], None]
Sql = Callable[[str, Mapping[str, pa.Table], Take], None]


@dataclass(slots=True)
class Env:
    """One run.  `sql` hands over the rows of a text over tables by name; `look` may end the run."""

    at: int
    leaves: Mapping[int, Sequence[Batch]]
    errors: ErrorCounter
    sql: Sql
    look: Look
    room: Room
    rels: dict[str, list[AgedRows]] = field(default_factory=dict)

    def in_one_part(self, name: str, schema: Schema, width: int) -> AgedRows:
        """A relation as one part."""
        parts = self.rels[name]
        return concat(parts) if parts else nothing(schema, width)


class Step(Protocol):
    """`target` is the name of what it leaves, `takes` are those of what it works on."""

    target: str

    @property
    def takes(self) -> tuple[str, ...]: ...

    def run(self, env: Env) -> list[AgedRows]: ...


@dataclass(slots=True)
class LeafStep:
    """The rows that the caller gives for a leaf."""

    target: str
    leaf: int

    @property
    def takes(self) -> tuple[str, ...]:
        return ()

    def run(self, env: Env) -> list[AgedRows]:
        return gathered([of_batch(b) for b in env.leaves[self.leaf] if len(b)])


@dataclass(slots=True)
class ValuesStep:
    """Rows written in the query."""

    target: str
    rows: tuple[tuple[Expr, ...], ...]
    schema: Schema

    @property
    def takes(self) -> tuple[str, ...]:
        return ()

    def run(self, env: Env) -> list[AgedRows]:
        n = len(self.rows)
        rows = [compile_many(r)([], 1, env.errors) for r in self.rows]
        always = np.full(n, ALWAYS, np.int64)
        cols = tuple(pa.concat_arrays([r[k] for r in rows]) for k in range(len(self.schema)))
        return [AgedRows(n, cols, always, always, (np.arange(n, dtype=np.int64),))] if n else []


class Map:
    """Filters and projections, one after the other, by compiled expressions."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = tuple(ops)
        self.runs = [_compiled(op) for op in self.ops]

    def __call__(self, part: AgedRows, errors: ErrorCounter) -> AgedRows:
        for run in self.runs:
            part = run(part, errors)
        return part


def _compiled(op: Op) -> Callable[[AgedRows, ErrorCounter], AgedRows]:
    if isinstance(op, Where):
        passes = compile_predicate(op.predicate)

        def keep(part: AgedRows, errors: ErrorCounter) -> AgedRows:
            if not part.n:
                return part
            mask = numpy_true(passes(part.cols, part.n, errors))
            return part if mask.all() else part.take(np.flatnonzero(mask))

        return keep
    values = compile_many(op.exprs)
    return lambda part, errors: part.with_cols(values(part.cols, part.n, errors))


@dataclass(slots=True)
class MapStep:
    """Filters and projections over a stored relation."""

    target: str
    source: str
    ops: Map

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        out = []
        for part in env.rels[self.source]:
            for start in range(0, part.n, STRETCH):
                env.look()
                out.append(self.ops(part.slice(start, min(start + STRETCH, part.n)), env.errors))
        return gathered([p for p in out if p.n])


@dataclass(slots=True)
class OrdinalStep:
    """The relation with one more column: the number of each row."""

    target: str
    source: str

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        out, n = [], 0
        for part in env.rels[self.source]:
            out.append(part.with_cols((*part.cols, ints(np.arange(n, n + part.n, dtype=np.int64)))))
            n += part.n
        return out


@dataclass(slots=True)
class WindowStep:
    """What a window holds now.  `order`: positions of the id columns by which rows of one instant
    are sorted."""

    target: str
    source: str
    spec: WindowSpec
    schema: Schema
    width: int
    order: tuple[int, ...]

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        parts = env.rels[self.source]
        if alone(self.spec) and all(self._sorted(p) for p in parts):
            found = [self._content(p, env) for p in parts]
            return [p for p in found if p.n]
        rows = by_age(env.in_one_part(self.source, self.schema, self.width), self.order)
        return [self._content(rows, env)]

    def _content(self, rows: AgedRows, env: Env) -> AgedRows:
        return windows.content(self.spec, rows, env.at, env.errors)

    def _sorted(self, part: AgedRows) -> bool:
        assert part.birth is not None
        return bool((part.birth[1:] >= part.birth[:-1]).all())


def by_age(part: AgedRows, order: Sequence[int], instant: str = "birth") -> AgedRows:
    """The rows in order of (birth or ts, arrival numbers in FROM order)."""
    first = getattr(part, instant)
    keys = [first, *(part.ids[k] for k in order)]
    return part if part.n < 2 or sorted_by(keys) else part.take(np.lexsort(keys[::-1]))


@dataclass(slots=True)
class SqlStep:
    """A text run over stored relations; its rows pass through `ops` as they come: what those drop
    is never kept."""

    target: str
    text: str
    inputs: tuple[Bound, ...]
    schema: Schema
    width: int
    aged: bool
    ops: Map

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(b.relation for b in self.inputs)

    def run(self, env: Env) -> list[AgedRows]:
        tables = {
            b.table: to_table(env.rels[b.relation], b.schema, b.width, b.aged, b.versions)
            for b in self.inputs
        }
        out: list[AgedRows] = []

        def take(rows: pa.RecordBatch) -> None:
            env.look()
            part = self.ops(from_batch(rows, self.schema, self.width, self.aged), env.errors)
            if part.n:
                env.room.take(part.nbytes)
                out.append(part)

        env.sql(self.text, tables, take)
        return gathered(out)


@dataclass(slots=True)
class UnionStep:
    """Relations one after the other; aged rows get the number of their branch and -1 for parts they
    have not."""

    target: str
    sources: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return self.sources

    def run(self, env: Env) -> list[AgedRows]:
        pairs = [(k, p) for k, name in enumerate(self.sources) for p in env.rels[name]]
        return gathered([self._tagged(k, p) for k, p in pairs])

    def _tagged(self, branch: int, part: AgedRows) -> AgedRows:
        if not self.aged:
            return AgedRows(part.n, part.cols)
        blank = np.full(part.n, -1, np.int64)
        ids = (
            np.full(part.n, branch, np.int64),
            *(blank if at < 0 else part.ids[at] for at in self.places[branch]),
        )
        return AgedRows(part.n, part.cols, part.ts, part.birth, ids)
