"""LONGEST_RISE, LONGEST_FALL, and the rows with which these begin and end (Dani and Getta 2005,
§8.2).

kept     rows never leave: one sequence a group (`parts.runs`).   O(1) an event, 72 bytes a group
queue    rows leave in the order they came: the runs of a group in a queue, the first of which grows
         shorter; of those between the first and the last one the candidates, longest first.
         O(1) amortised an event, 48 bytes a slot
tree     rows leave in any order (`parts.ordered`).               O(log n) an event, 96 bytes a slot
As cells: a sequence each, 72 bytes; O(1) to put two of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.base import Aggregate, Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import Words, counting
from dsms.aggregates.parts.fold import Folds
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.aggregates.parts.ordered import run_ordered
from dsms.aggregates.parts.run_queues import run_queue
from dsms.aggregates.parts.runs import (
    BEST,
    BEST_TOLD,
    COUNT,
    FIRST,
    HEAD_TOLD,
    LAST,
    TAIL_TOLD,
    WIDTH,
    appended,
    joined,
    lines,
)
from dsms.aggregates.parts.words import arg_coding
from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.state.columns import arrow_values
from dsms.state.lengthening import grown


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of the runs.  down: they fall;  start: told is how they begin;  told: the value
    of a row, and not the length."""

    down: bool
    start: bool
    told: bool

    @property
    def column(self) -> int:
        """Of the line of a sequence."""
        return BEST_TOLD if self.told else BEST


def _wanted(call: AggCall) -> Wanted:
    return Wanted("fall" in call.fn, call.fn.endswith("start"), len(call.args) == 2)


@njit(cache=True, nogil=True)
def _keep(
    code, slot, emit, words, valid, also, rank, told, down, start, runs, column, out, out_valid
):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            appended(runs, g, words[s], told[s], rank, down, start)
        t = emit[i]
        if t >= 0 and runs[g, COUNT] > 0:
            out[t] = runs[g, column]
            out_valid[t] = True


def _sides(args: tuple[Arg, ...]) -> tuple[Arg, Arg]:
    """(the argument that is told, the one that runs): the same where lengths are wanted."""
    return args[0], args[-1]


@dataclass(slots=True)
class RunsKept(ByGroup):
    """Rows never leave."""

    wanted: Wanted
    runs: np.ndarray = field(default_factory=lambda: lines(0))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        told, of = _sides(args)
        want = self.wanted
        self.runs = grown(self.runs, feed.groups)
        _keep(
            feed.code, feed.slot, feed.emit, of.words, of.valid, told.valid, of.rank, told.words,
            want.down, want.start, self.runs, want.column, out.words, out.valid,
        )  # many arrays  # fmt: skip

    def held(self) -> tuple[np.ndarray, ...]:
        full = self.runs[self.runs[:, COUNT] > 0]
        words = full[:, [FIRST, LAST]].ravel()
        return (full[:, [HEAD_TOLD, TAIL_TOLD, BEST_TOLD]].ravel(), words)[-1 - self.wanted.told :]

    @property
    def nbytes(self) -> int:
        return int(self.runs.nbytes)


