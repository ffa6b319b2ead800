"""One-time queries for which an index finds few rows of one window, done at once.

Such a query is columns of a window over a stream, of rows that meet conditions which can't fail.
What the read transaction of any other would read at its commit is read here, with nothing to wait
for, and goes through the conditions and the columns.  What is the same each time is kept by the
text, the user and what was declared and granted then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Result, Rows, shown_instant
from dsms.commands.planning import is_big
from dsms.commands.select import Selection, is_simple, lent
from dsms.commands.slices import Statement
from dsms.oneshot.cut import cut
from dsms.oneshot.parts import AgedRows, concat, of_batch
from dsms.oneshot.pushdown import used_columns
from dsms.oneshot.reads import Read, reads
from dsms.oneshot.relation import Op, Where
from dsms.oneshot.steps import Map
from dsms.operators.expressions import ErrorCounter, can_fail
from dsms.plan.parts import expressions_of
from dsms.reads.access import since
from dsms.reads.leaves import waiting
from dsms.reads.stream_rows import in_ring, stream_of, subwindows
from dsms.running.indices import Wanted, wanted
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query, check_options
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.expr import conjuncts
from dsms.sql.types import arrow_schema
from dsms.sql.window import Now, Time
from dsms.state.columns import all_taken

MOST = 256  # texts that are known


@dataclass(frozen=True, slots=True)
class Point:
    """A query as it is run.

    stream, rights   what was declared and granted when it was bound
    wanted           what is asked for, by column;  used: columns that are looked at
    ops              conditions and columns;  schema: of the answer
    """

    stream: StreamDef
    rights: object
    plan: lp.Node
    read: Read
    wanted: Wanted
    used: frozenset[int]
    ops: Map
    schema: pa.Schema
    types: tuple[str, ...]

    @classmethod
    def of(cls, runtime: Runtime, bound: lp.Output) -> Point | None:
        """The query, if it is such a one."""
        plan = bound.child
        if not is_simple(plan) or any(map(can_fail, expressions_of(plan))):
            return None
        parts, (read,) = cut(plan), reads(plan).values()
        rest, scan = parts.rest, read.node
        if not (isinstance(rest, lp.Window) and isinstance(rest.spec, Time | Now)):
            return None
        assert isinstance(scan, lp.StreamScan)
        asked = wanted(plan, scan)
        if not isinstance(rest.child, lp.StreamScan) or not asked.columns:
            return None
        used = used_columns(plan)[scan.leaf] | asked.columns
        types = tuple(str(f.type) for f in bound.schema)
        ops, schema = Map(_left(parts.ops[scan.leaf], asked)), arrow_schema(bound.schema)
        return cls(scan.stream, runtime.rights, plan, read, asked, used, ops, schema, types)

    def still(self, runtime: Runtime) -> bool:
        """Whether all is as it was when it was bound."""
        there = runtime.catalog.streams.get(stream_of(self.read.node))  # type: ignore[arg-type]
        return there is self.stream and runtime.rights is self.rights


def _left(ops: Sequence[Op], asked: Wanted) -> Sequence[Op]:
    """What is still to be done to rows that an index has found: where there is one condition, that
    has been met."""
    conditions = [e for op in ops if isinstance(op, Where) for e in conjuncts(op.predicate)]
    met = len(conditions) == len(asked.values) == 1
    return [op for op in ops if not (met and isinstance(op, Where))]


class PointRead:
    """Such a query, done."""

    ready = elsewhere = False
    waits = None
    reads_rows = True

    def __init__(self, result: Result) -> None:
        self.result: Result | None = result

    def step(self) -> bool:
        return True

    def run(self) -> None:
        return

    def close(self) -> None:
        return


def selecting(
    runtime: Runtime,
    statement: ast.SelectStatement,
    sql: str,
    see: Callable[[], Catalog],
    priority: int,
    cancel: Cancel | None,
) -> Statement:
    """A one-time query at work, or done.  Raises as `Selection` does."""
    catalog = see()

    def bind(catalog: Catalog) -> lp.Output:
        return bind_query(statement, catalog, persistent=False)

    def any_other(bind: Callable[[Catalog], lp.Output], big: bool = False) -> Selection:
        return Selection(runtime, bind, see, priority, cancel, big, complete=complete, by=by)

    options = dict(check_options(statement.options, "select"))
    complete, by = options.get("complete") == "required", str(options.get("archive", "auto"))

    key = sql, catalog.user
    point = runtime.indices.known.pop(key, None)
    if not isinstance(point, Point) or not point.still(runtime):
        if is_big(statement, sql) or not runtime.settings.window_index:
            return any_other(bind, is_big(statement, sql))
        first = bind(catalog)
        point = Point.of(runtime, first)
        if point is None:
            once = iter((first,))
            return any_other(lambda c: next(once, None) or bind(c))
    _know(runtime.indices.known, key, point)
    rows = _rows(runtime, point, catalog, complete, cancel)
    return any_other(bind) if rows is None else PointRead(rows)


def _know(
    known: dict[tuple[str, str | None], object], key: tuple[str, str | None], point: Point
) -> None:
    known[key] = point
    if len(known) > MOST:
        del known[next(iter(known))]


def _rows(
    runtime: Runtime, point: Point, catalog: Catalog, complete: bool, cancel: Cancel | None
) -> Rows | None:
    """The answer; None where it is no matter of few rows."""
    if cancel is not None:
        cancel.check()
    read, key = point.read, stream_of(point.read.node)  # type: ignore[arg-type]
    if key not in runtime.rings:
        return None
    pick = runtime.indices.pick(key, runtime.rings, point.wanted, point.used, asked=False)
    if pick is None or not pick.few():
        return None
    pick.reduced = True
    runtime.indices.ask(key, runtime.rings[key], point.wanted)
    at = runtime.clock_of((key,))
    if not in_ring(runtime, read, at):
        return None
    lacking = since(runtime, point.plan, [read], at, complete)
    there = subwindows(runtime, read, at)
    with lent(runtime, cancel) as limit:
        found = pick.together(there, read.since(at), at)
        if not pick.tries:  # given up: rows that do not meet the conditions are among those
            return None
        errors = ErrorCounter.once(limit)
        rows = concat([point.ops(of_batch(b), errors) for b in found]) if found else None
    data = _answer(point, rows)
    runtime.transactions.passed()
    late = catalog.sees_late({key})
    behind = None if late else waiting(runtime, [read], at)
    return Rows(data, point.types, shown_instant(at), behind, lacking)


def _answer(point: Point, rows: AgedRows | None) -> pa.RecordBatch:
    """In the order of arrival."""
    if rows is None:
        return pa.RecordBatch.from_pylist([], schema=point.schema)
    (number,) = rows.ids
    cols = rows.cols
    if not bool((number[1:] > number[:-1]).all()):
        cols = all_taken(cols, np.argsort(number, kind="stable"))
    return pa.RecordBatch.from_arrays(list(cols), schema=point.schema)
