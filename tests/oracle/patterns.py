"""MATCH, read as a function of what its windows hold at one instant.

Each row of the first step begins an attempt.  What it comes to is settled by the rows that follow
it, so it is the same at each later instant at which the row is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import logical as lp
from dsms.sql.expr import columns
from dsms.sql.types import ALWAYS
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


def unskipped(
    node: lp.Match, ever: Sequence[Sequence[Fact]], there: Sequence[Fact], now: int
) -> list[Fact]:
    """With SKIP PAST LAST the matches whose first rows are `there`, in the window; `ever`: all rows
    that each window has held.  A match counts if its first row is later than the last row of the
    one of its key that counted before: that was complete earlier, or at the same instant and began
    with an older row."""
    silent, found = node.kinds[-1] == "none", list[tuple[int, Fact, list[Fact | None]]]()
    for first in ever[0]:
        rows = _attempt(node, ever, first)
        if rows is None or (silent and first.ts + node.span > now):
            continue
        found.append((first.ts + node.span if silent else _last(rows).ts, first, rows))
    kept, until = list[Fact](), dict[tuple, int]()
    for end, first, rows in sorted(found, key=lambda m: (m[0], m[1].age())):
        key = canons(tuple(evaluate(same[0], first.values) for same in node.keys))
        if first.ts <= until.get(key, ALWAYS):
            continue
        until[key] = _last(rows).ts
        if silent or first.ident in {f.ident for f in there}:
            made = _made(node, ever, rows)
            kept.append(replace(made, ts=end) if silent else made)
    return kept


def _last(rows: Sequence[Fact | None]) -> Fact:
    return next(row for row in reversed(rows) if row is not None)


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
    good = (r for r in between if _fits(node, inputs, rows[:k], k, r, first))
    return sorted(good, key=Fact.age)


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
    ends: Fact | None = None,
) -> bool:
    """Does the row do for step k?  Aggregates of a condition go over rows up to `ends`, the row
    itself where that is not said."""
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
    if node.aggs and max(columns(condition)) >= sum(widths):
        values += [None] * (sum(widths) - len(values))
        values += _aggregated(node, inputs, [*rows, ends or row])
    return evaluate(condition, tuple(values)) is True


def _aggregated(
    node: lp.Match, inputs: Sequence[Sequence[Fact]], rows: Sequence[Fact | None]
) -> list:
    """The aggregates over steps that another row has ended, NULL of the others."""
    return [
        aggregate(call, [r.values for r in _many(node, inputs, rows, k)])
        if k + 1 < len(rows)
        else None
        for k, call in node.aggs
    ]


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
