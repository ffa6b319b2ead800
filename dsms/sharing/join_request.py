"""What a periodic query asks of join synopses: aggregates over a join of two time windows (Golab
2006, §8.3.2).

A plan has the shape for it where, from the root down, it selects and projects what one GROUP BY
answers over selections and projections of an inner join of two time windows, each over selections
and projections of a stream.  Everything below the GROUP BY is written down in columns of the two
streams, so that queries which say the same in other words, or over windows of other lengths, ask
for the same join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from dsms.aggregates.cards import CARDS
from dsms.sharing.request import Base, base, normal, over
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef
from dsms.sql.expr import AggCall, Col, Expr, columns, conjuncts, rewrite, shift
from dsms.sql.types import Schema
from dsms.sql.window import Slide

LONGEST = 2048  # sub-windows of the longest window
FEW = 1 << 16  # cells that are no burden


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side: key of the stream, and conditions over its columns, all of which must hold, in a
    fixed order."""

    stream: str
    where: tuple[Expr, ...]
    added: int = 0  # columns that the stream had got since it was declared


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A join, whatever its windows.

    keys        equalities: (over the left stream's columns, over the right one's)
    conditions  over the left stream's columns followed by the right one's, in a fixed order
    """

    left: JoinSide
    right: JoinSide
    keys: tuple[tuple[Expr, Expr], ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """join      which join, and `streams` its streams
    lengths      of the windows, µs
    keys, aggs   GROUP BY expressions and aggregate calls over the left stream's columns followed by
                 the right one's
    slide        its SLIDE
    above        selections and projections over keys ++ aggs, bottom up
    """

    join: JoinKey
    streams: tuple[StreamDef, StreamDef] = field(compare=False, repr=False)
    lengths: tuple[int, int]
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]
    slide: Slide
    above: tuple[lp.Select | lp.Project, ...]
    schema: Schema
    until: int = 0

    @property
    def length(self) -> int:
        """Of the longer window."""
        return max(self.lengths)

    @property
    def span(self) -> int:
        """The longest sub-window of which its windows and its SLIDE are made."""
        return gcd(*self.lengths, self.slide.every)

    @property
    def used(self) -> frozenset[int]:
        """The columns that are needed of a result, and for the join itself."""
        left = len(self.streams[0].schema)
        exprs = [*self.keys, *self.join.conditions, *(k for k, _ in self.join.keys)]
        exprs += [shift(k, left) for _, k in self.join.keys]
        exprs += [
            e for a in self.aggs for e in (*a.args, *([] if a.filter is None else [a.filter]))
        ]
        return frozenset(i for e in exprs for i in columns(e))


def join_request(root: lp.Node, slide: Slide) -> JoinRequest | None:
    """What the plan (without its Output and Sort) asks; None if join synopses can't answer it."""
    above: list[lp.Select | lp.Project] = []
    node = root
    while isinstance(node, lp.Select | lp.Project):
        above.insert(0, node)
        node = node.child
    if not isinstance(node, lp.GroupBy) or any(
        CARDS[a.fn].ordered or CARDS[a.fn].windowed for a in node.aggs
    ):
        return None
    found = _below(node.child)
    if found is None or not slide.regular:
        return None
    keys = tuple(over(k, found.exprs) for k in node.keys)
    aggs = tuple(normal(a, found.exprs) for a in node.aggs)
    made = JoinRequest(
        found.key(),
        (found.left.scan.stream, found.right.scan.stream),
        found.lengths,
        keys,
        aggs,
        slide,
        tuple(above),
        root.schema,
    )
    made = _turned(made)
    return made if made.length // made.span <= LONGEST else None


@dataclass(slots=True)
class _Below:
    """What stands below the GROUP BY, over the columns of both streams."""

    left: Base
    right: Base
    keys: tuple[tuple[Expr, Expr], ...]
    conditions: list[Expr]
    exprs: tuple[Expr, ...]

    @property
    def lengths(self) -> tuple[int, int]:
        return self.left.window.length, self.right.window.length

    def key(self) -> JoinKey:
        parts = [
            JoinSide(b.scan.stream.home, _fixed(b.where), b.scan.stream.added)
            for b in (self.left, self.right)
        ]
        return JoinKey(
            parts[0], parts[1], tuple(sorted(set(self.keys), key=repr)), _fixed(self.conditions)
        )


def pays(wanted: JoinRequest, groups: float, results: float) -> bool:
    """Whether a synopsis is worth its while for one query alone.  `results`: of the join, per
    second.

    An update goes through all intervals of all groups, but some 25 ns for each cell are little
    beside the µs or so that the operators spend on each result (measured with three aggregates)."""
    cells = groups * (wanted.length // wanted.span)
    return cells <= max(FEW, 32 * results * wanted.span / 1_000_000)


def _fixed(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(dict.fromkeys(exprs), key=repr))


def _below(node: lp.Node) -> _Below | None:
    match node:
        case lp.Join(kind="inner"):
            return _join(node)
        case lp.Select() | lp.Project():
            found = _below(node.child)
            if found is not None and isinstance(node, lp.Select):
                found.conditions += [over(c, found.exprs) for c in conjuncts(node.predicate)]
            elif found is not None and isinstance(node, lp.Project):
                found.exprs = tuple(over(e, found.exprs) for e in node.exprs)
            return found
    return None


def _join(node: lp.Join) -> _Below | None:
    left, right = base(node.left), base(node.right)
    if left is None or right is None or left.window.until or right.window.until:
        return None
    by = len(left.scan.stream.schema)
    exprs = left.exprs + tuple(shift(e, by) for e in right.exprs)
    keys = tuple((over(a, left.exprs), over(b, right.exprs)) for a, b in node.keys)
    return _Below(left, right, keys, [over(c, exprs) for c in conjuncts(node.residual)], exprs)


def _turned(made: JoinRequest) -> JoinRequest:
    """The streams by name, so that a JOIN b and b JOIN a are the same join."""
    join = made.join
    if join.left.stream <= join.right.stream:
        return made
    old, new = len(made.streams[0].schema), len(made.streams[1].schema)

    def turn(expr: Expr) -> Expr:
        return rewrite(
            expr, lambda c: Col(c.index - old if c.index >= old else c.index + new, c.type, c.name)
        )

    exprs = [
        turn(Col(i, f.type))
        for i, f in enumerate((*made.streams[0].schema, *made.streams[1].schema))
    ]
    pairs = tuple(sorted(((b, a) for a, b in join.keys), key=repr))
    key = JoinKey(join.right, join.left, pairs, _fixed([turn(c) for c in join.conditions]))
    return JoinRequest(
        key,
        made.streams[::-1],
        made.lengths[::-1],
        tuple(turn(k) for k in made.keys),
        tuple(normal(a, exprs) for a in made.aggs),
        made.slide,
        made.above,
        made.schema,
    )
