"""Statistics of streams and tables for the choice of a plan, and defaults where there are none.

The engine fills `Statistics` from running sketches; a new stream has none, so every figure has a
default, written here once with its reason.  Selectivities of predicates without hints are those of
Selinger et al. 1979 (System R).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.plan.exprs import COMPARISONS, MIRRORED
from dsms.sql.catalog import StreamDef, TableDef
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import Kind

RATE = 1.0  # rows/s of a stream: one tuple per link and time unit (Golab 2006, §3.6.1)
DISTINCT = 100.0  # values of a column at once; BOOL has 2
TABLE_ROWS = 1000.0
TABLE_CHANGES = 0.01  # inserts, updates and deletes of a table per second: metadata changes rarely
# seconds for which what never dies is counted, so that unbounded inputs can be compared
HORIZON = 3600.0

EQUAL = 0.1  # column = value, when the number of distinct values is of no help
RANGE = 1 / 3  # <, <=, >, >=
LIKE = 0.1
NULLS = 0.05
OTHER = 1 / 3

Key = tuple[str, int]  # (name of a stream or table, column)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of a column of an edge.

    distinct  number of different values that come (a small window holds fewer);  nulls  share of
              rows without a value
    common    (value, share of rows) of the most common ones;  origin  the declared column that it
              is, if it is one
    """

    distinct: float = DISTINCT
    common: tuple[tuple[object, float], ...] = ()
    nulls: float = NULLS
    origin: Key | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Measured figures by declared name; whatever is missing takes its default.

    rates     rows/s of streams;  rows, changes  size of tables and their changes/s
    distinct  different values of a column, lately
    common    (value, share) of the most common values;  nulls  share of NULLs
    overlaps  share of the first column's values that also occur in the second one, by pair of
              columns
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[Key, float] = field(default_factory=dict)
    common: Mapping[Key, tuple[tuple[object, float], ...]] = field(default_factory=dict)
    nulls: Mapping[Key, float] = field(default_factory=dict)
    overlaps: Mapping[tuple[Key, Key], float] = field(default_factory=dict)

    def rate(self, stream: StreamDef) -> float:
        """Rows per second, above zero."""
        return max(1e-6, self.rates.get(stream.address, RATE))

    def table(self, table: TableDef) -> tuple[float, float]:
        """(rows, changes per second) of a table."""
        return max(1.0, self.rows.get(table.address, TABLE_ROWS)), max(
            0.0, self.changes.get(table.address, TABLE_CHANGES)
        )

    def columns(self, declared: StreamDef | TableDef) -> tuple[ColumnStatistics, ...]:
        """What is known of the declared columns.  A primary key of one column has as many values as
        rows."""
        unique = declared.key if isinstance(declared, TableDef) and len(declared.key) == 1 else ()
        out = []
        for i, field_ in enumerate(declared.schema):
            usual = 2.0 if field_.type.kind is Kind.BOOL else DISTINCT
            if i in unique:
                assert isinstance(declared, TableDef)
                usual = self.table(declared)[0]
            out.append(self._column((declared.address, i), usual))
        return tuple(out)

    def _column(self, key: Key, usual: float) -> ColumnStatistics:
        distinct = max(1.0, self.distinct.get(key, usual))
        return ColumnStatistics(distinct, self.common.get(key, ()), self.nulls.get(key, NULLS), key)

    def overlap(self, left: ColumnStatistics, right: ColumnStatistics) -> float:
        """Share of the left column's values that also occur on the right.

        Measured if it is; else by containment of value sets (Golab 2006, §5.3): the smaller set
        lies in the larger.
        """
        if left.origin is not None and right.origin is not None:
            known = self.overlaps.get((left.origin, right.origin))
            if known is not None:
                return known
        return min(1.0, right.distinct / left.distinct)


def column_of(expr: Expr, columns: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """What is known of an expression's values: of a column all, of a constant that it is one, else
    a guess."""
    match expr:
        case Col():
            return columns[expr.index]
        case Lit():
            return ColumnStatistics(1.0, ((expr.value, 1.0),), float(expr.value is None))
        case Call(fn="cast" | "try_cast"):
            return replace(column_of(expr.args[0], columns), common=(), origin=None)
        case _:
            parts = [column_of(a, columns).distinct for a in expr.args]
            return ColumnStatistics(2.0 if expr.type.kind is Kind.BOOL else max(parts, default=1.0))


def selectivity(predicate: Expr | None, columns: Sequence[ColumnStatistics]) -> float:
    """Share of rows for which the predicate is true, 0..1; conditions count as independent."""
    match predicate:
        case None:
            return 1.0
        case Lit():
            return 1.0 if predicate.value is True else 0.0
        case Col():
            return _equal(column_of(predicate, columns), True)
        case Call(fn="and"):
            share = 1.0
            for part in predicate.args:
                share *= selectivity(part, columns)
            return share
        case Call(fn="or"):
            none = 1.0
            for part in predicate.args:
                none *= 1 - selectivity(part, columns)
            return 1 - none
        case Call(fn="not"):
            return 1 - selectivity(predicate.args[0], columns)
        case _:
            return _condition(predicate, columns)


def _condition(call: Call, columns: Sequence[ColumnStatistics]) -> float:
    if call.fn in COMPARISONS:
        return _comparison(call, columns)
    match call.fn:
        case "is_null" | "is_not_null":
            nulls = column_of(call.args[0], columns).nulls
            return nulls if call.fn == "is_null" else 1 - nulls
        case "in":
            first = column_of(call.args[0], columns)
            return min(
                1.0,
                sum(_equal(first, e.value) if isinstance(e, Lit) else EQUAL for e in call.args[1:]),
            )
        case "like":
            return LIKE
        case _:
            return OTHER


def _comparison(call: Call, columns: Sequence[ColumnStatistics]) -> float:
    left, right = call.args
    fn = call.fn
    if isinstance(left, Lit):
        left, right, fn = right, left, MIRRORED[fn]
    if fn not in ("eq", "ne"):
        return _drawn(left, fn, right)
    column = column_of(left, columns)
    if isinstance(right, Lit):
        share = _equal(column, right.value)
    else:
        share = 1 / max(column.distinct, column_of(right, columns).distinct)
    return share if fn == "eq" else 1 - share


def _drawn(left: Expr, fn: str, right: Expr) -> float:
    """Of a sample, the share that it draws; else what ranges draw on the average."""
    match left, fn, right:
        case Call(fn="hash"), "lt", Lit(value=int(limit)):
            return (limit + 2**63) / 2**64
    return RANGE


def _equal(column: ColumnStatistics, value: object) -> float:
    """Share of rows with that value: as hinted; else what the common values leave, spread over the
    others."""
    if value is None:
        return 0.0
    for known, share in column.common:
        if known == value:
            return share
    rest = max(0.0, 1 - sum(share for _, share in column.common))
    return min(1.0, rest / max(1.0, column.distinct - len(column.common)))
