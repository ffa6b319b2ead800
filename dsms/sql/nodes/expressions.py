"""Expressions."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.nodes.base import Duration, Ident, Node, TypeName


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """Base of expressions."""


@dataclass(frozen=True, slots=True)
class IntLit(Expr):
    """Fits in 64 bits (the parser checks), sign included."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatLit(Expr):
    """``1.5``, ``1e3``: plain decimals are FLOAT; always finite."""

    value: float


@dataclass(frozen=True, slots=True)
class DecimalLit(Expr):
    """``DECIMAL '1.50'``: exact, scale kept; `text` is [-]digits[.digits] without leading zeros, at
    most 38 digits."""

    text: str


@dataclass(frozen=True, slots=True)
class StringLit(Expr):
    value: str


@dataclass(frozen=True, slots=True)
class BytesLit(Expr):
    """``X'ff00'``"""

    value: bytes


@dataclass(frozen=True, slots=True)
class BoolLit(Expr):
    value: bool


@dataclass(frozen=True, slots=True)
class NullLit(Expr):
    pass


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """``?`` in a query ON LOOKUP: the `number`-th value of LOOKUP, from 1 on.

    mark  what stands for a value in a text that is only looked at, to say what is wrong with it or
          how it is said here: there it has no number (0)"""

    number: int
    mark: str = "?"


@dataclass(frozen=True, slots=True)
class IntervalLit(Expr):
    """``INTERVAL '5' MINUTE``; may be negative; never MONTH or YEAR (INTERVAL counts
    microseconds)."""

    duration: Duration


@dataclass(frozen=True, slots=True)
class TimestampLit(Expr):
    """``TIMESTAMP '2013-01-01 00:00:00'`` (UTC unless an offset is written)."""

    micros: int


@dataclass(frozen=True, slots=True)
class TypedLit(Expr):
    """``DATE '2013-01-31'``, ``TIME '12:30:00'``, ``UUID '...'``: the type, and its value as it is
    kept (`dsms.typed_texts`)."""

    type: str
    value: int | str


@dataclass(frozen=True, slots=True)
class ColumnRef(Expr):
    """``a`` or ``s.a``"""

    name: Ident
    table: Ident | None = None


@dataclass(frozen=True, slots=True)
class Negate(Expr):
    """Unary minus; never over a bare non-negative number (that is a negative literal)."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`op`: + - * / % ||"""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """`op`: = <> < <= > >="""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    """Two or more operands: ``a AND b AND c`` is one node."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Two or more operands."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """``NOT x``, also of EXISTS; NOT IN, NOT LIKE, NOT BETWEEN, IS NOT are flags of their nodes."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsBool(Expr):
    """``x IS [NOT] TRUE|FALSE|UNKNOWN``"""

    operand: Expr
    value: bool | None  # None: UNKNOWN
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Expr):
    """``left IS [NOT] DISTINCT FROM right``: comparison in which NULL equals NULL."""

    left: Expr
    right: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RowExpr(Expr):
    """``(a, b)``, two or more items: the left side of IN, or a member of its list."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """`any_case`: ILIKE."""

    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """``CASE [operand] WHEN .. THEN .. [ELSE ..] END``; with an operand each condition is a value
    to equal it."""

    whens: tuple[When, ...]
    operand: Expr | None = None
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """``CAST(x AS type)`` and ``x::type``"""

    operand: Expr
    type: TypeName


@dataclass(frozen=True, slots=True)
class FuncCall(Expr):
    """Scalar functions and aggregates alike.  `star`: ``COUNT(*)`` (args is then empty).

    ``EXTRACT(HOUR FROM t)`` is the call EXTRACT('hour', t).  `to`: the type behind AS, as in
    ``TRY_CAST(x AS INT)``.  `order_by`: of an aggregate that lists its rows; OrderItems.
    """

    name: Ident
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    star: bool = False
    filter: Expr | None = None
    to: TypeName | None = None
    order_by: tuple[Node, ...] = ()

    @property
    def odd(self) -> str | None:
        """What stands in it that has a meaning in aggregates alone."""
        if self.star:
            return "*"
        if self.distinct:
            return "DISTINCT"
        if self.filter is not None:
            return "FILTER"
        return "ORDER BY" if self.order_by else None
