"""What every node is, names, types, times, and how to walk a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Pos:
    """A place in the text; both count from 1."""

    line: int
    column: int


NOWHERE = Pos(0, 0)


@dataclass(frozen=True, slots=True)
class Within(Pos):
    """The place of a call of a function of one's own, for what its text puts there: `text` is that
    of the function called `name`, `inside` the place in it."""

    name: str = ""
    text: str = ""
    inside: Pos = NOWHERE


@dataclass(frozen=True, slots=True)
class Node:
    """Base of everything: knows its place."""

    pos: Pos = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name as written.  Unquoted names match in any case, quoted ones exactly."""

    text: str
    quoted: bool = False

    def matches(self, declared: str) -> bool:
        """Does this name mean the thing declared as `declared`?"""
        return self.text == declared if self.quoted else self.text.casefold() == declared.casefold()


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as written, upper case: ``DECIMAL(10,2)`` is name DECIMAL, args (10, 2), and
    ``LIST(INT)`` or ``INT[]`` name LIST, item INT, ``STRUCT(a INT)`` name STRUCT, fields a INT.
    Known names: dsms.sql.types."""

    name: str
    args: tuple[int, ...] = ()
    item: TypeName | None = None
    fields: tuple[FieldName, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldName(Node):
    """``a INT`` in ``STRUCT(a INT)``"""

    name: Ident
    type: TypeName


class Unit(StrEnum):
    """Units of duration, coarsest last.  DAY and longer are calendar units under TIME ZONE; MONTH
    and YEAR always."""

    MICROSECOND = "us"
    MILLISECOND = "ms"
    SECOND = "s"
    MINUTE = "min"
    HOUR = "h"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A length of time.  `micros` for units up to WEEK (then months is 0), `months` for MONTH and
    YEAR (micros is 0).

    `unit` is the one written, or the next finer one that divides the length (1.5 h is 90 min).
    """

    micros: int
    unit: Unit = Unit.SECOND
    months: int = 0


@dataclass(frozen=True, slots=True)
class Instant(Node):
    """A moment: microseconds since the epoch, UTC."""

    micros: int


_PARTS: dict[type[Node], tuple[str, ...]] = {}  # the field names of a kind of node


def _parts(node: Node) -> tuple[str, ...]:
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(node) if f.name != "pos")
    return _PARTS[kind]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below `node`, in field order."""
    for name in _parts(node):
        item = getattr(node, name)
        if isinstance(item, Node):
            yield item
        elif type(item) is tuple:
            yield from _members(item)


def _members(items: tuple[object, ...]) -> Iterator[Node]:
    for item in items:
        if isinstance(item, Node):
            yield item
        elif type(item) is tuple:  # rows of VALUES
            yield from _members(item)


def walk(node: Node) -> Iterator[Node]:
    """`node` and all below it, parents first, without recursion."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(list(children(item))))
