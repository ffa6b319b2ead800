"""LONGEST_RISE, LONGEST_FALL, and where they begin and end."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import Match, Overload, Types, texts


def _first_of_two(args: Types) -> Match | None:
    """The first argument's type, whatever the second (which runs)."""
    return Match(args, args[0]) if len(args) == 2 else None


_OF = Overload("(any value, any of) -> value's type", _first_of_two)


def _length(name: str, doc: str, warm: str) -> Card:
    return Card(name, doc, texts("T -> INT"), distinct=False, ordered=True, warm=(warm,))


def _end(name: str, doc: str, *warm: str) -> Card:
    return Card(
        name,
        doc,
        (_OF,),
        distinct=False,
        forms=("code", "word"),
        ordered=True,
        picks=True,
        warm=warm,
    )


_OTHERS = "the earliest of the longest; rows where one is NULL take no part."

CARDS = (
    _length(
        "longest_rise",
        "How many values the longest run has in which, by (ts, arrival), none is less than the one "
        "before it.",
        "LONGEST_RISE(i)",
    ),
    _length(
        "longest_fall",
        "How many values the longest run has in which, by (ts, arrival), none is greater than the "
        "one before it.",
        "LONGEST_FALL(k)",
    ),
    _end(
        "rise_start",
        f"rise_start(value, x): value of the row with which the longest rise begins, {_OTHERS}",
        "RISE_START(t, f)",
        "RISE_START(k, k)",
    ),
    _end(
        "rise_end",
        f"rise_end(value, x): value of the row with which the longest rise ends, {_OTHERS}",
    ),
    _end(
        "fall_start",
        f"fall_start(value, x): value of the row with which the longest fall begins, {_OTHERS}",
    ),
    _end(
        "fall_end",
        f"fall_end(value, x): value of the row with which the longest fall ends, {_OTHERS}",
    ),
)
