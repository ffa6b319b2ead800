"""MATCH: rows that come one after the other, found by an automaton of each key.

Input    Any number of windows in time; deletions are not looked at, since rows live for `span`.
State    Attempts, each with the rows that it has taken; those that wait for one step and have one
         key are a chain.  The rows that they have taken, by step.  What no attempt can use any more
         is swept out when there is as much of it as there is else, and a few times in a span.
Output   WK: born with its last row, it dies when its first row leaves the window.
Cost     O(1) a row and step, and one for each attempt of its key that waits and is compared with.
Skip     Attempts do not know of each other: matches that are complete are gone through in order,
         and the attempts of a key are ended, once it has one.
Source   Selection by skip till next match: Wu, Diao, Rizvi, High-Performance Complex Event
         Processing over Streams, SIGMOD 2006, and Agrawal et al., Efficient Pattern Matching over
         Event Streams, SIGMOD 2008.

Each stretch of rows is gone through step by step, not row by row: all attempts that wait for a step
look for its row among those of the stretch, then those that have found one look for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsms.operators.match_aggregates import Aggregates
from dsms.operators.match_attempts import NEW, Attempts
from dsms.operators.match_conditions import NOTHING, Condition, condition_of, rest_of
from dsms.operators.match_kernels import counting, parted
from dsms.operators.match_many import Evaluates, Many, call_of
from dsms.operators.match_rows import Origin, Step
from dsms.operators.match_search import first_found
from dsms.operators.pieces import InStretches, Look
from dsms.plan.identity import order, width
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr
from dsms.sql.types import ALWAYS, FOREVER, Schema
from dsms.state.batch import Batch, empty_batch
from dsms.state.intern import Intern
from dsms.state.vec import Vec

SLOT_BITS = 36  # of a slot, beside a place in a stretch
LOOKS = 4  # times in a span that state is swept
NONE = np.empty(0, np.int64)


@dataclass(slots=True)
class Automaton:
    """What follows the pattern.

    steps       rows of each step of the stretch, and those that attempts have taken
    conditions  of each step with earlier ones
    taken       numbers of the steps that take rows, in order;  span: µs
    aggregated  the step of each aggregate
    silent      where attempts wait for the end of their windows, -1: a last row completes them
    until       with SKIP PAST LAST by code the instant of the last row of the last match; what it
                is of keys that are forgotten does no harm, since rows that come are later"""

    steps: list[Step]
    conditions: list[Condition]
    taken: tuple[int, ...]
    aggregated: tuple[int, ...]
    span: int
    schema: Schema
    width: int
    intern: Intern | None
    attempts: Attempts
    silent: int
    swept: int = ALWAYS
    until: Vec | None = None

    def step(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        """Matches of all instants up to `upto`, of rows that are later than those before."""
        for k, (step, rows) in enumerate(zip(self.steps, inputs, strict=True)):
            step.come(rows, self.intern, self.steps[:k], look)
        capacity = 1 if self.intern is None else self.intern.capacity
        for step in self.steps:
            step.arrange(capacity)
        self.attempts.widen(capacity)
        moved, waiting = self._begun(), list[np.ndarray]()
        found = NONE
        for before, k in zip(self.taken, self.taken[1:], strict=False):
            moved, found, stay = self._advance(before, k, moved, upto, look)
            waiting.append(stay)
        if self.silent < 0:
            done = _by_last(moved, found)
        else:
            waiting.append(self._silent(moved, look))
            done = self.attempts.ready(self.silent, upto)
        made = done if self.until is None else self._counting(done, self.until, capacity)
        at = None if self.silent < 0 else self.attempts.limit.view[made]
        out = self._matches(made, at, look)
        self.attempts.end(done)
        self._keep(np.concatenate(waiting))
        for step in self.steps:
            step.over()
        self._sweep(upto)
        return out

    def _begun(self) -> np.ndarray:
        """An attempt of each first row."""
        rows = self.steps[0].rows
        limit = rows.ts + self.span
        exp = limit if rows.exp is None else np.minimum(rows.exp, limit)  # all deaths are foretold
        life = exp if rows.life is None else rows.life
        return self.attempts.begin(rows.ts, self.steps[0].code, limit, exp, life)

    def _advance(
        self, before: int, k: int, moved: np.ndarray, upto: int, look: Look
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The attempts that find a row of step k, which stands behind step `before`; the places of
        these rows; the attempts that go on waiting.  `moved`: those that have come so far now."""
        between = range(before + 1, k)
        codes = [self.steps[n].code for n in (k, *between)]
        tried = np.concatenate([self.attempts.waiting(k, codes), moved])
        found, ts, attempts = self._first(k, tried, look), self.steps[k].rows.ts, self.attempts
        if between and len(tried):
            at, some = np.full(len(tried), FOREVER), np.flatnonzero(found >= 0)
            at[some] = ts[found[some]]
            alive = np.ones(len(tried), np.bool_)
            for n in between:
                hit = self._first(n, tried, look)
                some = np.flatnonzero(hit >= 0)
                alive[some] &= self.steps[n].rows.ts[hit[some]] >= at[some]
            attempts.end(tried[~alive])
            tried, found = tried[alive], found[alive]
        going, place, at, staying, over = np.empty((5, len(tried)), np.int64)
        goes, stays, ends = parted(
            tried, found, ts, attempts.limit.view, upto, going, place, at, staying, over
        )
        attempts.end(over[:ends])
        attempts.take(going[:goes], k, place[:goes], at[:goes])
        attempts.wait(k, staying[:stays])
        return going[:goes], place[:goes], staying[:stays]

    def _first(self, k: int, tried: np.ndarray, look: Look) -> np.ndarray:
        """Of step k the place of the first row that each attempt may take, or -1."""
        if not len(tried) or not len(self.steps[k].rows):
            return np.full(len(tried), -1, np.int64)
        who = (self.steps, self.conditions[k], self.attempts, self.aggregates, tried)
        return first_found(k, *who, look)

    def _silent(self, moved: np.ndarray, look: Look) -> np.ndarray:
        """Attempts that wait for the end of their windows, and have not seen what they must not."""
        behind = range(self.taken[-1] + 1, len(self.steps))
        codes = [self.steps[n].code for n in behind]
        tried = np.concatenate([self.attempts.waiting(self.silent, codes), moved])
        alive = np.ones(len(tried), np.bool_)
        for n in behind:
            alive &= self._first(n, tried, look) < 0
        self.attempts.end(tried[~alive])
        self.attempts.wait(self.silent, tried[alive])
        return tried[alive]

    def _matches(self, done: np.ndarray, at: np.ndarray | None, look: Look) -> Batch:
        """Attempts that are complete, in order; `at`: the instants at which that is so, from which
        on they live for ever; None: with their last rows."""
        if not len(done):
            return empty_batch(self.schema, self.width)
        refs = self.attempts.refs.view
        parts = [self.steps[k].part(refs[done, k]) for k in self.taken if not self.steps[k].many]
        attempts = self.attempts
        aggregated = self.aggregates.of_matches(self.steps, attempts, done, look)
        mixed = at is None and self.steps[0].rows.life is not None
        life = attempts.life.view[done] if mixed else None
        return Batch(
            attempts.last.view[done] if at is None else at,
            attempts.exp.view[done] if at is None else None,
            None,
            tuple(i for ids, _ in parts for i in ids),
            (*(c for _, cols in parts for c in cols), *aggregated),
            life,
        )

    def _counting(self, done: np.ndarray, until: Vec, capacity: int) -> np.ndarray:
        """Those of these attempts, which are complete, that no earlier match skips; the others of
        their keys that have begun by then come to nothing."""
        until.extend_fill(max(0, capacity - until.n), ALWAYS)
        attempts, good = self.attempts, np.empty(len(done), np.bool_)
        last = attempts.last.view[done]
        at = np.lexsort((done, last)) if self.silent < 0 else np.arange(len(done))
        code, first = attempts.code.view[done], attempts.limit.view[done] - self.span
        counted = np.empty(len(done), np.bool_)
        counting(code[at], first[at], last[at], until.view, counted)
        good[at] = counted
        if self.silent < 0:  # else they end in the order in which they began
            for k in self.taken[1:]:
                attempts.over_by(until.view, self.span, k, code[good])
        return done[good]

    def _keep(self, waiting: np.ndarray) -> None:
        """Rows of the stretch that attempts have taken which wait."""
        waiting = waiting[self.attempts.waits.view[waiting] >= 0]
        if not len(waiting):
            return
        for k in self.kept:
            refs = self.attempts.refs.view[waiting, k]
            new = np.flatnonzero(refs <= NEW)
            if len(new):
                self.attempts.refs.view[waiting[new], k] = self.steps[k].keep(NEW - refs[new])

    def _sweep(self, upto: int) -> None:
        """Let go of what is of no use, if it is time."""
        attempts, since = self.attempts, upto - self.swept
        if not attempts.crowded() and since < self.span // LOOKS:
            return
        self.swept = upto
        attempts.sweep(upto, self.silent)
        for k in self.kept:
            where = self.steps[k].sweep(attempts.refs.view[:, k], upto + 1 - self.span)
            if where is not None:
                attempts.moved(k, where)
        if self.intern is not None and self.intern.wants_purge(attempts.n):
            used = np.zeros(self.intern.capacity, np.bool_)
            used[attempts.code.view] = True
            self.intern.purge(used)

    def live(self) -> int:
        """Attempts under way."""
        return self.attempts.live

    def next_due(self) -> int:
        """When an attempt may be complete without another row."""
        return FOREVER if self.silent < 0 else self.attempts.next_end(self.silent)

    @property
    def aggregates(self) -> Aggregates:
        """Those over steps that take many rows."""
        over = self.aggregated
        return Aggregates(tuple((k, over[:n].count(k)) for n, k in enumerate(over)))

    @property
    def kept(self) -> tuple[int, ...]:
        """The steps whose rows attempts have that wait."""
        return self.taken if self.silent >= 0 else self.taken[:-1]

    @property
    def nbytes(self) -> int:
        own = self.attempts.nbytes + sum(step.nbytes for step in self.steps)
        own += 0 if self.until is None else self.until.nbytes
        return own if self.intern is None else own + self.intern.nbytes


