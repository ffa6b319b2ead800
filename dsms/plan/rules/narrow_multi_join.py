"""A MultiJoin keeps only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp
from dsms.sql.expr import Expr


def narrow_multi_join(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(MultiJoin(a, b, c), e) -> Project(MultiJoin(Project(a), Project(b), Project(c)), e)
    with what e, the keys and the condition read.

    Columns are values; the rows, their parts and their lifetimes stay.  The state holds less.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.MultiJoin)):
        return node
    join, first, dropped = node.child, 0, False
    above = reads(node.exprs) | reads([] if join.residual is None else [join.residual])
    inputs, keys, moves = list[lp.Node](), list[list[Expr | None]](), dict[int, int]()
    for k, child in enumerate(join.inputs):
        mine = [same[k] for same in join.keys]
        needed = {i - first for i in above if first <= i < first + len(child.schema)}
        needed |= reads([e for e in mine if e is not None])
        dropped = dropped or narrows(child, needed)
        slim, to = narrow(child, needed)
        start = sum(len(made.schema) for made in inputs)
        moves |= {first + old: start + new for old, new in to.items()}
        inputs.append(slim)
        keys.append([None if e is None else remap(e, to) for e in mine])
        first += len(child.schema)
    if not dropped:
        return node
    narrowed = replace(
        join,
        inputs=tuple(inputs),
        keys=tuple(zip(*keys, strict=True)),
        residual=None if join.residual is None else remap(join.residual, moves),
        schema=tuple(f for k, f in enumerate(join.schema) if k in moves),
    )
    return lp.Project(narrowed, tuple(remap(e, moves) for e in node.exprs), node.schema)
