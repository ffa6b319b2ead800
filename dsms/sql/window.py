"""Windows and SLIDEs, as the binder hands them on: a class for each kind of window.

What is true of each kind stands in `dsms.plan.windows`, and where each comes from and goes back to
in text in `dsms.sql.binder.windows` and `dsms.sql.unbind`.  All of these are `match`es that close
with `assert_never`: a kind that is added to `WindowSpec` is missed by the type checker wherever it
has to be thought of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dsms.sql.expr import Expr

Calendar = tuple[int, str]  # (count, unit) as written: a length in days or longer under a TIME ZONE


@dataclass(frozen=True, slots=True)
class Slide:
    """When a periodic query answers.

    every      µs from one boundary to the next (under `calendar`, at most), or rows
    by_rows    it counts rows
    align      an instant that is a boundary (None: the epoch)
    zone       name of a time zone
    calendar   days or longer under a TIME ZONE
    """

    every: int
    by_rows: bool = False
    align: int | None = None
    zone: str | None = None
    calendar: Calendar | None = None

    @property
    def regular(self) -> bool:
        """Whether all boundaries are `every` apart."""
        return self.zone is None and self.calendar is None


NO_SLIDE = Slide(1)  # of a query that has no boundaries of its own, where one is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """What every window has.

    internal   INTERNAL: results stay when rows leave it
    slide      its SLIDE; None: it moves with every row
    archive    ARCHIVE: it reaches into the stream's archive
    """

    internal: bool = False
    slide: Slide | None = None
    archive: bool = False


@dataclass(frozen=True, slots=True)
class Time(_Window):
    """[RANGE length] (`until` = 0) or [RANGE length UNTIL until AGO]; µs.

    `calendar`: days or longer under a TIME ZONE; `length` is the longest that they can be."""

    length: int
    until: int = 0
    calendar: Calendar | None = None


@dataclass(frozen=True, slots=True)
class Now(_Window):
    """[NOW]."""


@dataclass(frozen=True, slots=True)
class Rows(_Window):
    """[ROWS count] or [ROWS count UNTIL until AGO]."""

    count: int
    until: int = 0


@dataclass(frozen=True, slots=True)
class Partitioned(_Window):
    """[PARTITION BY ... ROWS count], or [PARTITION BY ... ROWS count RANGE age]; `by` are column
    indices of the input.

    age  µs for which a row is in it at most; None: until newer ones come"""

    count: int
    until: int = 0
    by: tuple[int, ...] = ()
    age: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded(_Window):
    """[RANGE UNBOUNDED], and every stream without a window; [RANGE UNBOUNDED UNTIL until AGO]."""

    until: int = 0


@dataclass(frozen=True, slots=True)
class Landmark(_Window):
    """[SINCE since], an instant, or [SINCE since UNTIL until AGO]."""

    since: int
    until: int = 0


@dataclass(frozen=True, slots=True)
class Latest(_Window):
    """Of each key the last row of the window below, by (ts, arrival), unless it deletes: what a
    stream with KEY holds.

    by         column indices of the key
    operation  that of the operation (`DELETE` deletes)
    """

    by: tuple[int, ...]
    operation: int


@dataclass(frozen=True, slots=True)
class Session(_Window):
    """[SESSION gap BY c, ...]: of each key the rows of its open session.

    gap       µs, or an INTERVAL of the row, after which the session ends that no row prolongs
    by        column indices of the key; (): all rows have one
    at_close  it holds, instead, the rows of the sessions that end at this very instant"""

    gap: int | Expr
    by: tuple[int, ...] = ()
    at_close: bool = False


@dataclass(frozen=True, slots=True)
class When(_Window):
    """[WHEN start UNTIL stop BY c, ...]: of each key the rows of its open episode, from one for
    which `start` is true on until one for which `stop` is.  `by`, `at_close` as of sessions."""

    start: Expr
    stop: Expr
    by: tuple[int, ...] = ()
    at_close: bool = False


@dataclass(frozen=True, slots=True)
class Lasting(_Window):
    """[VALID UNTIL column] or [RANGE (expression)]: a column of each row says how long it is in it,
    NULL for good; of rows that would leave when they come, or earlier, it holds none.

    end    column index of the input: a TIMESTAMP, at which the row leaves
    spans  that is an INTERVAL, for which the row stays
    """

    end: int
    spans: bool = False
    until: int = 0


@dataclass(frozen=True, slots=True)
class Throttled(_Window):
    """[PARTITION BY ... EVERY length], µs; `by` are column indices of the input: a row enters if no
    row of its partition is in it, and is then in it for `length`."""

    length: int
    until: int = 0
    by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class First(_Window):
    """[PARTITION BY ... FIRST count]: the first rows of each partition, which stay; `by` are column
    indices of the input."""

    count: int
    by: tuple[int, ...] = ()


WindowSpec = (
    Time
    | Now
    | Rows
    | Partitioned
    | Unbounded
    | Landmark
    | Latest
    | Lasting
    | Throttled
    | First
    | Session
    | When
)
Episodes = Session | When  # of a key, which end as a whole

UNBOUNDED = Unbounded()


def counts(window: WindowSpec) -> bool:
    """Whether it counts rows.  (Instants alone decide what all others hold.)"""
    match window:
        case Rows() | Partitioned():
            return True
        case Time() | Now() | Unbounded() | Landmark() | Latest() | Session() | When():
            return False
        case Lasting() | Throttled() | First():
            return False
        case _:
            assert_never(window)


def keeps_all(window: WindowSpec) -> bool:
    """Whether a row that is in it stays in it for good."""
    match window:
        case Unbounded() | Landmark() | First():
            return True
        case (
            Time()
            | Now()
            | Rows()
            | Partitioned()
            | Latest()
            | Session()
            | When()
            | Lasting()
            | Throttled()
        ):
            return False
        case _:
            assert_never(window)