def _by_last(done: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Attempts by the places of their last rows, then by first ones."""
    return np.sort((found << SLOT_BITS) | done) & ((1 << SLOT_BITS) - 1)


def automaton(node: lp.Match, make: Evaluates, numbered: bool = False) -> Automaton:
    """What follows the pattern of this node.  `numbered`: its rows come in order, and have one id
    each."""
    firsts = [0]
    for child in node.inputs:
        firsts.append(firsts[-1] + len(child.schema))
    steps = []
    for k, child in enumerate(node.inputs):
        keys = [make.expr(same[k]) for same in node.keys]
        wide = 1 if numbered else width(child)
        many = _many(node, k, wide, firsts, make) if node.kinds[k] == "many" else None
        made = Step(keys, child.schema, wide, order(child) if wide > 1 else (), many)
        made.origin = None if numbered else _origin(child, [same[k] for same in node.keys])
        steps.append(made)
    conditions = [
        NOTHING if c is None else condition_of(c, k, firsts) for k, c in enumerate(node.conditions)
    ]
    taken = tuple(k for k, kind in enumerate(node.kinds) if kind != "none")
    intern = Intern(len(node.keys)) if node.keys else None
    trailing = node.kinds[-1] == "none"
    silent = len(steps) if trailing else -1
    attempts = Attempts(len(steps) + trailing)
    wide = sum(step.width for step, kind in zip(steps, node.kinds, strict=True) if kind == "one")
    over = tuple(k for k, _ in node.aggs)
    how = (steps, conditions, taken, over, node.span, node.schema, wide, intern, attempts, silent)
    return Automaton(*how, until=Vec() if node.skip else None)


def _origin(node: lp.Node, keys: Sequence[Expr]) -> Origin | None:
    """The stream that a step reads, and which of its columns these keys are; None: it may be
    otherwise."""
    columns = [key.index for key in keys if isinstance(key, Col)]
    while len(columns) == len(keys):
        match node:
            case lp.StreamScan():
                return node.stream.home, tuple(columns)
            case lp.Project():
                exprs = [node.exprs[c] for c in columns]
                columns = [expr.index for expr in exprs if isinstance(expr, Col)]
                node = node.child
            case lp.Window() | lp.Select():
                node = node.child
            case _:
                return None
    return None


def _many(node: lp.Match, k: int, wide: int, firsts: Sequence[int], make: Evaluates) -> Many:
    """The rows of a step that takes many."""
    calls = tuple(call_of(call, make) for step, call in node.aggs if step == k)
    condition = node.conditions[k]
    whole = None if condition is None else rest_of(condition, firsts)
    return Many(k, node.inputs[k].schema, wide, calls, whole)


@dataclass(slots=True)
class MatchOp(InStretches):
    """Matches as their last rows come."""

    automaton: Automaton

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        return self.automaton.step(inputs, upto, look)

    def live(self) -> int:
        return self.automaton.live()

    def nbytes(self) -> int:
        return self.automaton.nbytes

    def next_due(self) -> int:
        return self.automaton.next_due()  # attempts that are too old go when rows come
