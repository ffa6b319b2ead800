"""Rows that are confidential while they are young: what a window holds for who sees them later.

A row stamped ts that is seen after d is there for him from ts + d on, and leaves each window when
it does for everybody.  So windows in time end d ago, and count windows count the rows that are
seen:

    [RANGE t]          [RANGE t UNTIL d AGO]        [RANGE t UNTIL u AGO]   the larger of u and d
    no window          [RANGE UNBOUNDED UNTIL d AGO]
    [SINCE i]          [SINCE i UNTIL d AGO]
    [VALID UNTIL c]    [VALID UNTIL c UNTIL d AGO], and so with [RANGE (expression)]
    [ROWS n]           [ROWS n] over [RANGE UNBOUNDED UNTIL d AGO], and so with PARTITION BY,
                       SESSION and WHEN

Conditions and masks of a grant stand below: they don't look at time, so it is the same which is
done first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.windows import check_measure, slide_in_time
from dsms.sql.codes import error
from dsms.sql.literals import duration_text
from dsms.sql.logical import Window
from dsms.sql.unbind import duration
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
)


def late(
    window: Window,
    after: int,
    at: ast.Window | None,
    stream: str,
    user: str | None,
    every: ast.Slide | None = None,
) -> Window:
    """The window over rows that the user sees `after` µs late (0: as it is); `every`: EVERY of the
    query.

    Raises DS307 where it would never hold any, DS310 where its SLIDE does not fit."""
    spec = window.spec
    if not after:
        return window
    match spec:
        case Now():
            raise _empty(at, stream, user, after)
        case Time():
            if max(spec.until, after) >= spec.length:
                raise _empty(at, stream, user, after)
            spec = replace(spec, until=max(spec.until, after))
            _check(spec, after, at, stream, every)
            return replace(window, spec=spec)
        case Throttled():
            if max(spec.until, after) >= spec.length:
                raise _empty(at, stream, user, after)
            return replace(window, spec=replace(spec, until=max(spec.until, after)))
        case Unbounded() | Landmark() | Lasting():
            return replace(window, spec=replace(spec, until=max(spec.until, after)))
        case Partitioned(age=int(age)) if after >= age:
            raise _empty(at, stream, user, after)
        case Rows() | Partitioned() | Latest() | First() | Session() | When():
            if isinstance(spec, Partitioned) and spec.age is not None:
                spec = replace(spec, age=spec.age - after)  # it counts from when it is seen
            old = Unbounded(until=after, archive=spec.archive)
            child = Window(window.child, old, window.schema)
            return replace(window, child=child, spec=replace(spec, archive=False))
        case _:
            assert_never(spec)


def _check(
    spec: Time, after: int, at: ast.Window | None, stream: str, every: ast.Slide | None
) -> None:
    said = every if at is None else at.slide or every
    if said is None:
        return
    slide = spec.slide or slide_in_time(said)
    hint = f"rows of {stream} are seen after {_text(after)}: give all of them a common unit"
    check_measure(spec, slide, said, hint)


def _empty(at: ast.Window | None, stream: str, user: str | None, after: int) -> QueryError:
    message = (
        f"{user} sees rows of {stream} when they are {_text(after)} old, and this window has lost "
        "them by then"
    )
    return error("DS307", message, at, f"write a RANGE that is longer than {_text(after)}")


def _text(micros: int) -> str:
    return duration_text(duration(micros))
