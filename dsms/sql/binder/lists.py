"""What lists can't be asked: they are equal or not, and have no order; and constants that are
lists."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dsms import lists
from dsms.aggregates.card import Card
from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.expr import Expr, Lit
from dsms.sql.types import NESTED, Kind, Type, item_of

_ORDER = frozenset(("lt", "le", "gt", "ge", "greatest", "least"))


def without_order(fn: str, types: Sequence[Type], at: ast.Node) -> None:
    """DS355 for a function of lists or structs that goes by their order."""
    if fn in _ORDER and (odd := [t for t in types if t.kind in NESTED]):
        raise no_order(at, odd[0])


def aggregated(card: Card, types: Sequence[Type], at: ast.Node) -> None:
    """DS355 for an aggregate of lists or structs that goes by their order."""
    if card.opaque:
        return
    if odd := [t for t in types[1 if card.equal else 0 :] if t.kind in NESTED]:
        raise no_order(at, odd[0])


def no_order(at: ast.Node, type_: Type) -> Exception:
    """DS355."""
    if type_.kind is Kind.STRUCT:
        hint = "compare structs with = or <>; their fields have an order: s.a"
        return error("DS355", "structs have no order", at, hint)
    hint = "compare lists with = or <>; what is theirs has an order: l[1], LENGTH(l), LIST_MAX(l)"
    return error("DS355", "lists have no order", at, hint)


def nested(at: ast.Node, what: str = "a list can't hold lists") -> Exception:
    """DS354."""
    hint = "keep the inner lists as texts, CAST(l AS STRING), or their items one by one"
    return error("DS354", what, at, hint)


def made(values: Sequence[Expr], type_: Type) -> Lit | None:
    """The list of constants as one; None if one of them is none."""
    if not all(isinstance(v, Lit) for v in values) or len(values) > lists.MOST:
        return None
    item = item_of(type_)
    column = pa.array([v.value for v in values if isinstance(v, Lit)], item.arrow)
    spelled = lists.spelled_items(column, str(item)).to_pylist()
    return Lit(f"[{', '.join(spelled)}]", type_)


def read(text: str, type_: Type) -> Lit | None:
    """A text as the list that it is, if it is one."""
    found, bad = lists.canonical(pa.array([text], pa.string()), str(item_of(type_)))
    return None if bad.any() else Lit(found[0].as_py(), type_)
