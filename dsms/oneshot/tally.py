"""Where a plan asks of a window no more than which values a column has, or how often: GROUP BY c
with counts, COUNT(DISTINCT c) and the like, DISTINCT, INTERSECT, EXCEPT, IN.

There a leaf may be given as one row for each value, which counts of sub-windows tell (Golab, Garg,
Özsu 2004, §4), in place of the rows of its window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from dsms.aggregates.cards import CARDS
from dsms.oneshot.pushdown import KINDS
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Col, columns
from dsms.sql.types import INT, Field, Schema
from dsms.sql.window import Now, Time

Shown = Literal["value", "count", "count of not NULL", "nothing"]
COUNTS = (Field("n", INT), Field("m", INT))
COUNTED: tuple[Shown, ...] = ("count", "count of not NULL")


@dataclass(frozen=True, slots=True)
class Tally:
    """A leaf that is given by values of `column` of its stream.

    shown   what the columns of its rows are;  schema: of these rows"""

    column: int
    shown: tuple[Shown, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Tallied:
    """rest  the plan over leaves that are given so;  tallies: these, by leaf number"""

    rest: lp.Node
    tallies: Mapping[int, Tally]


def tallied(plan: lp.Node, ready: Mapping[int, frozenset[int]]) -> Tallied:
    """The plan; `ready`: by leaf the columns of which values are counted."""
    found: dict[int, Tally] = {}
    return Tallied(_rest(plan, ready, found) if ready else plan, found)


def asked(plan: lp.Node) -> dict[int, int]:
    """By leaf the column of which a plan asks for no more than values and counts."""
    found: dict[int, Tally] = {}
    leaves = (s for s in lp.leaves_of(plan) if isinstance(s, lp.StreamScan))
    _rest(plan, {s.leaf: frozenset(range(len(s.schema))) for s in leaves}, found)
    return {leaf: tally.column for leaf, tally in found.items()}


Ready = Mapping[int, frozenset[int]]
Found = dict[int, Tally]


def _rest(node: lp.Node, ready: Ready, found: Found, aged: bool = False) -> lp.Node:
    """`aged`: the ages of the node's rows are asked for, so each of them matters."""
    match node:
        case lp.GroupBy():
            ages = aged or any(CARDS[a.fn].ordered for a in node.aggs)
            made = None if ages else _grouped(node, ready, found)
            return made or replace(node, child=_rest(node.child, ready, found, ages))
        case lp.Distinct():
            return replace(node, child=_values(node.child, ready, found, aged))
        case lp.SetOp() if not node.all:
            left = _values(node.left, ready, found, aged)
            return replace(node, left=left, right=_values(node.right, ready, found, False))
        case lp.SemiJoin() if node.residual is None:
            left = _rest(node.left, ready, found, aged)
            return replace(node, left=left, right=_values(node.right, ready, found, False))
        case lp.Append():
            return node
        case lp.AsofJoin():
            left, right = (_rest(n, ready, found, True) for n in (node.left, node.right))
            return replace(node, left=left, right=right)
        case lp.Match():
            return replace(node, inputs=tuple(_rest(n, ready, found, True) for n in node.inputs))
        case lp.Window() | lp.JoinNRR() | lp.Over() | lp.TopN():
            return replace(node, child=_rest(node.child, ready, found, True))
        case _:
            new = tuple(_rest(child, ready, found, aged) for child in lp.children(node))
            return lp.with_children(node, new)


def _values(node: lp.Node, ready: Ready, found: Found, aged: bool) -> lp.Node:
    """A node of whose rows it matters which there are, not how many alike."""
    if isinstance(node, lp.Union) and not aged:
        return replace(node, inputs=tuple(_values(n, ready, found, aged) for n in node.inputs))
    chain = None if aged else _chain(node, ready)
    if chain is None or len(set(chain.columns)) != 1 or chain.columns[0] not in chain.ready:
        return _rest(node, ready, found, aged)
    shown: tuple[Shown, ...] = tuple("value" for _ in chain.columns)
    return _given(chain, chain.columns[0], shown, node.schema, found)


def _grouped(node: lp.GroupBy, ready: Ready, found: Found) -> lp.Node | None:
    """GROUP BY, where it looks at one column, by counts, and by aggregates to which duplicates are
    nothing."""
    chain = _chain(node.child, ready)
    if chain is None or any(a.filter is not None for a in node.aggs):
        return None
    used = {k for e in (*node.keys, *(x for a in node.aggs for x in a.args)) for k in columns(e)}
    read = {chain.columns[k] for k in used}
    alike = [a for a in node.aggs if not (a.distinct or CARDS[a.fn].blind)]
    if len(read) != 1 or not read <= chain.ready or not all(map(_counts, alike)):
        return None
    if alike and not node.keys:
        return None  # over no rows COUNT is 0, and a sum of counts NULL
    (column,) = read
    n = len(chain.columns)
    shown: tuple[Shown, ...] = tuple("value" if k == column else "nothing" for k in chain.columns)
    leaf = _given(chain, column, shown + COUNTED, (*node.child.schema, *COUNTS), found)
    return replace(node, child=leaf, aggs=tuple(_summed(a, n) for a in node.aggs))


def _counts(call: AggCall) -> bool:
    """COUNT(*), or COUNT of a column (no other is used)."""
    return call.fn == "count_star" or (call.fn == "count" and isinstance(call.args[0], Col))


def _summed(call: AggCall, n: int) -> AggCall:
    """Counts as sums of those in columns `n` and `n` + 1."""
    if call.distinct or CARDS[call.fn].blind:
        return call
    return replace(call, fn="sum", args=(Col(n + (call.fn == "count"), INT),))


@dataclass(frozen=True, slots=True)
class _Chain:
    """Columns of a stream in a window, and nothing done to them; those of which values are
    counted."""

    scan: lp.StreamScan
    columns: tuple[int, ...]
    ready: frozenset[int]


def _chain(node: lp.Node, ready: Ready) -> _Chain | None:
    """What the node is, if it is that."""
    columns, windows = tuple(range(len(node.schema))), 0
    while not isinstance(node, lp.StreamScan):
        match node:
            case lp.Project() if all(isinstance(e, Col) for e in node.exprs):
                exprs = node.exprs
                columns = tuple(exprs[k].index for k in columns)  # type: ignore[union-attr]
            case lp.Window(spec=Time(calendar=None, internal=False, archive=False) | Now()):
                windows += 1
            case _:
                return None
        node = node.child
    if windows != 1 or not node.live or node.dated:
        return None
    some = frozenset(k for k in columns if node.schema[k].type.kind in KINDS)
    return _Chain(node, columns, some & ready.get(node.leaf, frozenset()))


def _given(
    chain: _Chain, column: int, shown: tuple[Shown, ...], schema: Schema, found: Found
) -> lp.Node:
    """The leaf in place of the chain."""
    found[chain.scan.leaf] = Tally(column, shown, schema)
    return replace(chain.scan, schema=schema)
