"""MATCH, read as a function of what its windows hold at one instant.

Each row of the first step begins an attempt.  What it comes to is settled by the rows that follow
it, so it is the same at each later instant at which the row is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import logical as lp
from tests.oracle.aggregates import aggregate
from tests.oracle.facts import Fact
from tests.oracle.keys import matched
from tests.oracle.scalar import evaluate
from tests.oracle.values import canons


def matches(node: lp.Match, inputs: Sequence[Sequence[Fact]]) -> list[Fact]:
    """The matches; `inputs`: the rows that each window holds."""
    return [
        _made(node, inputs, rows)
        for first in inputs[0]
        if (rows := _attempt(node, inputs, first)) is not None
    ]


def silences(node: lp.Match, ever: Sequence[Sequence[Fact]], now: int) -> list[Fact]:
    """Of a pattern that ends with NOT the matches whose first rows have left the window; `ever`:
    all rows that each window has held."""
    found = []
    for first in ever[0]:
        end = first.ts + node.span
        rows = _attempt(node, ever, first) if end <= now else None
        if rows is not None:
            found.append(replace(_made(node, ever, rows), ts=end))
    return found


def _attempt(
    node: lp.Match, inputs: Sequence[Sequence[Fact]], first: Fact
) -> list[Fact | None] | None:
    """The row of each step, of a step of many the first, None for a step of no row; None: the
    attempt comes to nothing."""
    if any(evaluate(same[0], first.values) is None for same in node.keys):
        return None
    rows: list[Fact | None] = [first]
    last, forbidden = first, list[int]()
    for k in range(1, len(inputs)):
        if node.kinds[k] == "none":
            rows.append(None)
            forbidden.append(k)
            continue
        found = _next(node, inputs, rows, k, last)
        if found is None or found.ts - first.ts >= node.span:
            return None
        for n in forbidden:
            between = _next(node, inputs, rows[:n], n, last)
            if between is not None and between.ts < found.ts:
                return None
        rows.append(found)
        last, forbidden = found, []
    for n in forbidden:
        behind = _next(node, inputs, rows[:n], n, last)
        if behind is not None and behind.ts < first.ts + node.span:
            return None
    return rows


def _many(
    node: lp.Match, inputs: Sequence[Sequence[Fact]], rows: Sequence[Fact | None], k: int
) -> list[Fact]:
    """The rows of a step of many, oldest first: from its first one until the next step's row."""
    first = rows[k]
    after = next(r for r in rows[k + 1 :] if r is not None)
    assert first is not None
    between = [r for r in inputs[k] if first.ts <= r.ts < after.ts]
    return sorted((r for r in between if _fits(node, inputs, rows[:k], k, r)), key=Fact.age)


def _next(
    node: lp.Match,
    inputs: Sequence[Sequence[Fact]],
    rows: Sequence[Fact | None],
    k: int,
    last: Fact,
) -> Fact | None:
    """The first row of step k that is later than `last`, has the key of the attempt, and meets its
    condition."""
    good = [r for r in inputs[k] if r.ts > last.ts and _fits(node, inputs, rows, k, r)]
    return min(good, key=Fact.age, default=None)


def _fits(
    node: lp.Match,
    inputs: Sequence[Sequence[Fact]],
    rows: Sequence[Fact | None],
    k: int,
    row: Fact,
) -> bool:
    first = rows[0]
    assert first is not None
    for same in node.keys:
        mine, theirs = evaluate(same[0], first.values), evaluate(same[k], row.values)
        if mine is None or theirs is None or canons((mine,)) != canons((theirs,)):
            return False
    condition = node.conditions[k]
    if condition is None:
        return True
    widths = [len(child.schema) for child in node.inputs]
    known = [*rows, *([None] * (k - len(rows))), row]
    values = [v for r, w in zip(known, widths, strict=False) for v in _values(r, w)]
    return evaluate(condition, tuple(values)) is True


def _values(row: Fact | None, width: int) -> tuple:
    return (None,) * width if row is None else row.values


def _made(node: lp.Match, inputs: Sequence[Sequence[Fact]], taken: Sequence[Fact | None]) -> Fact:
    both = zip(taken, node.kinds, strict=True)
    rows = [row for row, kind in both if row is not None and kind == "one"]
    over = [(_many(node, inputs, taken, k), call) for k, call in node.aggs]
    values = tuple(v for r in rows for v in r.values)
    values += tuple(aggregate(call, [r.values for r in many]) for many, call in over)
    ident = ("match", *(r.ident for r in rows))
    held = frozenset().union(*(r.held for r in rows))
    return Fact(values, ident, matched(r.key for r in rows), rows[-1].ts, held=held)
