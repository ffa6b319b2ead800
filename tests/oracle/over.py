"""OVER from its definition: of each row the rows that were in the window at its own timestamp and
came no later by (timestamp, arrival), of those the ones that are equal in the keys, and of these
the last so many, or so long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsms.sql import logical as lp
from dsms.sql.expr import AggCall
from tests.oracle.aggregates import aggregate
from tests.oracle.facts import Fact
from tests.oracle.scalar import evaluate
from tests.oracle.values import Value, canon, canons, order_key
from tests.oracle.windows import content


def over(node: lp.Over, rows: list[Fact], instant: Callable[[int], int] = int) -> list[Fact]:
    """All rows that have come, each with the values of the calls."""
    came = [replace(f, birth=f.ts) for f in rows]
    return [
        replace(row, values=row.values + _values(node, own, came, instant))
        for row, own in zip(rows, came, strict=True)
    ]


def _values(
    node: lp.Over, row: Fact, came: list[Fact], instant: Callable[[int], int]
) -> tuple[Value, ...]:
    there = [f for f in came if f.birth <= row.birth]
    window = content(node.window, there, row.birth, None, instant)
    known = [f for f in window if f.age() <= row.age() and _counts(node, f)]
    if row not in known:
        return (None,) * sum(len(frame.calls) for frame in node.frames)
    known.sort(key=Fact.age)
    return tuple(
        _call(frame, call, row, _group(frame, row, known))
        for frame in node.frames
        for call in frame.calls
    )


def _counts(node: lp.Over, row: Fact) -> bool:
    return node.predicate is None or evaluate(node.predicate, row.values) is True


def _group(frame: lp.Frame, row: Fact, known: list[Fact]) -> list[Fact]:
    def key(fact: Fact) -> tuple:
        return canons(tuple(evaluate(e, fact.values) for e in frame.by))

    return [f for f in known if key(f) == key(row)]


def _call(frame: lp.Frame, call: AggCall, row: Fact, group: list[Fact]) -> Value:
    """`group`: the rows up to this one, which is the last."""
    match call.fn:
        case "row_number":
            return len(group)
        case "lag":
            (back,) = call.params
            assert isinstance(back, int)
            if len(group) > back:
                return evaluate(call.args[0], group[-1 - back].values)
            return evaluate(call.args[1], row.values) if len(call.args) > 1 else None
        case "rank" | "dense_rank":
            return _rank(call, row, group)
    if frame.rows is not None:
        group = group[-1 - frame.rows :]
    if frame.span is not None:
        group = [f for f in group if f.ts >= row.ts - frame.span]
    return aggregate(call, [f.values for f in group])


def _rank(call: AggCall, row: Fact, group: list[Fact]) -> int:
    """One more than there are rows before the row's own in order; of DENSE_RANK different values
    of them."""

    def key(fact: Fact) -> Any:
        value = evaluate(call.args[0], fact.values)
        return order_key(value, "desc" in call.params, "nulls first" in call.params)

    before = [f for f in group if key(f) < key(row)]
    if call.fn == "rank":
        return 1 + len(before)
    return 1 + len({canon(evaluate(call.args[0], f.values)) for f in before})
