"""Windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsms.sql.nodes.base import Duration, Instant, Node
from dsms.sql.nodes.expressions import Expr


@dataclass(frozen=True, slots=True)
class Slide(Node):
    """``SLIDE every [ALIGN TO instant] [TIME ZONE 'zone']``; `every` is a row count only in ROWS
    windows.  At the end of a query ``EVERY`` stands for SLIDE."""

    every: Duration | int
    align_to: Instant | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """Base of windows.  `archive`: the archived part of the stream is included (``[RANGE 2 h
    ARCHIVE]``)."""

    internal: bool = field(default=False, kw_only=True)
    slide: Slide | None = field(default=None, kw_only=True)
    archive: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RangeWindow(Window):
    """``RANGE t [UNTIL u AGO]``: tuples with ts in (now - length, now - until]."""

    length: Duration
    until: Duration | None = None


@dataclass(frozen=True, slots=True)
class RowsWindow(Window):
    """``[PARTITION BY c, ...] ROWS n [UNTIL m AGO] [RANGE t]``: the newest n (per partition), or
    the n-th to m-th newest; with `age`, which partitions alone have, of those younger than that."""

    rows: int
    until: int | None = None
    partition_by: tuple[Expr, ...] = ()
    age: Duration | None = None


@dataclass(frozen=True, slots=True)
class NowWindow(Window):
    """``NOW``: the tuples of this very instant."""


@dataclass(frozen=True, slots=True)
class UnboundedWindow(Window):
    """``RANGE UNBOUNDED [UNTIL u AGO]``: everything so far, or everything older than that."""

    until: Duration | None = None


@dataclass(frozen=True, slots=True)
class SessionWindow(Window):
    """``SESSION gap [BY c, ...]``: per key the rows that came since none did for `gap`: a length,
    or an INTERVAL of the row."""

    gap: Duration | Expr
    by: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class WhenWindow(Window):
    """``WHEN start UNTIL stop [BY c, ...]``: per key the rows from one for which `start` is true
    on, while `stop` is true for none."""

    start: Expr
    stop: Expr
    by: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class LandmarkWindow(Window):
    """``SINCE instant [UNTIL u AGO]``: everything from that instant on, or what is older of it."""

    since: Instant
    until: Duration | None = None


@dataclass(frozen=True, slots=True)
class LastingWindow(Window):
    """``VALID UNTIL c [UNTIL u AGO]``: each row until the instant in its column; ``RANGE (expr)
    [UNTIL u AGO]`` (`spans`): each for as long as the expression over its columns says."""

    end: Expr
    spans: bool = False
    until: Duration | None = None


@dataclass(frozen=True, slots=True)
class ThrottledWindow(Window):
    """``PARTITION BY c, ... EVERY t [UNTIL u AGO]``: of each partition one row at a time, for t."""

    length: Duration
    until: Duration | None = None
    partition_by: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstWindow(Window):
    """``PARTITION BY c, ... FIRST n``: the first n tuples of each partition."""

    rows: int
    partition_by: tuple[Expr, ...] = ()
