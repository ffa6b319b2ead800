"""Windows: from what is written between the brackets to `dsms.sql.window`, and what must be true of
their SLIDEs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from dsms.sql import ast
from dsms.sql.binder import durations
from dsms.sql.binder.scope import Scope, find
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.functions.constants import zone_problem
from dsms.sql.print_expressions import boundaries
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
    counts,
)

MOST_SUBWINDOWS = 1_000_000  # of one window: past this the ring would cost more than the rows in it
DAY = 86_400_000_000


def window_spec(
    window: ast.Window,
    scope: Scope,
    every: ast.Slide | None = None,
    extent: WindowSpec | None = None,
) -> WindowSpec:
    """The typed window; `scope` are the columns that PARTITION BY may name.  `every`: boundaries of
    the query, which a RANGE that follows the calendar moves at; `extent`: what it is but for its
    options, where that is known."""
    slide = window.slide or (every if every is not None and _by_calendar(window, every) else None)
    zone = slide.time_zone if slide else None
    if slide is not None and zone is not None:
        check_zone(zone, slide)
    extent = extent or _extent(window, zone, slide is not None, scope)
    spec = replace(extent, internal=window.internal, archive=window.archive)
    return spec if slide is None else _with_slide(spec, slide)


def _by_calendar(window: ast.Window, every: ast.Slide) -> bool:
    zoned = every.time_zone is not None
    return (
        isinstance(window, ast.RangeWindow) and durations.calendar(window.length, zoned) is not None
    )


def _extent(window: ast.Window, zone: str | None, slides: bool, scope: Scope) -> WindowSpec:
    match window:
        case ast.RangeWindow():
            return _range(window, zone, slides)
        case ast.RowsWindow():
            return _rows(window, scope)
        case ast.NowWindow():
            return Now()
        case ast.UnboundedWindow():
            return Unbounded(until=until_of(window.until))
        case ast.LandmarkWindow():
            return Landmark(window.since.micros, until_of(window.until))
        case ast.FirstWindow():
            if window.rows <= 0:
                hint = "write FIRST n with n at least 1"
                raise error("DS307", "FIRST 0 holds nothing", window, hint)
            return First(window.rows, keys_of(window.partition_by, scope))
        case ast.ThrottledWindow():
            return _throttled(window, scope)
        case _:
            raise AssertionError(window)


def _range(window: ast.RangeWindow, zone: str | None, slides: bool) -> Time:
    length = window.length
    if length.micros == 0 and length.months == 0:
        hint = "for the tuples of the current instant write NOW"
        raise error("DS307", "RANGE 0 holds nothing", length, hint)
    calendar = durations.calendar(length, zone is not None)
    if length.months and not slides:
        hint = (
            "add SLIDE, or EVERY to the end of the query (calendar windows are evaluated at "
            "calendar boundaries), or write the length in DAY"
        )
        raise error("DS227", "a RANGE in months or years needs a SLIDE", length, hint)
    micros = durations.at_most(length) if length.months else durations.fixed(length, "RANGE")
    until = until_of(window.until)
    if until >= micros and window.until is not None:
        hint = (
            f"RANGE reaches back {micros} us and UNTIL ends {until} us ago: make UNTIL the "
            "shorter one"
        )
        raise error("DS313", "UNTIL must be shorter than RANGE", window.until, hint)
    return Time(micros, until, calendar)


def until_of(until: ast.Duration | None) -> int:
    """What UNTIL says, in µs."""
    return 0 if until is None else durations.fixed(until, "UNTIL", zero=True)


def _rows(window: ast.RowsWindow, scope: Scope) -> Rows | Partitioned:
    if window.rows <= 0:
        raise error("DS307", "ROWS 0 holds nothing", window, "write ROWS n with n at least 1")
    until = window.until or 0
    if until >= window.rows:
        hint = f"write ROWS {until + 1} or more, or a smaller UNTIL"
        raise error("DS313", "UNTIL must be less than ROWS", window, hint)
    by = keys_of(window.partition_by, scope)
    return Partitioned(window.rows, until, by, _age(window)) if by else Rows(window.rows, until)


def _throttled(window: ast.ThrottledWindow, scope: Scope) -> Throttled:
    length, until = durations.fixed(window.length, "EVERY", zero=True), until_of(window.until)
    if length <= 0:
        hint = "write EVERY with a length of time, or FIRST 1 for the first row of all"
        raise error("DS307", "EVERY 0 holds nothing", window.length, hint)
    if until >= length and window.until is not None:
        hint = (
            f"rows stay for {length} us and UNTIL ends {until} us ago: make UNTIL the shorter one"
        )
        raise error("DS313", "UNTIL must be shorter than EVERY", window.until, hint)
    return Throttled(length, until, keys_of(window.partition_by, scope))


def _age(window: ast.RowsWindow) -> int | None:
    """µs for which a row is in the window at most."""
    if window.age is None:
        return None
    micros = durations.fixed(window.age, "RANGE", zero=True)
    if micros <= 0:
        hint = "write a RANGE longer than 0, or leave RANGE out"
        raise error("DS307", "RANGE 0 holds nothing", window.age, hint)
    return micros


def keys_of(exprs: Sequence[ast.Expr], scope: Scope) -> tuple[int, ...]:
    """Where the columns of PARTITION BY, or BY, stand."""
    return tuple(_partition_column(e, scope) for e in exprs)


def _partition_column(expr: ast.Expr, scope: Scope) -> int:
    assert isinstance(expr, ast.ColumnRef)  # the grammar allows nothing else
    column = find(scope, expr)
    assert isinstance(column.expr, Col)  # the scope of a single FROM item holds plain columns
    return column.expr.index


def _with_slide(spec: WindowSpec, slide: ast.Slide) -> WindowSpec:
    if isinstance(slide.every, int):
        assert counts(spec) or isinstance(spec, Time)  # the parser sees to that
        if slide.every <= 0:
            raise error(
                "DS308",
                "SLIDE must be at least one row",
                slide,
                "write SLIDE 1, or leave SLIDE out",
            )
        if slide.align_to is not None or slide.time_zone is not None:
            raise error(
                "DS308",
                "ALIGN TO and TIME ZONE need a SLIDE in time",
                slide,
                "leave them out after ROWS",
            )
        if isinstance(spec, Time) and spec.calendar is not None:
            message = (
                "a RANGE in months or years goes back from boundaries in time, and here is none"
            )
            hint = "write RANGE in DAYS, or SLIDE with a length of time"
            raise error("DS369", message, slide, hint)
        return replace(spec, slide=Slide(slide.every, by_rows=True))
    if counts(spec):
        raise error(
            "DS308",
            "SLIDE of a ROWS window counts rows",
            slide,
            "write SLIDE 10: an answer after 10 rows; or leave it out, and end the query with "
            f"{boundaries(slide, 'EVERY')}",
        )
    return replace(spec, slide=slide_in_time(slide, spec))


def slide_in_time(slide: ast.Slide, spec: WindowSpec | None = None) -> Slide:
    """The typed SLIDE of a window, or EVERY of a query, in time."""
    assert isinstance(slide.every, ast.Duration)
    word = "EVERY" if spec is None else "SLIDE"
    calendar = durations.calendar(slide.every, slide.time_zone is not None)
    micros = durations.at_most(slide.every)
    if micros <= 0:
        raise error(
            "DS308",
            f"{word} must be positive",
            slide,
            f"write {word} 10 SECONDS, or leave {word} out",
        )
    align = slide.align_to.micros if slide.align_to else None
    found = Slide(micros, align=align, zone=slide.time_zone, calendar=calendar)
    if found.zone is not None and calendar is None and DAY % micros:
        hint = f"write {word} with a length that divides 24 hours, or leave TIME ZONE out"
        message = f"under TIME ZONE {word} shorter than a day must divide the day"
        raise error("DS310", message, slide, hint)
    if spec is not None:
        check_measure(spec, found, slide)
    return found


def check_measure(
    spec: WindowSpec, slide: Slide, at: ast.Node, hint: str | None = None, word: str = "SLIDE"
) -> None:
    """The sub-window is the greatest common divisor of RANGE, UNTIL and SLIDE: it must not be
    absurdly short."""
    match spec:
        case Time(length, until, calendar=None) if slide.calendar is None and not slide.by_rows:
            unit = math.gcd(length, until, slide.every)
            if max(length, slide.every) // unit > MOST_SUBWINDOWS:
                message = f"RANGE and {word} have no common measure longer than {unit} us"
                remedy = hint or "round both to a common unit, such as seconds"
                raise error("DS310", message, at, remedy)
        case Time() | Now() | Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            pass
        case Session() | When() | Lasting() | Throttled() | First():
            pass
        case _:
            assert_never(spec)


def check_zone(zone: str, slide: ast.Slide) -> None:
    found = zone_problem(zone)
    if found is not None:
        raise error("DS222", found[0], slide, found[1])
