"""The shapes that rules take.  Each shape makes the method that lark calls with all parts of a
rule.

A part is a token, a node, a tuple of nodes, or None for an optional part that is absent.  A place
(`Pos`) is where the first part begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from lark import Token

from dsms.sql import ast
from dsms.sql.ast import Pos

Parts = list[Any]
Rule = Callable[[Any, Parts], Any]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a statement or a window: what it says, its value (True if it has none), its
    place."""

    name: str
    value: Any
    pos: Pos


def place(part: Any) -> Pos | None:
    """Where a part begins."""
    if isinstance(part, Token):
        return Pos(part.line or 0, part.column or 0)
    if isinstance(part, tuple):
        return place_of(part)
    return getattr(part, "pos", None)


def place_of(parts: Parts | tuple[Any, ...]) -> Pos:
    """Where the first of the parts begins."""
    return next((p for p in map(place, parts) if p is not None), ast.NOWHERE)


def values(parts: Parts) -> list[Any]:
    """The parts without tokens."""
    return [p for p in parts if type(p) is not Token]


def node(make: Callable[..., Any], **fixed: Any) -> Rule:
    """A node whose fields are the parts in order, tokens left out."""

    def build(self: Any, parts: Parts) -> Any:
        return make(*values(parts), pos=place_of(parts), **fixed)

    return build


def rule(method: Callable[..., Any]) -> Rule:
    """A method that wants its place and its parts without tokens."""

    @wraps(method)
    def build(self: Any, parts: Parts) -> Any:
        return method(self, place_of(parts), *values(parts))

    return build


def token_rule(*kept: str) -> Callable[[Callable[..., Any]], Rule]:
    """A method that also wants the tokens of the kinds `kept`."""

    def decorate(method: Callable[..., Any]) -> Rule:
        @wraps(method)
        def build(self: Any, parts: Parts) -> Any:
            chosen = [p for p in parts if type(p) is not Token or p.type in kept]
            return method(self, place_of(parts), *chosen)

        return build

    return decorate


def clause(name: str) -> Rule:
    """A rule that is one clause of a statement or window."""

    def build(self: Any, parts: Parts) -> Clause:
        found = values(parts)
        return Clause(name, found[0] if found else True, place_of(parts))

    return build


def constant(value: Any) -> Rule:
    """A rule whose words say only one thing."""

    def build(self: Any, parts: Parts) -> Any:
        return value

    return build


def only(self: Any, parts: Parts) -> Any:
    """A rule around one part."""
    return values(parts)[0]


def word(self: Any, parts: Parts) -> str:
    """A rule of one token: its kind."""
    return parts[0].type


def listed(self: Any, parts: Parts) -> tuple[Any, ...]:
    """A rule that lists parts between tokens."""
    return tuple(values(parts))
