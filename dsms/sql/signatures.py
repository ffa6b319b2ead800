"""How functions are typed: conversions, overloads, and the choice among them.

Implicit conversions: NULL to anything, INT to DECIMAL(19,0) or FLOAT, DECIMAL to FLOAT, between
DECIMALs of other precision, and DATE to TIMESTAMP (its midnight).  Everything else needs a CAST
(STRING against INT is an error), except that `||` makes text of its partner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dsms.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Kind,
    Type,
    decimal,
    list_of,
    struct_of,
)

MAX_DIGITS = 38
INT_DIGITS = 19  # digits of the widest INT: how an INT stands beside a DECIMAL

Types = tuple[Type, ...]


@dataclass(eq=False)
class FunctionError(Exception):
    """No such function (`unknown`), no overload for these types (`types`), a bad constant
    (`constant`; `zone`, with its `hint`), DISTINCT where there can be none (`distinct`), or a list
    in a list (`nested`).

    The binder adds the place and the nearest name; `candidates` are signatures, `position` is the
    argument at fault.
    """

    kind: Literal["unknown", "types", "constant", "zone", "distinct", "nested"]
    message: str
    candidates: tuple[str, ...] = ()
    position: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Match:
    """A fitting overload: what each argument must become, the result, and how far the arguments had
    to bend."""

    targets: Types
    type: Type
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature: its text, and the rule that fits argument types to it."""

    text: str
    match: Callable[[Types], Match | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator.

    `doc` is its exact meaning.  A NULL argument gives NULL unless `nulls` says otherwise.
    `constants` names the arguments that must be constant, with the check each must pass.
    """

    name: str
    doc: str
    overloads: tuple[Overload, ...]
    aliases: tuple[str, ...] = ()
    nulls: str = "NULL if an argument is NULL"
    constants: dict[int, str] = field(default_factory=dict)

    def signatures(self) -> tuple[str, ...]:
        """`name(types) -> type`, one text per overload."""
        return tuple(f"{self.name}{o.text}" for o in self.overloads)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The function to call, the cast each argument needs (None: none), and the type of the
    result."""

    fn: str
    casts: tuple[Type | None, ...]
    type: Type


def digits(t: Type) -> Type:
    """The DECIMAL as which a DECIMAL, INT or NULL stands beside DECIMALs."""
    if t.kind is Kind.DECIMAL:
        return t
    return decimal(INT_DIGITS if t.kind is Kind.INT else 1, 0)


def common_type(a: Type, b: Type) -> Type | None:
    """The type in which values of both can stand in one column; None if there is none.

    DECIMALs take the larger scale and as many whole digits as 38 digits leave room for.
    """
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.item is not None and b.item is not None:
        item = common_type(a.item, b.item)
        return None if item is None else list_of(item)
    if a.fields and b.fields:
        return _common_fields(a, b)
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if not (a.numeric and b.numeric):
        return None
    if FLOAT in (a, b):
        return FLOAT
    x, y = digits(a), digits(b)
    scale = max(x.scale, y.scale)
    whole = max(x.precision - x.scale, y.precision - y.scale)
    return decimal(min(MAX_DIGITS, whole + scale), scale)


def same_names(a: Type, b: Type) -> bool:
    """Whether two STRUCTs have fields of the same names, in any case, in the same order."""
    return [n.casefold() for n, _ in a.fields] == [n.casefold() for n, _ in b.fields]


def _common_fields(a: Type, b: Type) -> Type | None:
    if not same_names(a, b):
        return None
    found = [
        (name, common_type(x, y)) for (name, x), (_, y) in zip(a.fields, b.fields, strict=True)
    ]
    known = [(name, type_) for name, type_ in found if type_ is not None]
    return struct_of(known) if len(known) == len(found) else None


def common_of(types: Sequence[Type]) -> Type | None:
    """`common_type` of several (at least one)."""
    found: Type | None = types[0]
    for t in types[1:]:
        found = None if found is None else common_type(found, t)
    return found


def bend(have: Type, want: Type) -> int | None:
    """How far an argument bends to be taken as `want` implicitly: 0 as it is, None not at all."""
    if have == want:
        return 0
    if have.kind is Kind.NULL:
        return 1
    if have.item is not None and want.item is not None:
        return bend(have.item, want.item)
    if have.fields and want.fields:
        inside = [t for _, t in have.fields], [t for _, t in want.fields]
        return bends(*inside) if same_names(have, want) else None
    if want.kind is Kind.FLOAT and have.numeric:
        return 3 if have.kind is Kind.INT else 2
    if want.kind is Kind.DECIMAL and have.kind in (Kind.INT, Kind.DECIMAL):
        return 1
    if want == TIMESTAMP and have == DATE:
        return 1
    return None


def bends(have: Sequence[Type], want: Sequence[Type]) -> int | None:
    """The sum over all arguments; None if one doesn't bend."""
    costs = [bend(h, w) for h, w in zip(have, want, strict=True)]
    return None if any(c is None for c in costs) else sum(c for c in costs if c is not None)


_CASTS: dict[Kind, tuple[Kind, ...]] = {
    Kind.BOOL: (Kind.INT, Kind.STRING),
    Kind.INT: (Kind.BOOL, Kind.FLOAT, Kind.DECIMAL, Kind.STRING),
    Kind.FLOAT: (Kind.INT, Kind.DECIMAL, Kind.STRING),
    Kind.DECIMAL: (Kind.INT, Kind.FLOAT, Kind.STRING),
    Kind.STRING: tuple(k for k in Kind if k is not Kind.NULL),
    Kind.LIST: (Kind.STRING,),
    Kind.STRUCT: (Kind.STRING,),
    Kind.BYTES: (Kind.STRING,),
    Kind.TIMESTAMP: (Kind.STRING, Kind.DATE, Kind.TIME),
    Kind.INTERVAL: (Kind.STRING,),
    Kind.DATE: (Kind.STRING, Kind.TIMESTAMP),
    Kind.TIME: (Kind.STRING,),
    Kind.UUID: (Kind.STRING,),
    Kind.NULL: tuple(k for k in Kind),
}


def castable(source: Type, target: Type) -> bool:
    """Whether CAST(source AS target) exists (a value may still fail)."""
    if source.item is not None and target.item is not None:
        return castable(source.item, target.item)
    if source.fields and target.fields:
        pairs = zip(source.fields, target.fields, strict=True)
        return same_names(source, target) and all(castable(a, b) for (_, a), (_, b) in pairs)
    return source.kind is target.kind or target.kind in _CASTS[source.kind]


# Signature texts: "STRING, INT -> STRING"; T is one type common to all its places; a last "T..." is
# one or more.

_PLAIN = (BOOL, INT, FLOAT, STRING, BYTES, TIMESTAMP, INTERVAL, DATE, TIME, UUID)
_NAMED = {t.kind.value: t for t in _PLAIN}


def overload(text: str) -> Overload:
    """The overload that a signature text describes."""
    left, _, result = (part.strip() for part in text.partition("->"))
    names = [n.strip() for n in left.split(",")] if left else []
    shown = f"({', '.join(names)}) -> {result}"
    more = bool(names) and names[-1].endswith("...")
    if more:
        names[-1] = names[-1][:-3]

    def match(args: Types) -> Match | None:
        if len(args) != len(names) and not (more and len(args) > len(names)):
            return None
        places = names + names[-1:] * (len(args) - len(names))
        return _fit(places, args, result)

    return Overload(shown, match)


def _fit(places: list[str], args: Types, result: str) -> Match | None:
    shared = [a for p, a in zip(places, args, strict=True) if p == "T"]
    common = common_of(shared) if shared else NULL
    if common is None:
        return None
    if common is NULL and result != "T":
        common = INT  # all of them NULL: any type does
    wanted = tuple(common if p == "T" else _NAMED[p] for p in places)
    cost = bends(args, wanted)
    return (
        None if cost is None else Match(wanted, common if result == "T" else _NAMED[result], cost)
    )


def texts(*signatures: str | Overload) -> tuple[Overload, ...]:
    """Overloads from signature texts, others passed through."""
    return tuple(overload(s) if isinstance(s, str) else s for s in signatures)


def choose(
    name: str, overloads: Sequence[Overload], args: Sequence[Type], shown: Sequence[str]
) -> Match:
    """The overload that bends the arguments least (the earlier one on a tie)."""
    fits = [m for o in overloads if (m := o.match(tuple(args))) is not None]
    if fits:
        return min(fits, key=lambda m: m.cost)
    given = ", ".join(str(a) for a in args)
    raise FunctionError(
        "types", f"{name}({given}) does not exist; there is {'; '.join(shown)}", tuple(shown)
    )


def casts(args: Sequence[Type], targets: Sequence[Type]) -> tuple[Type | None, ...]:
    """The cast that each argument needs."""
    return tuple(None if a == t else t for a, t in zip(args, targets, strict=True))