@dataclass(slots=True)
class RunsQueue:
    """Rows leave in the order they came.  ends int64[groups, 5], links int64[slots, 5], length
    int64[slots]: of a run, at its first row."""

    wanted: Wanted
    ends: np.ndarray = field(default_factory=lambda: np.empty((0, 5), np.int64))
    links: np.ndarray = field(default_factory=lambda: np.empty((0, 5), np.int64))
    length: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        told, of = _sides(args)
        want = self.wanted
        self.ends = grown(self.ends, feed.groups, NIL)
        self.links = grown(self.links, len(of.words), NIL)
        self.length = grown(self.length, len(of.words), None)
        run_queue(
            *feed.events, of.words, of.valid, told.valid, of.rank, told.words, want.down,
            want.start, want.told, self.ends, self.links, self.length, out.words, out.valid,
        )  # many arrays  # fmt: skip

    def moved(self, where: np.ndarray) -> None:
        kept = np.flatnonzero(where >= 0)
        if len(self.links):
            self.length[: len(kept)] = self.length[kept]
        self.links = moved_links(self.links, where, kept)
        self.ends = renamed(self.ends, where)

    def held(self) -> tuple[np.ndarray, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return int(self.ends.nbytes + self.links.nbytes + self.length.nbytes)


@dataclass(slots=True)
class RunsTree:
    """Rows leave in any order.  root by group;  by slot nodes int64[n, 2], their luck
    int64[n], runs int64[n, 9] of the tree below each."""

    wanted: Wanted
    root: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    nodes: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    luck: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    runs: np.ndarray = field(default_factory=lambda: lines(0))
    seed: np.ndarray = field(default_factory=lambda: np.array([42], np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        told, of = _sides(args)
        want, slots = self.wanted, len(of.words)
        self.root = grown(self.root, feed.groups, NIL)
        self.nodes, self.luck = grown(self.nodes, slots, NIL), grown(self.luck, slots)
        self.runs = grown(self.runs, slots)
        run_ordered(
            *feed.events, of.words, of.valid, told.valid, of.rank, told.words, feed.ages,
            want.down, want.start, self.seed, self.root, self.nodes, self.luck, self.runs,
            want.column, out.words, out.valid,
        )  # many arrays  # fmt: skip

    def moved(self, where: np.ndarray) -> None:
        kept = np.flatnonzero(where >= 0)
        if len(self.nodes):
            self.luck[: len(kept)] = self.luck[kept]
            self.runs[: len(kept)] = self.runs[kept]
        self.nodes = moved_links(self.nodes, where, kept)
        self.root = renamed(self.root, where)

    def held(self) -> tuple[np.ndarray, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return int(self.root.nbytes + self.nodes.nbytes + self.luck.nbytes + self.runs.nbytes)


def follow(call: AggCall, leaving: Leaving) -> Aggregate:
    """The state that follows single rows."""
    kinds = {
        "never": RunsKept,
        "in order": RunsQueue,
        "anyhow": RunsTree,
        "out of age": RunsTree,
    }
    return kinds[leaving](_wanted(call))


# ---------------------------------------------------------------- cells


@dataclass(slots=True, eq=False, weakref_slot=True)
class Sequences:
    """n cells, a line each."""

    lines: np.ndarray

    @property
    def of(self) -> np.ndarray:
        """The words that run."""
        return self.lines[:, [FIRST, LAST]].ravel()

    @property
    def told(self) -> np.ndarray:
        """The words told."""
        return self.lines[:, [HEAD_TOLD, TAIL_TOLD, BEST_TOLD]].ravel()


@njit(cache=True, nogil=True)
def _lift(cell, words, told, valid, also, rank, down, start, out):
    for i in range(len(cell)):
        if (len(valid) == 0 or valid[i]) and (len(also) == 0 or also[i]):
            appended(out, cell[i], words[i], told[i], rank, down, start)


@njit(cache=True, nogil=True)
def _combine(older, newer, rank, down, start, out):
    for k in range(len(out)):
        joined(older, k, newer, k, out, k, rank, down, start)


@njit(cache=True, nogil=True)
def _merge(cells, group, low, high, base, rank, down, start, out):
    for r in range(len(low)):
        for i in range(low[r], high[r]):
            k = base[r] + group[i]
            joined(out, k, cells, i, out, k, rank, down, start)


class RunCells(Folds):
    """The runs of cells; `told` are the words told of them, `of` those that run."""

    constant = True

    def __init__(self, wanted: Wanted, of: Words, told: Words | None) -> None:
        self.wanted, self.of, self.told = wanted, of, told

    def _made(self, rows: np.ndarray) -> Sequences:
        out = Sequences(rows)
        self.of.enter(out, "of")
        if self.told is not None:
            self.told.enter(out, "told")
        return out

    @property
    def _how(self) -> tuple[np.ndarray, bool, bool]:
        return self.of.rank, self.wanted.down, self.wanted.start

    def empty(self, cells: int) -> Sequences:
        return self._made(lines(cells))

    def lift(self, rows: CellRows, cells: int) -> Sequences:
        column = rows.args[-1]
        words = told = self.of.encode(column)
        also = counting(rows.args[0])
        if self.told is not None:
            told = self.told.encode(rows.args[0])
        out = self.empty(cells)
        _lift(rows.cell, words, told, counting(column), also, *self._how, out.lines)
        return out

    def combine(self, older: Sequences, newer: Sequences) -> Sequences:
        out = lines(len(older.lines))
        _combine(older.lines, newer.lines, *self._how, out)
        return self._made(out)

    def subtract(self, whole: Sequences, part: Sequences) -> Sequences:
        raise InternalError("DS905", "the runs of what is left are not known from the whole's")

    def lower(self, state: Sequences) -> pa.Array:
        found, full = state.lines[:, self.wanted.column].copy(), self.present(state)
        return arrow_values(found, full) if self.told is None else self.told.decode(found, full)

    def size(self, state: Sequences) -> int:
        return len(state.lines)

    def take(self, state: Sequences, index: np.ndarray) -> Sequences:
        if not len(state.lines):
            return self.empty(len(index))
        out = state.lines[index]
        out[index < 0] = 0
        return self._made(out)

    def concat(self, states: Sequence[Sequences]) -> Sequences:
        return self._made(np.concatenate([lines(0), *(s.lines for s in states)]))

    def nbytes(self, state: Sequences) -> int:
        return 8 * WIDTH * len(state.lines)

    def present(self, state: Sequences) -> np.ndarray:
        return state.lines[:, COUNT] > 0

    def merge(
        self,
        state: Sequences,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Sequences:
        out = lines(cells)
        _merge(state.lines, group, low, high, base, *self._how, out)
        return self._made(out)

    def write(self, state: Sequences, at: int, more: Sequences) -> Sequences:
        state.lines[at : at + len(more.lines)] = more.lines
        return state


def algebra(call: AggCall) -> RunCells:
    """The algebra of such a call."""
    want = _wanted(call)
    told = Words(arg_coding(call, 0)) if want.told else None
    return RunCells(want, Words(arg_coding(call, len(call.args) - 1)), told)
