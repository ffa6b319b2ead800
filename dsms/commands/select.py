"""One-time SELECT: the plan run once over what is there now, through the same operators as persistent queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.api import Cancel, Rows
from dsms.commands.explain import plan_query
from dsms.commands.watch import watching
from dsms.errors import QueryError, UsageError
from dsms.intake.values import duration_text
from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.pieces import Look, go_on
from dsms.running.world import leaves_of
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query
from dsms.sql.catalog import QueryDef
from dsms.sql.expr import Col
from dsms.sql.types import ALWAYS, arrow_schema
from dsms.state.columns import numpy_values

if TYPE_CHECKING:
    from dsms.engine import Engine


def select(engine: Engine, statement: ast.SelectStatement, cancel: Cancel | None) -> Rows:
    """Answer a SELECT now."""
    bound = bind_query(statement, engine.world.catalog, persistent=False)
    batch, clock = answer_of(engine, bound, cancel)
    return Rows(batch, tuple(str(f.type) for f in bound.schema), None if clock == ALWAYS else clock)


def answer_of(engine: Engine, bound: lp.Output, cancel: Cancel | None) -> tuple[pa.RecordBatch, int]:
    """Rows of a one-time query and the instant they hold at (ALWAYS: no stream is read).

    Streams are read from what RETAIN keeps; a window that reaches back further is an error, never a silent part."""
    world = engine.world
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    core = sort.child if sort is not None else bound.child
    plain = lp.Output(core, "rstream", True, False, None, core.schema)
    running = world.prepare(QueryDef("", ""), plan_query(engine, plain, ()))
    streams = sorted(set(running.streams.values()))
    _check_retained(engine, core)
    clock = world.clock_of(streams) if streams else ALWAYS
    for leaf, since in _reach(core, clock).items():
        ring = world.rings.get(running.streams[leaf])
        for rows in [] if ring is None else ring.rows(since):
            running.pipeline.sources[leaf].push(rows)
    with watching(running, world.settings.statement_bytes, cancel) as look:
        running.start()
        if not streams:
            running.advance(max((world.tables[t].last_change for t in running.tables), default=ALWAYS))
        elif clock != ALWAYS:
            running.advance(clock)
        running.check()
        if running.errors.count:
            code, _, message = (running.errors.first or "").partition(": ")
            raise QueryError(code, message, hint="a one-time query fails where a persistent one gives NULL")
        look()
        answer = running.answer()
        look()
        assert answer is not None
        return (answer if sort is None else sorted_rows(answer, sort, bound, look)), clock


def _check_retained(engine: Engine, node: lp.Node) -> None:
    """Every stream window must lie within what its RETAIN keeps."""
    for n in _windows(node):
        for leaf in leaves_of(n):
            if not isinstance(leaf, lp.StreamScan):
                continue
            needed = n.spec.length if isinstance(n, lp.Window) and n.spec.kind == "time" else None
            needed = 1 if isinstance(n, lp.Window) and n.spec.kind == "now" else needed
            kept = leaf.stream.retain
            if needed is None or kept is None or needed > kept:
                what = "keeps no rows" if kept is None else f"keeps the last {duration_text(kept)} of its rows"
                raise UsageError(
                    "DS407",
                    f"stream {leaf.stream.name} {what}, so this window can't be answered now",
                    hint="declare the stream with RETAIN d and ask for a [RANGE t] within it, "
                    "or register the query: CREATE QUERY q AS ...",
                )


def _reach(node: lp.Node, clock: int) -> dict[int, int]:
    """Per stream leaf the instant after which its window's rows lie at `clock`."""
    if isinstance(node, lp.Window):
        length = 1 if node.spec.kind == "now" else node.spec.length
        return {n.leaf: clock - length for n in leaves_of(node) if isinstance(n, lp.StreamScan)}
    return {leaf: since for child in lp.children(node) for leaf, since in _reach(child, clock).items()}


def _windows(node: lp.Node) -> list[lp.Node]:
    """Windows over streams, and streams without one."""
    if isinstance(node, lp.Window | lp.StreamScan):
        return [node]
    return [w for child in lp.children(node) for w in _windows(child)]


def sorted_rows(rows: pa.RecordBatch, sort: lp.Sort, bound: lp.Output, look: Look = go_on) -> pa.RecordBatch:
    """ORDER BY with ties by the other output columns, then LIMIT / OFFSET, then the output's columns.

    `look` is called between two passes over the rows; it may raise."""
    keys: list[tuple[pa.Array, bool, bool]] = []
    for expr, descending, nulls_first in sort.keys:
        values = compile_expr(expr)(rows.columns, rows.num_rows, ErrorCounter(mode="stop"))
        keys.append((values, descending, nulls_first))
    named = {expr.index for expr, _, _ in sort.keys if isinstance(expr, Col)}
    keys += [(c, False, False) for i, c in enumerate(rows.columns) if i not in named]
    order = np.arange(rows.num_rows, dtype=np.int64)
    for key in reversed(keys):
        for ranks in reversed(_ranks(*key)):
            look()
            order = order[np.argsort(ranks[order], kind="stable")]
    look()
    stop = None if sort.limit is None else sort.offset + sort.limit
    out = rows.take(pa.array(order[sort.offset : stop]))
    width = len(bound.schema)
    return pa.RecordBatch.from_arrays(out.columns[:width], schema=arrow_schema(bound.schema))


def _ranks(values: pa.Array, descending: bool, nulls_first: bool) -> list[np.ndarray]:
    """Sort keys of a column, most significant first: NULL or not, NaN or not, then what orders like the value."""
    keys: list[np.ndarray] = []
    null = np.asarray(values.is_null()) if values.null_count else None
    if null is not None:
        keys.append(~null if nulls_first else null)
    order = _ordering(values)
    if null is not None:
        order[null] = 0
    if order.dtype == np.float64:
        nan = np.isnan(order)
        if nan.any():
            keys.append(~nan if descending else nan)
            order[nan] = 0.0
    elif descending:
        order = ~order
    return [*keys, -order if descending and order.dtype == np.float64 else order]


def _ordering(values: pa.Array) -> np.ndarray:
    """A new array of numbers in the order of the values (any where NULL): themselves, or ranks of different ones."""
    if values.type in (pa.int64(), pa.float64(), pa.bool_()):
        plain = numpy_values(values)
        return plain.astype(np.float64 if plain.dtype == np.float64 else np.int64)
    coded = values.dictionary_encode()
    ranks = np.asarray(pc.rank(coded.dictionary, tiebreaker="dense")).astype(np.int64)
    return np.append(ranks, 0)[np.asarray(coded.indices.fill_null(len(ranks)))]
