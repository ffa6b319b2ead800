"""Aggregates in Python, as calls of them are kept."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import Match, Overload, Types
from dsms.sql.types import FLOAT

PYTHON_AGGREGATE = "python_aggregate"


def _any(args: Types) -> Match | None:
    return Match(args, FLOAT) if args else None  # the constant `result` says which


CARDS = (
    Card(
        PYTHON_AGGREGATE,
        "python_aggregate(x, ..., place, result): what the class at module:name gives for the rows "
        "without NULL, as the type that `result` names; NULL over no such rows.  CREATE AGGREGATE "
        "... AS PYTHON makes calls of it.",
        (Overload("(any, ...) -> result", _any),),
        distinct=False,
        params=("place", "result"),
        forms=("code",),
        ordered=True,
        opaque=True,
    ),
)
