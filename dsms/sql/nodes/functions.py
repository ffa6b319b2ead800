"""Functions and aggregates of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsms.sql.nodes.base import Ident, Node, TypeName
from dsms.sql.nodes.expressions import Expr
from dsms.sql.nodes.statements import FunctionKind, Statement


@dataclass(frozen=True, slots=True)
class ParameterDef(Node):
    """``x INT``"""

    name: Ident
    type: TypeName


@dataclass(frozen=True, slots=True)
class PythonSource(Expr):
    """``PYTHON 'module:name' ['fingerprint']``: where the function is found; the SHA-256 of its
    source, as a definition that is read back has it."""

    place: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class CreateFunction(Statement):
    """``CREATE AGGREGATE|FUNCTION f(x INT, ...) [RETURNS type] AS body``

    `body`: an expression, or a `PythonSource`; `or_replace`: it takes the place of one of that name
    and kind, if there is one"""

    kind: FunctionKind
    name: Ident
    parameters: tuple[ParameterDef, ...]
    body: Expr
    returns: TypeName | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropFunction(Statement):
    """``DROP AGGREGATE|FUNCTION [IF EXISTS] f``"""

    kind: FunctionKind
    name: Ident
    if_exists: bool = False


@dataclass(slots=True)
class Given:
    """What comes to light of an argument.

    size  nodes of its tree
    cast  whether it must be cast to become its parameter; None: it was not bound yet
    """

    size: int = 1
    cast: bool | None = None


@dataclass(frozen=True, slots=True)
class Argument(Expr):
    """What a call gives for a parameter, where the text of the function has that.  The parser makes
    none: as text it is a CAST to the type of the parameter, or the operand alone, where that is
    known to be of this type.  `function`: what is called, as messages show it."""

    operand: Expr
    type: TypeName
    function: str
    given: Given = field(compare=False, repr=False)
