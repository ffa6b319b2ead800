"""A shared join: the part of a shared plan upstream of join synopses (Golab 2006, §8.2, Fig 8.2).

It is the join of two windows in our own operators, as any continuous query runs it, and keeps of
each stream only what is asked for, and the rows' timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

import pyarrow as pa

from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import Piece
from dsms.plan.options import PlanOptions
from dsms.plan.planner import plan
from dsms.plan.statistics import Statistics
from dsms.running.assemble import Leaves, assemble, new_builder
from dsms.running.pipeline import Pipeline
from dsms.settings import Settings
from dsms.sharing.join_feed import JoinShape
from dsms.sharing.join_request import JoinKey, JoinRequest, JoinSide
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef
from dsms.sql.expr import Col, Expr, conjunction, rewrite
from dsms.sql.types import ALWAYS, INT, Field
from dsms.sql.window import Time
from dsms.state.batch import Batch

WHEN = Field("", INT)  # the row's timestamp, µs


@dataclass(slots=True)
class SharedJoin:
    """names: stream of each leaf;  used: the columns kept, counted through both streams;  times:
    where the parts' timestamps stand among the results' columns;  flow: what remains of the step
    under way"""

    pipeline: Pipeline
    names: dict[int, str]
    used: frozenset[int]
    times: tuple[int, int]
    mapped: Callable[[Expr], Expr]
    clock: int = ALWAYS
    flow: Iterator[Piece] | None = None

    def push(self, stream: str, rows: Batch) -> None:
        """Rows of a stream.  Columns that it has got since are left out."""
        for leaf, name in self.names.items():
            if name == stream:
                source = self.pipeline.sources[leaf]
                cols = rows.cols[: len(source.schema) - 1]
                source.push(rows.with_cols((*cols, pa.array(rows.ts))))

    def waiting(self) -> Iterator[tuple[str, Batch]]:
        """Rows that no step has taken, of each stream once."""
        for stream, leaf in {name: leaf for leaf, name in self.names.items()}.items():
            for rows in self.pipeline.sources[leaf].queue.batches:
                yield stream, rows

    def pieces(self, upto: int) -> Iterator[Piece]:
        """Results of all instants <= `upto` and not answered before, piece by piece.  It may be
        stopped midway and go on later."""
        while self.flow is not None or upto > self.clock:
            if self.flow is None:
                self.flow = self.pipeline.pieces(self.pipeline.next_cut(upto))
            piece = next(self.flow, None)
            if piece is None:
                self.flow = None
                continue
            self.clock = piece[1]
            yield piece


def shared_join(
    asked: JoinRequest,
    used: frozenset[int],
    shape: JoinShape,
    errors: ErrorCounter,
    settings: Settings,
) -> SharedJoin:
    """The join, over windows of the shape's lengths, with the columns `used`."""
    kept = _kept(asked.streams, used)
    node = _join(asked.join, asked.streams, kept, shape.lengths)
    output = lp.Output(node, "rstream", True, False, None, node.schema)
    phys = plan(output, Statistics(), PlanOptions(optimize=False)).children[0]
    leaves = Leaves(_no_table, {}, {}, [])
    builder = new_builder(leaves, _no_table, errors, settings.eager_instants)
    builder.step_rows = settings.step_rows
    pipeline = assemble(phys, builder, leaves, settings.timer)
    first = len(kept[0])
    return SharedJoin(
        pipeline,
        leaves.names,
        used,
        (first, first + 1 + len(kept[1])),
        _mapping(asked.streams, kept),
    )


def _no_table(node: lp.TableScan) -> NoReturn:
    raise AssertionError("there are no tables below a join of windows")


def _kept(
    streams: tuple[StreamDef, StreamDef], used: frozenset[int]
) -> tuple[list[int], list[int]]:
    left = len(streams[0].schema)
    return sorted(i for i in used if i < left), sorted(i - left for i in used if i >= left)


def _mapping(
    streams: tuple[StreamDef, StreamDef], kept: tuple[list[int], list[int]]
) -> Callable[[Expr], Expr]:
    """An expression over both streams' columns as one over the results'."""
    left, (a, b) = len(streams[0].schema), kept
    return partial(
        _onto,
        place={i: k for k, i in enumerate(a)} | {left + i: len(a) + 1 + k for k, i in enumerate(b)},
    )


def _join(
    key: JoinKey,
    streams: tuple[StreamDef, StreamDef],
    kept: tuple[list[int], list[int]],
    lengths: tuple[int, int],
) -> lp.Join:
    sides = [
        _side(part, stream, columns, length, leaf)
        for leaf, (part, stream, columns, length) in enumerate(
            zip((key.left, key.right), streams, kept, lengths, strict=True)
        )
    ]
    own = [{i: k for k, i in enumerate(columns)} for columns in kept]
    keys = tuple((_onto(a, own[0]), _onto(b, own[1])) for a, b in key.keys)
    mapped = _mapping(streams, kept)
    residual = conjunction([mapped(c) for c in key.conditions])
    return lp.Join(
        sides[0], sides[1], "inner", keys, residual, (*sides[0].schema, *sides[1].schema)
    )


def _onto(expr: Expr, place: dict[int, int]) -> Expr:
    return rewrite(expr, lambda c: Col(place[c.index], c.type, c.name))


def _side(part: JoinSide, stream: StreamDef, kept: list[int], length: int, leaf: int) -> lp.Window:
    """[RANGE length] over the columns kept of the rows that pass, and their timestamps."""
    stamped = (*stream.schema, WHEN)
    node: lp.Node = lp.StreamScan(replace(stream, schema=stamped), stamped, stream.name, leaf)
    predicate = conjunction(list(part.where))
    if predicate is not None:
        node = lp.Select(node, predicate, stamped)
    places = [*kept, len(stream.schema)]
    schema = tuple(stamped[i] for i in places)
    node = lp.Project(node, tuple(Col(i, stamped[i].type) for i in places), schema)
    return lp.Window(node, Time(length), schema)
