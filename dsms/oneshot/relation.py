"""Relations while a plan is rendered: SQL text not run yet, or rows that a step leaves under a
name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.oneshot.dialect import Dialect
from dsms.oneshot.parts import bound_names, hidden_names
from dsms.oneshot.scalars import Names, all_exact
from dsms.sql.expr import Expr
from dsms.sql.types import Kind, Schema

_LETTERS = {
    Kind.BOOL: "b",
    Kind.FLOAT: "f",
    Kind.STRING: "s",
    Kind.UUID: "s",
    Kind.LIST: "l",
    Kind.STRUCT: "l",
    Kind.BYTES: "y",
    Kind.NULL: "n",
}


@dataclass(frozen=True, slots=True)
class Where:
    """Keep the rows for which the predicate is true."""

    predicate: Expr


@dataclass(frozen=True, slots=True)
class Pick:
    """New values."""

    exprs: tuple[Expr, ...]


Op = Where | Pick


@dataclass(frozen=True, slots=True)
class Bound:
    """A stored relation as SQL sees it: a table of its own name for each shape, so that a name
    never changes type."""

    relation: str
    schema: Schema
    width: int
    aged: bool
    versions: bool = False

    @property
    def table(self) -> str:
        shape = "".join(_shape(f.type) for f in self.schema)
        return (
            f"{self.relation}_{shape}{f'_a{self.width}' if self.aged else ''}"
            f"{'_v' if self.versions else ''}"
        )


def _shape(type_) -> str:  # type: ignore[no-untyped-def]
    if type_.kind is Kind.DECIMAL:
        return f"d{type_.precision}_{type_.scale}_"
    return _LETTERS.get(type_.kind, "i")


@dataclass(frozen=True, slots=True)
class Rel:
    """Rows of `schema`; `aged`: with ts, birth and `width` arrival numbers.

    name, base, ops  a stored relation of schema `base`, and what is still to be done to its rows
    text, inputs     or SQL over stored relations
    """

    schema: Schema
    width: int
    aged: bool
    name: str = ""
    base: Schema = ()
    ops: tuple[Op, ...] = ()
    text: str = ""
    inputs: tuple[Bound, ...] = ()

    def then(self, op: Op, schema: Schema) -> Rel:
        """A stored relation with one more thing to do."""
        return replace(self, ops=(*self.ops, op), schema=schema)


def stored(name: str, schema: Schema, width: int, aged: bool) -> Rel:
    """A relation under a name."""
    return Rel(schema, width, aged, name, schema)


def column_names(alias: str = "") -> Names:
    """The columns of a relation, as its SQL names them."""
    return lambda i: f"{alias}c{i}"


def hidden(rel: Rel, alias: str = "") -> list[str]:
    """The columns of a relation that tell ages."""
    return [f"{alias}{n} AS {n}" for n in hidden_names(rel.width)] if rel.aged else []


def listed(exprs: Sequence[str], more: Sequence[str] = ()) -> str:
    """A select list of numbered columns."""
    return ", ".join([f"{e} AS c{i}" for i, e in enumerate(exprs)] + list(more)) or "0 AS z"


def applied(text: str, op: Op, rel: Rel, dialect: Dialect) -> str | None:
    """The SQL of an operation on a relation's SQL, if it is exact."""
    match op:
        case Where(predicate):
            found = all_exact([predicate], column_names(), dialect)
            return None if found is None else f"SELECT * FROM ({text}) AS x WHERE {found[0]}"
        case Pick(exprs):
            found = all_exact(exprs, column_names(), dialect)
            return (
                None if found is None else f"SELECT {listed(found, hidden(rel))} FROM ({text}) AS x"
            )


def selected(bound: Bound) -> str:
    """All columns of a stored relation."""
    names = bound_names(len(bound.schema), bound.width, bound.aged) + (
        ["u"] if bound.versions else []
    )
    return f"SELECT {', '.join(names)} FROM {bound.table}"
