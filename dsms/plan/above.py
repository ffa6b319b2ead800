"""Selections that stay above what other queries have, too.

Alone a query is best off with its selections pushed down, and the columns that they test and that
it shows cut out below.  But many readers of the same join or groups, each with a condition of his
own, have nothing in common then.  So the planner also makes the plan in which one of the selections
stays where it is and what lies below it is planned by itself: it takes that one where what lies
below runs already, or has been wanted by so many others that it pays: by one, if it costs about as
much.  Neither what is selected nor what lies below may fail for a row: which rows fail would
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from dsms.plan.ages import with_ages
from dsms.plan.chooser import Chooser
from dsms.plan.exprs import total
from dsms.plan.optimize import optimize
from dsms.plan.parts import Key, Path, expressions_of, keys_of, node_at
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Col, Expr, columns, rewrite
from dsms.sql.window import Session, When, WindowSpec, counts

STAYS = "selection_stays_above"  # its name among the rewrites
WANTED = 2  # others that have wanted it
LITTLE = 1.05  # what costs so many times as much costs about the same


@dataclass(frozen=True, slots=True)
class Offered:
    """What other queries have and might have, by the keys of parts of plans.

    running  parts that run
    wanted   how many queries would have had a part, if it had been there"""

    running: AbstractSet[Key] = frozenset()
    wanted: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Alternative:
    """phys   with the selection above;  core: where the part below it stands, and its key"""

    phys: Phys
    core: Path
    key: Key

    @property
    def below(self) -> float:
        return node_at(self.phys, self.core).cost.total


def with_selection_above(
    output: lp.Output, chooser: Chooser, alone: Phys, offered: Offered
) -> Phys:
    """The plan of a query that would have the plan `alone` without others; its `wants` are the keys
    of what it might share with others."""
    wants: list[Key] = []
    there = set(keys_of(with_ages(alone)).values())
    for found in _alternatives(output, chooser):
        if found.key in there:
            break
        wants.append(found.key)
        more, others = found.phys.cost.total - found.below, offered.wanted.get(found.key, 0)
        runs = found.key in offered.running and more <= alone.cost.total
        pays = found.below + (others + 1) * more <= (others + 1) * alone.cost.total
        alike = others > 0 and found.phys.cost.total <= LITTLE * alone.cost.total
        if runs or alike or (others >= WANTED and pays):
            return replace(found.phys, wants=tuple(wants))
    return replace(alone, wants=tuple(wants))


def _alternatives(output: lp.Output, chooser: Chooser) -> Iterator[_Alternative]:
    """A plan for each selection of the query, the topmost first."""
    above: list[lp.Node] = []
    node = output.child
    while True:
        if isinstance(node, lp.Join) and node.kind == "inner" and node.keys and node.residual:
            node = lp.Select(replace(node, residual=None), node.residual, node.schema)
        if isinstance(node, lp.Select) and not total(node.predicate):
            return
        if isinstance(node, lp.Select) and _is_worth(node.child):
            yield _cut(output, [*above, node], node.child, chooser)
        if not isinstance(node, lp.Select | lp.Project | lp.GroupBy | lp.Distinct):
            return
        above.append(node)
        node = node.child


def _is_worth(node: lp.Node) -> bool:
    """Whether state could be shared, and no row fails that a selection would have kept away."""
    kinds = (
        lp.Join,
        lp.JoinNRR,
        lp.AsofJoin,
        lp.Match,
        lp.Over,
        lp.SemiJoin,
        lp.SetOp,
        lp.Distinct,
        lp.GroupBy,
        lp.TopN,
    )
    return all(map(total, expressions_of(node))) and any(
        isinstance(n, kinds) or (isinstance(n, lp.Window) and _keeps(n.spec))
        for n in lp.nodes_of(node)
    )


def _keeps(spec: WindowSpec) -> bool:
    return counts(spec) or isinstance(spec, Session | When)


def _cut(
    output: lp.Output, above: Sequence[lp.Node], below: lp.Node, chooser: Chooser
) -> _Alternative:
    """`above`, root first, stay as they are over `below`, which is planned by itself, with the
    columns that they read."""
    read = sorted(_read(above, len(below.schema)))
    to = {old: new for new, old in enumerate(read)}
    if len(read) < len(below.schema):
        schema = tuple(below.schema[i] for i in read)
        exprs = tuple(Col(i, below.schema[i].type, below.schema[i].name) for i in read)
        below = lp.Project(below, exprs, schema)
    alone = lp.Output(below, "rstream", True, False, None, below.schema)
    planned, rules = optimize(alone, Chooser(chooser.stats, chooser.options, chooser.running))
    (made,) = lp.children(planned)
    moved = True
    for node in reversed(above):
        made = _over(node, made, to) if moved else lp.with_children(node, (made,))
        moved = moved and isinstance(node, lp.Select | lp.Distinct)
    phys, _ = chooser.build(lp.with_children(output, (made,)))
    phys = replace(phys, rules=(*rules, STAYS))
    core: Path = (0,) * (len(above) + 1)
    while isinstance(node_at(phys, core).node, lp.Project):
        core = (*core, 0)
    return _Alternative(phys, core, keys_of(with_ages(phys))[core])


def _read(above: Sequence[lp.Node], count: int) -> set[int]:
    """Positions of the columns that they read of what is below them; at least one."""
    read: set[int] = set()
    for node in reversed(above):
        match node:
            case lp.Select():
                read |= columns(node.predicate)
            case lp.Project():
                return read.union(*map(columns, node.exprs)) or {0}
            case lp.GroupBy():
                calls = [e for call in node.aggs for e in (*call.args, call.filter) if e]
                return read.union(*map(columns, (*node.keys, *calls))) or {0}
            case _:
                break
    return set(range(count))


def _over(node: lp.Node, child: lp.Node, to: Mapping[int, int]) -> lp.Node:
    """The node over an input whose columns have other places."""

    def moved(expr: Expr) -> Expr:
        return rewrite(expr, lambda c: Col(to[c.index], c.type, c.name))

    def call(agg: AggCall) -> AggCall:
        where = None if agg.filter is None else moved(agg.filter)
        return replace(agg, args=tuple(map(moved, agg.args)), filter=where)

    match node:
        case lp.Select():
            return lp.Select(child, moved(node.predicate), child.schema)
        case lp.Project():
            return replace(node, child=child, exprs=tuple(map(moved, node.exprs)))
        case lp.GroupBy():
            keys, aggs = tuple(map(moved, node.keys)), tuple(map(call, node.aggs))
            return replace(node, child=child, keys=keys, aggs=aggs)
        case _:
            return lp.with_children(node, (child,))
