"""What is true of each kind of window: one fact a function, one `match` each.

A kind that is added to `dsms.sql.window` makes mypy list the facts that lack it, and with them the
few places that make something else of each kind: operators, texts, contents.  What the binder must
know, too, stands beside the kinds: `counts`, `keeps_all`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import assert_never

from dsms.plan.boundaries import most_repeated, window_start
from dsms.plan.exprs import reads as columns_read
from dsms.plan.exprs import remap
from dsms.plan.physical import Pattern
from dsms.sql.expr import Expr
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)

Lifetime = tuple[object, ...]


# ---------------------------------------------------------------- where it begins and ends


def since(window: WindowSpec, at: int) -> int | None:
    """The instant after which everything in the window at `at` was born, if the window says so
    itself."""
    match window:
        case Partitioned(age=int(age)):
            return at - age
        case Time():
            return window_start(window, at + 1) - 1
        case Now():
            return at - 1
        case Landmark():
            return window.since - 1
        case (
            Rows()
            | Partitioned()
            | Unbounded()
            | Latest()
            | Session()
            | When()
            | Lasting()
            | Throttled()
            | First()
        ):
            return None
        case _:
            assert_never(window)


def ends(window: WindowSpec, at: int) -> int:
    """The instant up to which rows were born that may be in the window at `at`."""
    match window:
        case Time() | Unbounded() | Landmark() | Lasting() | Throttled():
            return at - window.until
        case Now() | Rows() | Partitioned() | Latest() | Session() | When() | First():
            return at
        case _:
            assert_never(window)


def until(window: WindowSpec) -> int:
    """What UNTIL says, in µs or rows; 0: it reaches up to now, so rows enter it when they come."""
    match window:
        case Time() | Rows() | Partitioned() | Unbounded() | Landmark():
            return window.until
        case Lasting() | Throttled():
            return window.until
        case Now() | Latest() | First() | Session() | When():
            return 0
        case _:
            assert_never(window)


def by_calendar(window: WindowSpec) -> bool:
    """Whether it follows the calendar, so that it moves at boundaries only."""
    match window:
        case Time():
            return window.calendar is not None
        case Now() | Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            return False
        case Session() | When() | Lasting() | Throttled() | First():
            return False
        case _:
            assert_never(window)


def by_clock(window: WindowSpec) -> bool:
    """Whether instants, other than those of rows, decide what it holds."""
    match window:
        case Time() | Now() | Landmark() | Lasting() | Throttled() | Session():
            return True
        case Unbounded():
            return window.until > 0
        case Partitioned():
            return window.age is not None
        case Rows() | Latest() | First() | When():
            return False
        case _:
            assert_never(window)


# ---------------------------------------------------------------- which rows it holds


def newest(window: WindowSpec) -> int | None:
    """How many of the newest rows are enough to fill it; None where no number is."""
    match window:
        case Rows():
            return window.count
        case Time() | Now() | Partitioned() | Unbounded() | Landmark() | Latest():
            return None
        case Session() | When() | Lasting() | Throttled() | First():
            return None
        case _:
            assert_never(window)


def everything(window: WindowSpec) -> bool:
    """Whether it holds all rows that ever came."""
    match window:
        case Unbounded():
            return not window.until
        case Time() | Now() | Rows() | Partitioned() | Landmark() | Latest():
            return False
        case Session() | When() | Lasting() | Throttled() | First():
            return False
        case _:
            assert_never(window)


def in_order(window: WindowSpec) -> bool:
    """Whether rows enter it in the order in which they came."""
    match window:
        case Partitioned():
            return not window.until
        case Time() | Now() | Rows() | Unbounded() | Landmark() | Latest():
            return True
        case Session() | When() | Lasting() | Throttled() | First():
            return True
        case _:
            assert_never(window)


def partition(window: WindowSpec) -> tuple[int, ...]:
    """The columns by whose values it is one window each."""
    match window:
        case Partitioned() | Latest() | Session() | When() | Throttled() | First():
            return window.by
        case Time() | Now() | Rows() | Unbounded() | Landmark() | Lasting():
            return ()
        case _:
            assert_never(window)


def reads(window: WindowSpec) -> set[int]:
    """The columns that it looks at."""
    match window:
        case Latest():
            return {*window.by, window.operation}
        case Lasting():
            return {window.end}
        case _:
            return {*partition(window), *columns_read(expressions(window))}


def expressions(window: WindowSpec) -> tuple[Expr, ...]:
    """What it evaluates of each row."""
    match window:
        case Session(gap=gap):
            return () if isinstance(gap, int) else (gap,)
        case When():
            return window.start, window.stop
        case Time() | Now() | Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            return ()
        case Lasting() | Throttled() | First():
            return ()
        case _:
            assert_never(window)


def alone(window: WindowSpec) -> bool:
    """Whether how long a row is in it depends on that row alone."""
    match window:
        case Time() | Now() | Unbounded() | Landmark() | Lasting() | Throttled() | First():
            return True
        case Rows() | Partitioned() | Latest() | Session() | When():
            return False
        case _:
            assert_never(window)


def moved(window: WindowSpec, places: Mapping[int, int]) -> WindowSpec:
    """The same window over rows whose columns have gone to other places."""
    match window:
        case Partitioned() | Throttled() | First():
            return replace(window, by=tuple(places[i] for i in window.by))
        case Latest():
            by = tuple(places[i] for i in window.by)
            return replace(window, by=by, operation=places[window.operation])
        case Session(gap=gap):
            moved_gap = gap if isinstance(gap, int) else remap(gap, places)
            return replace(window, gap=moved_gap, by=tuple(places[i] for i in window.by))
        case When(start, stop):
            by = tuple(places[i] for i in window.by)
            return replace(window, start=remap(start, places), stop=remap(stop, places), by=by)
        case Lasting():
            return replace(window, end=places[window.end])
        case Time() | Now() | Rows() | Unbounded() | Landmark():
            return window
        case _:
            assert_never(window)


def commutes(window: WindowSpec, columns: Set[int] | None = None) -> bool:
    """Whether the window of the rows that pass a selection is what passes of the window.

    columns   those that the selection reads; None: it may be any"""
    match window:
        case Time() | Now() | Unbounded() | Landmark() | Lasting():
            return True  # it gives each row a lifetime that depends on that row alone
        case Partitioned() | Latest() | Session() | When() | Throttled() | First():
            return columns is not None and columns <= set(window.by)
        case Rows():
            return False
        case _:
            assert_never(window)


# ---------------------------------------------------------------- how rows leave


def pattern(window: WindowSpec, child: Pattern) -> Pattern:
    """Its update pattern, over an input of that one."""
    match window:
        case Time() | Now() | Throttled():
            return max(Pattern.WKS, child)
        case Lasting():
            return max(Pattern.WK, child)
        case Session() | When() if window.at_close:
            return child  # what follows reads each episode once
        case Rows() | Partitioned() | Latest() | Session() | When():
            return Pattern.STR
        case Unbounded() | Landmark() | First():
            return child
        case _:
            assert_never(window)


def lifetime(window: WindowSpec) -> Lifetime | None:
    """What tells how long every row is in it; None if rows are differently long in it, or for
    good."""
    match window:
        case Now():
            return ("now",)
        case Time():
            return (
                window.length,
                window.until,
                window.calendar,
                None if window.slide is None else window.slide.zone,
            )
        case Throttled():
            return (window.length, window.until, None, None)
        case Rows() | Partitioned() | Unbounded() | Landmark() | Latest() | Lasting() | First():
            return None
        case Session() | When():
            return None
        case _:
            assert_never(window)


def longest(window: WindowSpec) -> int | None:
    """µs for which a row matters to it at most; None: it can't be bounded."""
    match window:
        case Partitioned():
            return window.age
        case Time():
            return window.length + _repeated(window)
        case Now():
            return 1
        case Rows() | Unbounded() | Landmark() | Latest() | Lasting() | Throttled() | First():
            return None
        case Session() | When():
            return None
        case _:
            assert_never(window)


def rescanned(window: WindowSpec) -> bool:
    """Whether it may be found anew from rows that are kept, as it is read at boundaries."""
    match window:
        case Time() | Now() | Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            return True
        case Session() | When():
            return True
        case Lasting() | Throttled() | First():
            return False
        case _:
            assert_never(window)


def matters_for(window: WindowSpec) -> int:
    """µs after which a row can't matter any more at a boundary; 0 where no length says so."""
    match window:
        case Throttled():
            return window.length
        case Partitioned():
            return window.age or 0
        case Time():
            return window.length + _repeated(window)
        case Unbounded() | Landmark() | Lasting():
            return window.until  # then it has entered, and stays; or it says itself when it leaves
        case Session(gap=int() as gap):
            return gap  # longer gaps than that are seen when they pass
        case Now() | Rows() | Latest() | First() | Session() | When():
            return 0
        case _:
            assert_never(window)


def _repeated(window: Time) -> int:
    """µs by which local time may make it longer than its days are."""
    zone = None if window.slide is None else window.slide.zone
    return 0 if window.calendar is None or zone is None else most_repeated(zone)
