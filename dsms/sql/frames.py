"""Frames of OVER: which rows up to each row are looked at, and what is asked of them.

They are rows in the `window` of an Over as of the row's own timestamp.  Rows for which its
`predicate` is not true count for nothing but for windows of so many rows; None: all do.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.expr import AggCall, Expr


@dataclass(frozen=True, slots=True)
class Frame:
    """Calls of OVER that look at the same rows: of those that are equal in `by` (NULLs are, too),
    came no later by (ts, arrival) and are in the window, the row itself and the `rows` before it
    (None: all), which are at most `span` µs older (None: however old).

    A call of `lag` is the first argument of the row `rows` before, where there is one, else the
    second (NULL without one); `row_number` says how many rows there are; `rank` and `dense_rank`,
    how many of them, or different values, stand before the row's own in the order of the argument
    (params: "desc", "nulls first"; NULLs are alike), and one more."""

    by: tuple[Expr, ...]
    calls: tuple[AggCall, ...]
    rows: int | None = None
    span: int | None = None
