"""SELECT blocks and what they are made of, and the expressions that hold queries or windows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from dsms.sql.nodes.base import Duration, Ident, Node
from dsms.sql.nodes.expressions import ColumnRef, Expr, FuncCall
from dsms.sql.nodes.windows import Slide, Window


class OutputKind(StrEnum):
    ISTREAM = "Istream"
    DSTREAM = "Dstream"
    RSTREAM = "Rstream"
    WSTREAM = "Wstream"


@dataclass(frozen=True, slots=True)
class Output(Node):
    """The relation-to-stream function around the select list.

    `restore`: the -restore form.  `window`: given for Wstream, and only there.  Dstream-restore is
    not in the grammar; Wstream-restore is, so that the binder can say why it has no meaning.
    """

    kind: OutputKind
    restore: bool = False
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    expr: Expr
    alias: Ident | None = None


@dataclass(frozen=True, slots=True)
class StarItem(Node):
    """``*`` or ``t.*``"""

    table: Ident | None = None


@dataclass(frozen=True, slots=True)
class Sample(Node):
    """``SAMPLE 1 PERCENT BY src``: a share of the rows before it, drawn by the hash of some
    columns, without `by` of all."""

    percent: Decimal
    by: tuple[ColumnRef, ...] = ()


@dataclass(frozen=True, slots=True)
class FromItem(Node):
    """Base of what may stand in FROM."""


@dataclass(frozen=True, slots=True)
class TableRef(FromItem):
    """A stream, table or registered query by name.  `archive`: ``FROM ARCHIVE s``, the archived
    part alone."""

    name: Ident
    alias: Ident | None = None
    window: Window | None = None
    archive: bool = False
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class SubqueryRef(FromItem):
    """``(SELECT ...) [window] [alias]``; the alias may be missing, as in the thesis.  `lateral`:
    ``LATERAL (SELECT ...) alias (columns)``, which sees what stands before it."""

    query: Query
    alias: Ident | None = None
    window: Window | None = None
    sample: Sample | None = None
    lateral: bool = False
    columns: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class UnnestRef(FromItem):
    """``UNNEST(list) [WITH ORDINALITY] [alias [(columns)]]``: the items of a list of each row that
    stands before it in FROM."""

    items: Expr
    ordinality: bool = False
    alias: Ident | None = None
    columns: tuple[Ident, ...] = ()


class JoinKind(StrEnum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    CROSS = "CROSS"
    SEMI = "SEMI"
    ANTI = "ANTI"
    ASOF = "ASOF"
    ASOF_LEFT = "ASOF LEFT"


@dataclass(frozen=True, slots=True)
class Join(FromItem):
    """`on` or `using` is given, except for CROSS, which has neither, and NATURAL, which uses the
    columns that both sides have.  `within`: how old the row may be that ASOF finds; None: of any
    age."""

    kind: JoinKind
    left: FromItem
    right: FromItem
    on: Expr | None = None
    using: tuple[Ident, ...] = ()
    natural: bool = False
    within: Duration | None = None


class StepKind(StrEnum):
    ONE = "one"
    MANY = "many"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MatchStep(Node):
    """A step of a pattern: ``b s`` is one row of s, ``b+ s`` one or more, ``NOT b s`` none.  The
    name of the step is the alias of `source`.  `calls`: aggregates over its rows, which the binder
    finds in the block."""

    kind: StepKind
    source: TableRef | SubqueryRef
    calls: tuple[FuncCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Match(FromItem):
    """``MATCH (a s, NOT u s, b t) [RANGE 5 s] PER k``: rows one after the other.  `per`: columns of
    every step in which all rows of a match are equal; `skip`: SKIP PAST LAST."""

    steps: tuple[MatchStep, ...]
    window: Window | None = None
    per: tuple[ColumnRef, ...] = ()
    skip: bool = False


@dataclass(frozen=True, slots=True)
class GroupingSets(Expr):
    """``GROUPING SETS ((a, b), (a), ())``, which ROLLUP and CUBE are short for: rows are grouped by
    each of them; found in GROUP BY alone."""

    sets: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Select(Node):
    """One SELECT block.  `distinct` also when written inside: ``Rstream(DISTINCT a)``.

    `from_` is empty for ``SELECT 1``.  `window` is the final ``WINDOW t``: it applies to every
    stream of the FROM list.  `qualify` looks at values of OVER.  `distinct_on`: of which keys one
    row each is meant.  `windows`: what names behind OVER mean.
    """

    items: tuple[SelectItem | StarItem, ...]
    from_: tuple[FromItem, ...] = ()
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    output: Output | None = None
    window: Window | None = None
    qualify: Expr | None = None
    distinct_on: tuple[Expr, ...] = ()
    windows: tuple[NamedWindow, ...] = ()


class SetOpKind(StrEnum):
    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True, slots=True)
class SetOp(Node):
    """INTERSECT binds tighter than UNION and EXCEPT, which are left-associative.

    An operand is a `Query` only if it is parenthesised and has its own ORDER BY or LIMIT.
    """

    kind: SetOpKind
    left: Select | SetOp | Query
    right: Select | SetOp | Query
    all: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    """`nulls_first` None: as by default (NULLs last)."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    """``CURRENT ROW``, where `current`; else `size` rows, or a length, PRECEDING or (`following`)
    FOLLOWING; None: UNBOUNDED."""

    size: Duration | int | None = None
    current: bool = False
    following: bool = False


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """``ROWS start``, ``RANGE BETWEEN start AND end``; `rows`: it counts them."""

    rows: bool
    start: FrameBound
    end: FrameBound | None = None


@dataclass(frozen=True, slots=True)
class Over(Expr):
    """``SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS 5 PRECEDING)``; `window`: what it adds to,
    as in ``OVER w`` and ``OVER (w ROWS 5 PRECEDING)``."""

    call: FuncCall
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    window: Ident | None = None


@dataclass(frozen=True, slots=True)
class NamedWindow(Node):
    """``WINDOW w AS (PARTITION BY k ORDER BY ts)``; `window`: an earlier one that it adds to."""

    name: Ident
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    window: Ident | None = None


@dataclass(frozen=True, slots=True)
class Per(Node):
    """``PER k, l`` behind LIMIT: of which keys so many rows each are meant; none in ``PER ()``,
    which is all rows together.

    `of_rows`: names in it, and in ORDER BY, are columns of FROM before they are those of the select
    list, as in OVER (PARTITION BY k ORDER BY x)."""

    keys: tuple[Expr, ...] = ()
    of_rows: bool = False


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A whole query: what stands in CREATE QUERY, in a subquery, and as a statement.

    `every`: ``EVERY d`` at its end, the boundaries that belong to the query.  `per`: LIMIT counts
    the rows of each of these keys."""

    body: Select | SetOp | Query
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int | None = None
    every: Slide | None = None
    per: Per | None = None

    @property
    def plain(self) -> bool:
        """Whether it is nothing but its body."""
        return not self.order_by and self.limit is self.offset is self.every is None


@dataclass(frozen=True, slots=True)
class InQuery(Expr):
    operand: Expr
    query: Query
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """``operand > ALL (SELECT ...)``, or ANY, whose other name is SOME."""

    op: str
    operand: Expr
    all: bool
    query: Query


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    query: Query


@dataclass(frozen=True, slots=True)
class ScalarQuery(Expr):
    """``(SELECT MAX(a) FROM s)`` as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class WstreamArg(Expr):
    """``Wstream(SUM(a))[ROWS 10]`` as the argument of an aggregate (thesis §3.4); found nowhere
    else."""

    operand: Expr
    window: Window
