"""Joins in SQL.

Keys that are not exact there are computed before; other conditions that are not are tried on the
pairs that the keys leave, and what has no pair is found by the rows' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dsms.oneshot.dialect import Dialect
from dsms.oneshot.relation import Bound, Op, Pick, Rel, Where, hidden, listed, selected
from dsms.oneshot.scalars import exact
from dsms.oneshot.steps import OrdinalStep, Step
from dsms.operators.semijoin import null_aware_residual
from dsms.plan.ages import as_of_timestamps
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr
from dsms.sql.types import INT, Field, Kind, Schema

Keys = Sequence[tuple[Expr, Expr]]
ORDINAL = Field("o", INT)


class Renders(Protocol):
    """What makes the relations that are joined (`render.Renderer`)."""

    @property
    def dialect(self) -> Dialect: ...

    def name(self) -> str:
        """A new name."""
        ...

    def step(self, step: Step, schema: Schema, wide: int, aged: bool) -> Rel:
        """The relation that a new step leaves."""
        ...

    def materialized(self, rel: Rel, then: Sequence[Op] = (), schema: Schema | None = None) -> Rel:
        """The relation under a name, with nothing left to do: `then` is done too, which makes it of
        `schema`."""
        ...

    def sql(self, rel: Rel) -> Rel:
        """The relation as SQL text."""
        ...

    def rel(self, node: lp.Node, aged: bool) -> Rel:
        """The rows of a node."""
        ...


def join(r: Renders, node: lp.Join, aged: bool) -> Rel:
    """Inner and outer joins of two inputs."""
    left, right, keys = _sides(r, r.rel(node.left, aged), r.rel(node.right, aged), node.keys)
    pair = _Pair(node.left.schema, node.right.schema, aged)
    condition = _condition(r, pair, keys, node.residual)
    if condition is None and node.kind == "inner":
        return _filtered(r, pair, left, right, keys, node)
    left, right = r.sql(left), r.sql(right)
    if condition is not None:
        text = f"({left.text}) AS l {node.kind.upper()} JOIN ({right.text}) AS r ON {condition}"
        return pair.of(text, left, right, node.schema)
    left, right, pairs = _pairs(r, pair, left, right, keys, node.residual)
    text = _through_pairs(node.kind, left, right, pairs)
    return pair.of(text, left, right, node.schema, pairs)


def join_nrr(r: Renders, node: lp.JoinNRR, aged: bool) -> Rel:
    """Each row with the versions of the relation that were current at its timestamp; where rows
    may come back, when it was born."""
    left = r.rel(node.child, True)
    left, table, keys = _sides(r, left, r.rel(node.table, True), node.keys)
    versions = "t" if as_of_timestamps(node) else "b"
    pair = _Pair(node.child.schema, node.table.schema, aged, versions)
    condition = _condition(r, pair, keys, node.residual)
    left, table = r.sql(left), _versioned(table)
    if condition is not None:
        text = f"({left.text}) AS l {node.kind.upper()} JOIN ({table.text}) AS r ON {condition}"
        return pair.of(text, left, table, node.schema)
    left, table, pairs = _pairs(r, pair, left, table, keys, node.residual)
    return pair.of(_through_pairs(node.kind, left, table, pairs), left, table, node.schema, pairs)


def semi_join(r: Renders, node: lp.SemiJoin, aged: bool) -> Rel:
    """EXISTS, IN, and their negations."""
    left, right = r.rel(node.left, aged), r.rel(node.right, False)
    keys: Keys = node.keys
    residual = node.residual
    if node.null_aware and node.anti:
        if residual is None and len(keys) == 1:
            return _not_in(r, node, left, right)
        keys, residual = null_aware_residual(node)
    left, right, keys = _sides(r, left, right, keys)
    pair = _Pair(node.left.schema, node.right.schema, aged)
    condition = _condition(r, pair, keys, residual)
    left, right = r.sql(left), r.sql(right)
    kind = r.dialect.anti if node.anti else r.dialect.semi
    if condition is not None:
        return pair.left_of(
            f"({left.text}) AS l {kind} ({right.text}) AS r ON {condition}",
            left,
            right,
            node.schema,
        )
    left, right, pairs = _pairs(r, pair, left, right, keys, residual)
    o = f"l.c{len(left.schema) - 1}"
    return pair.left_of(
        f"({left.text}) AS l {kind} ({pairs.text}) AS p ON {o} = p.c0", left, pairs, node.schema
    )


def _not_in(r: Renders, node: lp.SemiJoin, left: Rel, right: Rel) -> Rel:
    left, right, [(mine, theirs)] = _sides(r, left, right, node.keys)
    left, right = r.sql(left), r.sql(right)
    a, b = (
        exact(e, lambda i, s=side: f"{s}.c{i}", r.dialect)  # type: ignore[misc]
        for e, side in ((mine, "l"), (theirs, "r"))
    )
    pair = _Pair(node.left.schema, node.right.schema, left.aged)
    text = f"({left.text}) AS l WHERE {a} NOT IN (SELECT {b} FROM ({right.text}) AS r)"
    return pair.left_of(text, left, right, node.schema)


# ---------------------------------------------------------------- sides and conditions


def _sides(r: Renders, left: Rel, right: Rel, keys: Keys) -> tuple[Rel, Rel, Keys]:
    """Both inputs with the keys that SQL can't compute as further columns, and the keys in terms of
    those."""
    left, mine = _keyed(r, left, [a for a, _ in keys])
    right, theirs = _keyed(r, right, [b for _, b in keys])
    return left, right, list(zip(mine, theirs, strict=True))


def _keyed(r: Renders, rel: Rel, exprs: Sequence[Expr]) -> tuple[Rel, list[Expr]]:
    wanted = [e for e in exprs if exact(e, str, r.dialect) is None]
    if not wanted:
        return rel, list(exprs)
    n = len(rel.schema)
    same = tuple(Col(i, f.type, f.name) for i, f in enumerate(rel.schema))
    schema = (*rel.schema, *(Field("k", e.type) for e in wanted))
    place = {e: n + k for k, e in enumerate(wanted)}
    kept = r.materialized(rel, (Pick((*same, *wanted)),), schema)
    return kept, [Col(place[e], e.type) if e in place else e for e in exprs]


def _condition(r: Renders, pair: _Pair, keys: Keys, residual: Expr | None) -> str | None:
    """The ON condition as SQL; None if its residual is not exact there."""
    text = _equal(r, pair, keys)
    if residual is None:
        return text
    more = exact(residual, pair.column, r.dialect)
    return None if more is None else f"{text} AND {more}"


def _equal(r: Renders, pair: _Pair, keys: Keys) -> str:
    texts = []
    for a, b in keys:
        x = exact(a, lambda i: f"l.c{i}", r.dialect)
        y = exact(b, lambda i: f"r.c{i}", r.dialect)
        texts.append("FALSE" if a.type.kind is Kind.NULL else f"{x} = {y}")
    if pair.versions:
        texts.append(f"r.t <= l.{pair.versions} AND l.{pair.versions} < r.u")
    return " AND ".join(texts) or "TRUE"


def _filtered(r: Renders, pair: _Pair, left: Rel, right: Rel, keys: Keys, node: lp.Join) -> Rel:
    """An inner join whose residual our own expressions decide, as the pairs come."""
    left, right = r.sql(left), r.sql(right)
    text = f"({left.text}) AS l JOIN ({right.text}) AS r ON {_equal(r, pair, keys)}"
    assert node.residual is not None
    return r.materialized(pair.of(text, left, right, node.schema), (Where(node.residual),))


def _pairs(
    r: Renders, pair: _Pair, left: Rel, right: Rel, keys: Keys, residual: Expr | None
) -> tuple[Rel, Rel, Rel]:
    """Both inputs with their rows' numbers as last columns, and the numbers of the pairs that meet
    the condition."""
    left, right = _numbered(r, left), _numbered(r, right, bool(pair.versions))
    a, b = len(pair.left), len(pair.right)
    columns = [f"l.c{i}" for i in range(a)] + [f"r.c{i}" for i in range(b)]
    numbers = [f"l.c{len(left.schema) - 1}", f"r.c{len(right.schema) - 1}"]
    text = (
        f"SELECT {listed([*columns, *numbers])} FROM ({left.text}) AS l JOIN ({right.text}) AS r "
        f"ON {_equal(r, pair, keys)}"
    )
    made = Rel(
        (*pair.left, *pair.right, ORDINAL, ORDINAL),
        0,
        False,
        text=text,
        inputs=_inputs(left, right),
    )
    assert residual is not None
    ops = (Where(residual), Pick((Col(a + b, INT), Col(a + b + 1, INT))))
    return left, right, r.sql(r.materialized(made, ops, (ORDINAL, ORDINAL)))


def _numbered(r: Renders, rel: Rel, versions: bool = False) -> Rel:
    if versions:
        (bound,) = rel.inputs
        kept = Rel(rel.schema, rel.width, rel.aged, bound.relation, bound.schema)
    else:
        kept = r.materialized(rel)
    made = r.step(OrdinalStep(r.name(), kept.name), (*rel.schema, ORDINAL), rel.width, rel.aged)
    return _versioned(made) if versions else r.sql(made)


def _through_pairs(kind: str, left: Rel, right: Rel, pairs: Rel) -> str:
    x, y = f"l.c{len(left.schema) - 1} = p.c0", f"p.c1 = r.c{len(right.schema) - 1}"
    first = "JOIN" if kind in ("inner", "right") else "LEFT JOIN"
    second = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}[
        kind
    ]
    return (
        f"({left.text}) AS l {first} ({pairs.text}) AS p ON {x} {second} ({right.text}) AS r ON {y}"
    )


def _versioned(rel: Rel) -> Rel:
    """The stored versions of a relation as SQL, with `u`: the instant at which each ended."""
    bound = Bound(rel.name, rel.schema, rel.width, rel.aged, versions=True)
    return replace(rel, name="", base=(), text=selected(bound), inputs=(bound,))


def _inputs(*rels: Rel) -> tuple[Bound, ...]:
    return tuple(dict.fromkeys(b for rel in rels for b in rel.inputs))


class _Pair:
    """What a pair of rows looks like: the columns of both (without those added for the join), and
    its age."""

    def __init__(self, left: Schema, right: Schema, aged: bool, versions: str = "") -> None:
        """`versions`: the right side is one of versions, read as of that column of the left one."""
        self.left, self.right, self.aged, self.versions = left, right, aged, versions

    def column(self, i: int) -> str:
        """A column of the pair."""
        return f"l.c{i}" if i < len(self.left) else f"r.c{i - len(self.left)}"

    def of(self, text: str, left: Rel, right: Rel, schema: Schema, *more: Rel) -> Rel:
        """The relation of pairs FROM that text."""
        columns = [self.column(i) for i in range(len(self.left) + len(self.right))]
        ages = self._ages(left.width, right.width) if self.aged else []
        made = f"SELECT {listed(columns, ages)} FROM {text}"
        wide = left.width + right.width
        return Rel(schema, wide, self.aged, text=made, inputs=_inputs(left, right, *more))

    def _ages(self, left: int, right: int) -> list[str]:
        """A padded part has the number -1; a relation read as of the row does not make the pair
        younger."""
        ages = (
            ["l.t AS t", "l.b AS b"]
            if self.versions
            else [f"greatest(l.{x}, r.{x}) AS {x}" for x in ("t", "b")]
        )
        ids = [f"l.i{k}" for k in range(left)] + [f"r.i{k}" for k in range(right)]
        return ages + [f"coalesce({x}, CAST(-1 AS BIGINT)) AS i{k}" for k, x in enumerate(ids)]

    def left_of(self, text: str, left: Rel, right: Rel, schema: Schema) -> Rel:
        """The relation of left rows FROM that text."""
        columns = [f"l.c{i}" for i in range(len(self.left))]
        made = f"SELECT {listed(columns, hidden(left, 'l.'))} FROM {text}"
        return Rel(schema, left.width, left.aged, text=made, inputs=_inputs(left, right))
