"""Answers of one aggregate for all that is asked at a boundary, some of the cells at a time."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TypeGuard

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import folds
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.column import AggregateColumn, FeedColumn
from dsms.sharing.incremental import Answers
from dsms.sql.expr import AggCall

PIECE = 1 << 14  # cells (or numbers in them) whose answers are computed in one go
SPANS = 4  # that are probed some groups at a time

Columns = Mapping[AggCall, FeedColumn]


def lowering(
    columns: Columns,
    agg: AggCall,
    asked: tuple[np.ndarray, ...],
    view: AnswerSource | None,
    cell: np.ndarray | None,
    kept: Answers | None,
) -> Generator[None, None, pa.Array]:
    """The answers of an aggregate, of all cells or those at `cell`.

    columns  of the feed;  asked  of synopses, as `Group.asks` says it
    view     what is read instead of the feed;  kept  the last answers, where the next ones are
             made of them"""
    column = columns[agg] if view is None else view.column(agg)
    piece = max(1, PIECE // folds(column.algebra).breadth)
    one = kept is None and (view is None or view.single)
    if cell is not None and len(cell) > piece and one and _by_groups(column, asked):
        return (yield from _in_parts(column, agg, asked, cell, piece))
    state = yield from _probed(columns, agg, asked, view, kept)
    if cell is None and piece < PIECE:
        cell = np.arange(column.algebra.size(state))
    if cell is None or len(cell) <= piece:
        return _lowered(columns, agg, state, view, cell)
    found = []
    for start in range(0, len(cell), piece):
        yield
        found.append(_lowered(columns, agg, state, view, cell[start : start + piece]))
    return pa.concat_arrays(found)


def _by_groups(column: FeedColumn, asked: tuple[np.ndarray, ...]) -> TypeGuard[AggregateColumn]:
    """Whether the spans are so few that each is probed for itself, some groups at a time."""
    return isinstance(column, AggregateColumn) and column.in_parts and len(asked[0]) <= SPANS


def _in_parts(
    column: AggregateColumn,
    agg: AggCall,
    asked: tuple[np.ndarray, ...],
    cell: np.ndarray,
    piece: int,
) -> Generator[None, None, pa.Array]:
    """The answers at `cell`, probed and computed for some groups after the others."""
    (low, high), groups = asked, column.synopsis.groups
    span, code = np.divmod(cell, groups)
    width = max(1, piece // 2 // len(low))
    order = np.argsort(code // width, kind="stable")
    edges = np.arange(0, groups + width, width)
    cuts = np.searchsorted((code // width)[order], np.arange(len(edges)))
    found = []
    for k in np.flatnonzero(np.diff(cuts)).tolist():
        yield
        mine, first = order[cuts[k] : cuts[k + 1]], int(edges[k])
        stop = min(first + width, groups)
        state = column.probe_part(low, high, first, stop)
        at = span[mine] * (stop - first) + code[mine] - first
        found.append(column.lower(agg, column.algebra.take(state, at)))
    yield
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(found).take(pa.array(back))


def _probed(
    columns: Columns,
    agg: AggCall,
    asked: tuple[np.ndarray, ...],
    view: AnswerSource | None,
    kept: Answers | None,
) -> Generator[None, None, State]:
    if view is None:
        return columns[agg].probe(*asked)
    if kept is None:
        return view.probe(agg, *asked)
    return (yield from kept.states(agg, view.column(agg), *asked))


def _lowered(
    columns: Columns,
    agg: AggCall,
    state: State,
    view: AnswerSource | None,
    cell: np.ndarray | None,
) -> pa.Array:
    if view is not None:
        return view.lower(agg, state, cell)
    how = columns[agg].algebra
    return how.lower(state if cell is None else how.take(state, cell))
