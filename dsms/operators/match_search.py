"""Where attempts of a MATCH look for their next row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsms.operators.match_aggregates import Aggregates
from dsms.operators.match_attempts import NEW, Attempts
from dsms.operators.match_conditions import Condition, Term
from dsms.operators.match_kernels import FRESH, candidates
from dsms.operators.match_rows import Step
from dsms.operators.pieces import Look
from dsms.state.columns import taken

GROWTH = 4  # times as many rows are tried of an attempt, where those before did not do
PAIRS = 1 << 18  # that are tried in one go, about
Compared = tuple[np.ndarray, np.ndarray]  # words of each comparison, and what has no NULL in them


def first_found(
    k: int,
    steps: Sequence[Step],
    condition: Condition,
    attempts: Attempts,
    aggregates: Aggregates,
    tried: np.ndarray,
    look: Look,
) -> np.ndarray:
    """For each attempt the place of the first row of step k that it may take, or -1."""
    step = steps[k]
    ops = np.array([t.op for t in condition.terms], np.int64)
    mine, answers = _own(condition.terms, step)
    theirs, asks = _earlier(condition.terms, steps, attempts, tried)
    code, last, limit = (v.view[tried] for v in (attempts.code, attempts.last, attempts.limit))
    n = len(tried)
    found, place = np.full(n, -1, np.int64), np.full(n, FRESH, np.int64)
    index = (*step.bounds, step.order, step.ts, answers, ops, mine)
    if condition.rest is None:
        pairs = np.empty((2, n), np.int64)
        n = candidates(code, last, limit, asks, place, 1, *index, theirs, pairs[0], pairs[1])
        found[pairs[0, :n]] = pairs[1, :n]
        return found
    trying, most = np.arange(n), 1
    while len(trying):
        look()
        pairs = np.empty((2, len(trying) * most), np.int64)
        going, looked = place[trying], np.ascontiguousarray(theirs[:, trying])
        who = (code[trying], last[trying], limit[trying], asks[trying], going, most)
        n = candidates(*who, *index, looked, pairs[0], pairs[1])
        place[trying] = going
        at, row = trying[pairs[0, :n]], pairs[1, :n]
        earlier = aggregates.earlier(steps, attempts, tried[at], k, step.rows.ts[row], look)
        cols = {c: taken(step.rows.cols[c], row) for s, c in condition.rest.reads if s == k}
        good = np.flatnonzero(condition.rest.met(k, cols, earlier, len(row)))
        found[at[good[::-1]]] = row[good[::-1]]  # of several rows the first
        trying = trying[(found[trying] < 0) & (place[trying] >= 0)]
        most = min(most * GROWTH, max(1, PAIRS // max(1, len(trying))))
    return found


def _own(terms: Sequence[Term], step: Step) -> Compared:
    """Of the rows of the stretch, in the order of their keys."""
    n = len(step.rows)
    words, whole = np.empty((len(terms), n), np.int64), np.ones(n, np.bool_)
    for t, term in enumerate(terms):
        found, valid = term.mine.words([step.rows.cols[c] for c in term.mine.reads], n)
        words[t] = found[step.order]
        if valid is not None:
            whole &= valid[step.order]
    return words, whole


def _earlier(
    terms: Sequence[Term], steps: Sequence[Step], attempts: Attempts, tried: np.ndarray
) -> Compared:
    """Of the attempts."""
    n = len(tried)
    words, whole = np.empty((len(terms), n), np.int64), np.ones(n, np.bool_)
    for t, term in enumerate(terms):
        side, step = term.theirs, steps[term.theirs.step]
        refs = attempts.refs.view[tried, side.step]
        fresh = refs <= NEW
        young = slice(None) if fresh.all() else np.flatnonzero(fresh)
        if fresh.any():
            at = NEW - refs[young]
            found, valid = side.words([step.rows.cols[c] for c in side.reads], len(step.rows))
            words[t, young] = found[at]
            whole[young] &= True if valid is None else valid[at]
        if not fresh.all():
            old = np.flatnonzero(~fresh)
            kept = [step.store.cols[c].gather(refs[old]) for c in side.reads]
            words[t, old], valid = side.words(kept, len(old))
            whole[old] &= True if valid is None else valid
    return words, whole
