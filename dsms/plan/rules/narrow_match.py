"""A MATCH keeps only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Expr


def narrow_match(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Match(a, b), e) -> Project(Match(Project(a), Project(b)), e) with what e, the keys
    and the conditions read.

    Columns are values; which rows come, and when, stays.  The state holds less.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.Match)):
        return node
    match, first, shown, dropped = node.child, 0, 0, False
    read, above = reads(c for c in match.conditions if c is not None), reads(node.exprs)
    inputs, keys, moves = list[lp.Node](), list[list[Expr]](), list[dict[int, int]]()
    inside, outside = dict[int, int](), dict[int, int]()
    start = start_shown = 0
    first_agg = len(match.schema) - len(match.aggs)
    every = sum(len(child.schema) for child in match.inputs)
    kept = [n for n in range(len(match.aggs)) if first_agg + n in above or every + n in read]
    aggs = list[tuple[int, AggCall]]()
    for k, (child, kind) in enumerate(zip(match.inputs, match.kinds, strict=True)):
        wide, mine = len(child.schema), [same[k] for same in match.keys]
        needed = {i - first for i in read if first <= i < first + wide} | reads(mine)
        calls = [match.aggs[n][1] for n in kept if match.aggs[n][0] == k]
        needed |= reads(e for c in calls for e in (*c.args, c.filter) if e is not None)
        if kind == "one":
            needed |= {i - shown for i in above if shown <= i < shown + wide}
        dropped = dropped or narrows(child, needed)
        slim, to = narrow(child, needed)
        inside |= {first + old: start + new for old, new in to.items()}
        if kind == "one":
            outside |= {shown + old: start_shown + new for old, new in to.items()}
            shown, start_shown = shown + wide, start_shown + len(slim.schema)
        first, start = first + wide, start + len(slim.schema)
        inputs.append(slim)
        moves.append(to)
        keys.append([remap(e, to) for e in mine])
    if not dropped and len(kept) == len(match.aggs):
        return node
    for n in kept:
        outside[first_agg + n] = start_shown + len(aggs)
        inside[every + n] = start + len(aggs)
        aggs.append(_moved(match.aggs[n], moves))
    narrowed = replace(
        match,
        inputs=tuple(inputs),
        keys=tuple(zip(*keys, strict=True)),
        conditions=tuple(None if c is None else remap(c, inside) for c in match.conditions),
        aggs=tuple(aggs),
        schema=tuple(f for k, f in enumerate(match.schema) if k in outside),
    )
    return lp.Project(narrowed, tuple(remap(e, outside) for e in node.exprs), node.schema)


def _moved(agg: tuple[int, AggCall], moves: list[dict[int, int]]) -> tuple[int, AggCall]:
    step, call = agg
    args = tuple(remap(a, moves[step]) for a in call.args)
    where = None if call.filter is None else remap(call.filter, moves[step])
    return step, replace(call, args=args, filter=where)
