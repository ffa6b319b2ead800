"""A selection by keys that all frames of OVER have is made before they are looked at."""

from dataclasses import replace

from dsms.plan.exprs import total
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import Col, columns, conjuncts
from dsms.sql.types import NESTED, Kind
from dsms.sql.window import counts


def select_through_over(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Over(x, by k), p_k AND q) -> Select(Over(Select(x, p_k), by k), q).

    Rows of other keys are in no frame of these rows.  Not below windows that count rows, which hold
    others if some are left out."""
    match node:
        case lp.Select(lp.Over() as over, predicate) if not counts(over.window):
            keys = set.intersection(*map(_keys, over.frames))
            parts = conjuncts(predicate)
            early = [p for p in parts if columns(p) and columns(p) <= keys and total(p)]
            if not early:
                return node
            rest = [p for p in parts if p not in early]
            return select(replace(over, child=select(over.child, early)), rest)
        case _:
            return node


def _keys(frame: lp.Frame) -> set[int]:
    """Not those whose equal values may differ (-0.0 and 0.0)."""
    kinds = (Kind.FLOAT, *NESTED)
    return {e.index for e in frame.by if isinstance(e, Col) and e.type.kind not in kinds}
