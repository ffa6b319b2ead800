"""MIN, MAX, ARGMIN, ARGMAX."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import Match, Overload, Types, texts


def _first_of_two(args: Types) -> Match | None:
    """The first argument's type, whatever the second (which only orders)."""
    return Match(args, args[0]) if len(args) == 2 else None


_BY = Overload("(any value, any by) -> value's type", _first_of_two)

CARDS = (
    Card(
        "min",
        "Smallest value (NaN is above all numbers).",
        texts("T -> T"),
        blind=True,
        picks=True,
        in_sql="same",
        warm=("MIN(i)", "MIN(d)", "MIN(f)"),
    ),
    Card(
        "max",
        "Largest value (NaN is above all numbers).",
        texts("T -> T"),
        blind=True,
        picks=True,
        in_sql="same",
        warm=("MAX(f)", "MAX(k)"),
    ),
    Card(
        "argmax",
        "argmax(value, by): value of the row with the largest `by`, of the earliest such by (ts, "
        "arrival); rows where either is NULL do not take part.",
        (_BY,),
        equal=True,
        distinct=False,
        aliases=("arg_max", "max_by"),
        forms=("code", "word"),
        ordered=True,
        picks=True,
        warm=("ARGMAX(k, f)",),
    ),
    Card(
        "argmin",
        "argmin(value, by): as argmax, with the smallest `by`.",
        (_BY,),
        equal=True,
        distinct=False,
        aliases=("arg_min", "min_by"),
        forms=("code", "word"),
        ordered=True,
        picks=True,
        warm=("ARGMIN(i, t)",),
    ),
)
