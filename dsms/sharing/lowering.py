"""Answers of one aggregate for all that is asked at a boundary, some of the cells at a time."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import State
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.column import FeedColumn
from dsms.sharing.incremental import Answers
from dsms.sql.expr import AggCall

PIECE = 1 << 14  # cells whose answers are computed in one go

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
    state = yield from _probed(columns, agg, asked, view, kept)
    if cell is None or len(cell) <= PIECE:
        return _lowered(columns, agg, state, view, cell)
    found = []
    for start in range(0, len(cell), PIECE):
        yield
        found.append(_lowered(columns, agg, state, view, cell[start : start + PIECE]))
    return pa.concat_arrays(found)


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
