"""What is true of an aggregate, wherever it runs: its meaning, its types, and the traits that
others ask for.

Cards are plain data, and light: the binder reads them before anything is computed.  How an
aggregate is computed stands in the file of its family beside this one (`registry` finds it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dsms.sql.signatures import FunctionError, Match, Overload, Types
from dsms.sql.types import NESTED, Kind, Type, list_of

# What an aggregate needs to know of an argument.  word: values in order (or codes with ranks);
# code: values, in any order;  wide: a number of up to two words;  valid: only whether it is NULL
Form = Literal["word", "code", "wide", "valid"]


@dataclass(frozen=True, slots=True)
class Card:
    """An aggregate.

    overloads  its types, without the constants
    distinct   whether DISTINCT may stand before the argument
    params     names of its trailing constant arguments, which travel in `AggCall.params`; the last
               of them may be left out and are then `defaults`

    Traits:

    forms      what it needs to know of each argument; the last one counts for all further ones
    total      it has an answer over no values, too (COUNT: 0); all others are NULL there
    blind      to duplicates: DISTINCT changes nothing
    ordered    it goes by the ages of rows: which of two is older
    listing    ORDER BY may say in which order it goes; its keys are arguments behind the first
    equal      it asks of the values of its first argument no more than whether they are equal, so
               they may be lists
    opaque     it asks nothing of the values of its arguments, so any of them may be lists
    picks      its answer is one of the values of its first argument
    invertible what is left of a whole without a part is known from the two, exactly; if it isn't,
    nothing subtracts
    sampled    it is put together from summaries of sub-windows and can't follow single rows
    drawn      its last argument, unsaid, is the hash of all columns of FROM
    windowed   its guarantee is one over the sub-windows of a window, so no other cut of the rows
               will do
    in_sql     a database's aggregate of that name is exactly ours ("same": unless the answer is a
               FLOAT), or is where it adds up wider than its result ("wide")

    What a synopsis keeps of a sub-window (a cell) may answer more than one aggregate over the same
    argument:

    shared     cells of one aggregate of its family answer the others of it
    counting   its cells know how many values there are
    tallied    its cells know how often each value occurs, in order
    ranked     it asks for values by rank; its cells over DISTINCT values have these in order

    warm       calls, over the columns k STRING, i INT, f FLOAT, d DECIMAL(38,2), o BOOL, t
               TIMESTAMP, that make ready all kernels which are its own (`dsms.warmup`)
    """

    name: str
    doc: str
    overloads: tuple[Overload, ...]
    aliases: tuple[str, ...] = ()
    distinct: bool = True
    params: tuple[str, ...] = ()
    defaults: tuple[object, ...] = ()
    forms: tuple[Form, ...] = ("word",)
    total: bool = False
    blind: bool = False
    ordered: bool = False
    listing: bool = False
    equal: bool = False
    opaque: bool = False
    picks: bool = False
    invertible: bool = False
    sampled: bool = False
    drawn: bool = False
    windowed: bool = False
    in_sql: Literal["", "same", "wide"] = ""
    shared: bool = False
    counting: bool = False
    tallied: bool = False
    ranked: bool = False
    warm: tuple[str, ...] = ()
    family: str = ""  # the name of its file among the cards and beside this one

    def signatures(self) -> tuple[str, ...]:
        return tuple(f"{self.name}{o.text}" for o in self.overloads)


def of_decimal(text: str, result: Callable[[Type], Type]) -> Overload:
    """An overload for a DECIMAL of any size."""

    def match(args: Types) -> Match | None:
        return (
            Match(args, result(args[0]))
            if len(args) == 1 and args[0].kind is Kind.DECIMAL
            else None
        )

    return Overload(text, match)


def items(args: Types) -> Type:
    """The list of values of the first argument.  FunctionError `nested`: these are lists."""
    if args[0].kind in NESTED:
        raise FunctionError("nested", "a list can't hold lists")
    return list_of(args[0])


def of_any(text: str, result: Type) -> Overload:
    """An overload for one argument of any type, as it is."""
    return Overload(text, lambda args: Match(args, result) if len(args) == 1 else None)
