"""An aggregation gets only the columns that it reads."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall


def narrow_group(node: lp.Node, ctx: Context) -> lp.Node:
    """GroupBy(x, k, a) -> GroupBy(Project(x), k, a) with what k and a read of x.

    Columns are values; every group keeps its rows.  Over a scan it would save nothing.
    """
    if not isinstance(node, lp.GroupBy) or isinstance(node.child, lp.StreamScan | lp.TableScan):
        return node
    needed = reads(node.keys) | {i for a in node.aggs for i in _reads(a)}
    if not narrows(node.child, needed):
        return node
    child, moves = narrow(node.child, needed)
    keys = tuple(remap(k, moves) for k in node.keys)
    return replace(node, child=child, keys=keys, aggs=tuple(_moved(a, moves) for a in node.aggs))


def _reads(call: AggCall) -> set[int]:
    return reads(call.args) | reads([] if call.filter is None else [call.filter])


def _moved(call: AggCall, moves: dict[int, int]) -> AggCall:
    filter_ = None if call.filter is None else remap(call.filter, moves)
    return replace(call, args=tuple(remap(a, moves) for a in call.args), filter=filter_)
