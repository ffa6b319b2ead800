"""The calls that make ready all kernels of aggregates, as their cards name them: by text, and
bound."""

from __future__ import annotations

from dsms.aggregates.cards import CARDS, FAMILIES
from dsms.sql.binder import bind_query
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.expr import AggCall
from dsms.sql.logical import GroupBy, Node, children
from dsms.sql.parser import parse_one
from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Field, decimal

COLUMNS = {"k": STRING, "i": INT, "f": FLOAT, "d": decimal(38, 2), "o": BOOL, "t": TIMESTAMP}


def texts() -> dict[str, str]:
    """Calls by family, for a select list; families that have no kernels are left out."""
    found = {
        family: [w for c in CARDS.values() if c.family == family for w in c.warm]
        for family in FAMILIES
    }
    return {family: ", ".join(calls) for family, calls in found.items() if calls}


def calls() -> tuple[AggCall, ...]:
    """The same, bound over a stream of such columns."""
    stream = StreamDef("a", tuple(Field(name, type_) for name, type_ in COLUMNS.items()))
    node: Node = bind_query(
        parse_one(f"SELECT {', '.join(texts().values())} FROM a"),  # type: ignore[arg-type]
        Catalog({"a": stream}),
    )
    while not isinstance(node, GroupBy):
        (node,) = children(node)
    return node.aggs
