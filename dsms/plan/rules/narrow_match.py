"""A MATCH keeps only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp
from dsms.sql.expr import Expr


def narrow_match(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Match(a, b), e) -> Project(Match(Project(a), Project(b)), e) with what e, the keys
    and the conditions read.

    Columns are values; which rows come, and when, stays.  The state holds less.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.Match)):
        return node
    match, first, shown, dropped = node.child, 0, 0, False
    read, above = reads(c for c in match.conditions if c is not None), reads(node.exprs)
    inputs, keys = list[lp.Node](), list[list[Expr]]()
    inside, outside = dict[int, int](), dict[int, int]()
    start = start_shown = 0
    for k, (child, kind) in enumerate(zip(match.inputs, match.kinds, strict=True)):
        wide, mine = len(child.schema), [same[k] for same in match.keys]
        needed = {i - first for i in read if first <= i < first + wide} | reads(mine)
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
        keys.append([remap(e, to) for e in mine])
    if not dropped:
        return node
    narrowed = replace(
        match,
        inputs=tuple(inputs),
        keys=tuple(zip(*keys, strict=True)),
        conditions=tuple(None if c is None else remap(c, inside) for c in match.conditions),
        schema=tuple(f for k, f in enumerate(match.schema) if k in outside),
    )
    return lp.Project(narrowed, tuple(remap(e, outside) for e in node.exprs), node.schema)
