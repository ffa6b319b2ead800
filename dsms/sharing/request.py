"""What a periodic query asks of synopses: aggregates over one window of one stream, and what is
done with them.

A plan has the shape for it where, from the root down, it selects and projects what one GROUP BY (or
DISTINCT, which is one without aggregates) answers over selections and projections of one time
window (or of a count window whose SLIDE counts rows).  Everything below the GROUP BY is written
down in columns of the stream, so that queries which say the same in other words ask the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Protocol, assert_never

from dsms.operators.expressions import can_fail
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Col, Expr, conjuncts, rewrite
from dsms.sql.types import Schema
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Slide,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)


class Wanted(Protocol):
    """What a query asks, of a stream (`Request`) or of a join (`join_request`)."""

    @property
    def keys(self) -> tuple[Expr, ...]: ...

    @property
    def aggs(self) -> tuple[AggCall, ...]: ...

    @property
    def length(self) -> int:
        """Of its longest window."""
        ...

    @property
    def until(self) -> int: ...

    @property
    def slide(self) -> Slide: ...


@dataclass(frozen=True, slots=True)
class Request:
    """stream   key of the stream
    where    conditions over the stream's columns, all of which must hold; in a fixed order
    keys     GROUP BY expressions over the stream's columns
    aggs     aggregate calls over the stream's columns
    length, until   the window is [b - length, b - until) at boundary b; µs, or rows where time is
                    counted
    slide    its SLIDE
    above    selections and projections over keys ++ aggs, bottom up
    schema   of the answer
    """

    stream: str
    where: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]
    length: int
    until: int
    slide: Slide
    above: tuple[lp.Select | lp.Project, ...]
    schema: Schema


def request(root: lp.Node, slide: Slide) -> Request | None:
    """What the plan (without its Output and Sort) asks; None if synopses can't answer it."""
    above: list[lp.Select | lp.Project] = []
    node = root
    while isinstance(node, lp.Select | lp.Project):
        above.insert(0, node)
        node = node.child
    if not isinstance(node, lp.GroupBy | lp.Distinct):
        return None
    below = base(node.child)
    if below is None:
        return None
    exprs = below.exprs
    keys, aggs = exprs, tuple[AggCall, ...]()
    if isinstance(node, lp.GroupBy):
        keys = tuple(over(k, exprs) for k in node.keys)
        aggs = tuple(normal(a, exprs) for a in node.aggs)
    where = tuple(sorted(dict.fromkeys(below.where), key=repr))
    spec = below.window
    asked = (*where, *keys, *(e for a in aggs for e in (*a.args, a.filter) if e is not None))
    if spec.until and any(map(can_fail, asked)):
        return None  # rows are lifted when they come, and fail when they enter
    return Request(
        below.scan.stream.home,
        where,
        keys,
        aggs,
        spec.length,
        spec.until,
        slide,
        tuple(above),
        root.schema,
    )


@dataclass(frozen=True, slots=True)
class Base:
    """A window over selections and projections of a stream."""

    scan: lp.StreamScan
    window: Time
    where: tuple[Expr, ...]
    exprs: tuple[Expr, ...]  # the columns of the node, over the stream's


def base(node: lp.Node) -> Base | None:
    """What the node is, if it is a time window over a stream; None if it is anything else."""
    match node:
        case lp.Window(child=child, spec=spec):
            window = _sliced(spec)
            return None if window is None else _rows(child, window)
        case lp.Select() | lp.Project():
            inner = base(node.child)
            return None if inner is None else _step(inner, node)
    return None


def _sliced(spec: WindowSpec) -> Time | None:
    """The window, if sub-windows can make it up."""
    match spec:
        case Time(calendar=None, internal=False, archive=False):
            return spec
        case Time() | Now() | Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            return None
        case Session() | When() | Lasting() | Throttled() | First():
            return None
        case _:
            assert_never(spec)


def _rows(node: lp.Node, window: Time) -> Base | None:
    """Below the window."""
    match node:
        case lp.StreamScan():
            positions = {f.name: i for i, f in enumerate(node.stream.schema)}
            exprs = tuple(Col(positions[f.name], f.type) for f in node.schema)
            return Base(node, window, (), exprs)
        case lp.Select() | lp.Project():
            inner = _rows(node.child, window)
            return None if inner is None else _step(inner, node)
    return None


def _step(inner: Base, node: lp.Select | lp.Project) -> Base:
    if isinstance(node, lp.Select):
        return replace(
            inner,
            where=inner.where + tuple(over(c, inner.exprs) for c in conjuncts(node.predicate)),
        )
    return replace(inner, exprs=tuple(over(e, inner.exprs) for e in node.exprs))


def over(expr: Expr, exprs: Sequence[Expr]) -> Expr:
    """The expression with its columns replaced by what they are."""
    return rewrite(expr, lambda c: exprs[c.index])


def normal(call: AggCall, exprs: Sequence[Expr]) -> AggCall:
    """An aggregate over the stream's columns, without its name."""
    arguments = tuple(over(a, exprs) for a in call.args)
    passes = None if call.filter is None else over(call.filter, exprs)
    return replace(call, args=arguments, filter=passes, name="")


def made_of(wanted: Request, counted: bool, declared: int | None) -> int:
    """The sub-window of a new feed for it; `declared`: the SUBWINDOW of its stream."""
    return span_of(wanted) if counted or declared is None else gcd(span_of(wanted), declared)


def span_of(wanted: Request) -> int:
    """The longest sub-window of which its window and its SLIDE are made."""
    return gcd(wanted.length, wanted.until, wanted.slide.every)


def phase_of(wanted: Wanted, span: int) -> int:
    """Where sub-windows begin so that boundaries fall between them."""
    return (wanted.slide.align or 0) % span
