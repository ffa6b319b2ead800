"""A selection on an append-only result is made before results are appended."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_append(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Append(x), p) -> Append(Select(x, p)).

    Append keeps what enters x, in order; what fails p would have been kept for nothing.  A row's
    death, where external windows are mixed in, comes from its own parts.
    """
    match node:
        case lp.Select(lp.Append() as append, predicate):
            early, rest = split(predicate, 0, len(append.schema))
            return (
                select(replace(append, child=select(append.child, early)), rest) if early else node
            )
        case _:
            return node
