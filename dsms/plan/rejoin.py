"""Joins of a running plan in another shape: other trees, or one operator, over the same inputs.

What lies below the joins and what stands above them stays as it is.  So the new joins have the
columns of the old ones, and their id columns in that order (`lp.Project.ids`).

A shape is what is left of joins when their inputs have numbers and conditions are known, in terms
of JSON: the number of an input (that of its first leaf), ["join", left, right], or ["multi",
[part, ...], [place, ...]], the places in the order in which windows are looked into.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dsms.plan.chooser import Built, Chooser
from dsms.plan.estimate import Estimate
from dsms.plan.exprs import identity_exprs, reads
from dsms.plan.identity import leaves, moved
from dsms.plan.join_order import costs_of
from dsms.plan.optimize import finished
from dsms.plan.options import PlanOptions
from dsms.plan.parts import Path, node_at
from dsms.plan.physical import Cost, JoinOrder, Phys
from dsms.plan.rules.base import Context, column_positions, pick
from dsms.plan.rules.join_search import Cluster, Search, Tree, collect
from dsms.plan.rules.negation_push_down import is_table
from dsms.plan.rules.reorder_joins import MOST
from dsms.plan.statistics import Statistics
from dsms.plan.variants import TOP, Place
from dsms.sql import logical as lp
from dsms.sql.multi_joins import as_joins

Shape = Any
LEAST = 3  # inputs from which there is a choice
SHAPED = frozenset({"pipeline_joins", "reorder_joins"})


class Unfit(ValueError):
    """Joins that can't have that shape, or any other one; says why."""


def is_joins(node: lp.Node) -> bool:
    """Whether it is one of the joins that may be exchanged, or columns of one."""
    match node:
        case lp.Join():
            return node.kind == "inner"
        case lp.MultiJoin():
            return True
        case lp.Project():
            return column_positions(node.exprs) is not None and is_joins(node.child)
        case _:
            return False


def places(phys: Phys, path: Path = ()) -> Iterator[Path]:
    """Where a plan has joins of enough inputs, the uppermost of each.  Not in plans of queries
    that it reads."""
    if is_joins(phys.node) and len(list(inputs(phys))) >= LEAST:
        yield path
        below = [at for at, _ in inputs(phys)]
    else:
        below = [(k,) for k in range(len(phys.children))]
    for at in below if not isinstance(phys.node, lp.Answer) else ():
        yield from places(node_at(phys, at), (*path, *at))


def inputs(phys: Phys, path: Path = ()) -> Iterator[tuple[Path, Phys]]:
    """What the joins from there down have as inputs, left to right, with the places."""
    for k, child in enumerate(phys.children):
        if is_joins(child.node):
            yield from inputs(child, (*path, k))
        else:
            yield (*path, k), child


def number(node: lp.Node) -> int:
    """That of an input."""
    return min(leaves(node))


def shape_of(phys: Phys) -> Shape:
    """The shape of the joins from there down."""
    match phys.node:
        case node if not is_joins(node):
            return number(node)
        case lp.Project():
            return shape_of(phys.children[0])
        case lp.Join():
            return ["join", *map(shape_of, phys.children)]
        case _:
            assert isinstance(phys.order, JoinOrder)
            return ["multi", [*map(shape_of, phys.children)], [*phys.order.order]]


def renumbered(shape: Shape, numbers: Mapping[int, int]) -> Shape:
    """The shape with other numbers of its inputs."""
    match shape:
        case int():
            return numbers[shape]
        case ["multi", parts, order]:
            return ["multi", [renumbered(part, numbers) for part in parts], order]
        case [kind, *parts]:
            return [kind, *(renumbered(part, numbers) for part in parts)]
    raise Unfit("it has no such shape")


# ---------------------------------------------------------------- under other figures


@dataclass(slots=True)
class Given(Chooser):
    """A chooser to which plans and estimates of some nodes are given, by id."""

    given: dict[int, Built] = field(default_factory=dict)

    def build(self, node: lp.Node, place: Place = TOP) -> Built:
        found = self.given.get(id(node))
        return Chooser.build(self, node, place) if found is None else found


@dataclass(frozen=True, slots=True)
class Better:
    """The costs of the joins as they are and as they could be, without those of their inputs."""

    cost: float
    best: float
    shape: Shape


@dataclass(slots=True)
class Joins:
    """Joins at work, from `phys` down.

    figures  what is expected of each input, by its number
    free     places of joins among them that run for others, too: they cost nothing more

    Raises Unfit where they can't be exchanged."""

    phys: Phys
    figures: Mapping[int, Estimate]
    options: PlanOptions
    free: Sequence[Path] = ()
    inputs: dict[int, Phys] = field(init=False)
    stands: dict[int, lp.Node] = field(init=False)  # what stands for an input, by its number
    chooser: Given = field(init=False)
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        if self.options.joins == "adaptive":
            raise Unfit("it says how it joins")
        found = [child for _, child in inputs(self.phys)]
        self.inputs = {number(child.node): child for child in found}
        if len(self.inputs) < len(found) or self.inputs.keys() != self.figures.keys():
            raise Unfit("its inputs can't be told apart")
        self.stands = {k: _closed(child.node) for k, child in self.inputs.items()}
        self.chooser = self._chooser(self.options)
        self.cluster = collect(_tree(self.phys, self.stands))
        if not self.cluster.movable():
            raise Unfit("a condition of its joins may fail, or reads no column")

    def _chooser(self, options: PlanOptions) -> Given:
        free = {k: replace(p, cost=Cost()) for k, p in self.inputs.items()}
        given = {id(self.stands[k]): (free[k], self.figures[k]) for k in free}
        return Given(Statistics(), options, given=given)

    def better(self) -> Better:
        """The best shape, and what it would save."""
        now = self._cost(_tree(self.phys, self.stands, binary=False))
        self.chooser = self._chooser(_shaped(self.options))
        phys, _ = self.chooser.build(self._finished(self._best()))
        return Better(now, phys.cost.total, shape_of(phys))

    def _best(self) -> Tree:
        search = self._search("forced" if self.options.joins == "pipeline" else "offered")
        if self.options.joins == "tree" or not search.pipelinable():
            search.pipelines = "none"
        n = len(self.cluster.inputs)
        parts = [1 << i for i in range(n)]
        found = search.best() if n <= MOST else search.pipelined(parts, search.singles())
        if found is None:
            raise Unfit("it has too many inputs")
        return found

    def _search(self, pipelines: Literal["none", "offered", "forced"] = "none") -> Search:
        ctx = Context(self.chooser.options, lambda node: self.chooser.build(node)[0])
        return Search(self.cluster, ctx, pipelines)

    def _finished(self, tree: Tree) -> lp.Node:
        """With the columns of the joins at work."""
        at = {column: i for i, column in enumerate(tree.columns)}
        node = pick(tree.node, [at[c] for c in self.cluster.shown], self.phys.node.schema)
        return finished(node, self.chooser)

    def _cost(self, tree: lp.Node) -> float:
        """What the joins cost as they are, MultiJoins in the order that they have."""
        phys, _ = self.chooser.build(tree)
        free = sum(
            node_at(phys, at).cost.total + self._more(node_at(phys, at), node_at(self.phys, at))
            for at in self.free
        )
        return phys.cost.total + self._more(phys, self.phys) - free

    def _more(self, phys: Phys, running: Phys) -> float:
        """By how much the orders that run are dearer than the best ones."""
        if not is_joins(running.node):
            return 0.0
        below = zip(phys.children, running.children, strict=True)
        more = sum(self._more(a, b) for a, b in below)
        if isinstance(phys.node, lp.MultiJoin):
            assert isinstance(phys.order, JoinOrder) and isinstance(running.order, JoinOrder)
            sizes = [self.chooser.build(child)[1] for child in phys.node.inputs]
            more += costs_of(phys.node, sizes).total(running.order.order) - phys.order.cost
        return more

    # ------------------------------------------------------------ another shape

    def built(self, shape: Shape) -> Phys:
        """The plan of that shape instead of `phys`."""
        self.chooser = self._chooser(_shaped(self.options))
        search = self._search()
        bits = {id(node): 1 << i for i, node in enumerate(self.cluster.inputs)}
        of = {k: bits[id(node)] for k, node in self.stands.items()}
        trees = search.singles()
        whole = _grown(search, shape, of, trees)
        if whole != (1 << len(self.cluster.inputs)) - 1:
            raise Unfit("not all of its inputs are there")
        phys, _ = self.chooser.build(self._finished(trees[whole]))
        made = self._opened(phys, phys.node, shape)
        found = self._in_their_order(made)
        if found.pattern is not self.phys.pattern or found.width != self.phys.width:
            raise Unfit("its rows would leave otherwise")
        return found

    def _opened(self, phys: Phys, node: lp.Node, shape: Shape) -> Phys:
        """The inputs themselves for what stands for them, and MultiJoins in the order of the
        shape."""
        for k, stand in self.stands.items():
            if stand is node:
                return self.inputs[k]
        match node:
            case lp.Project():
                shapes, order = [shape], None
            case lp.Join() if shape[0] == "join":
                shapes, order = shape[1:], None
            case lp.MultiJoin() if shape[0] == "multi":
                _, shapes, order = shape
            case _:
                raise Unfit("its joins have another shape")
        below = zip(phys.children, lp.children(node), shapes, strict=True)
        children = tuple(self._opened(*each) for each in below)
        made = lp.with_children(node, tuple(child.node for child in children))
        found = replace(phys, node=made, children=children, cost=_summed(phys.cost, children))
        if order is None:
            return found
        assert isinstance(phys.order, JoinOrder)
        return replace(found, order=replace(phys.order, order=tuple(order)))

    def _in_their_order(self, made: Phys) -> Phys:
        """Id columns in the order that those above know."""
        columns = {place: k for k, place in enumerate(id_columns(made))}
        ids = tuple(columns[place] for place in id_columns(self.phys))
        if ids == tuple(range(len(ids))):
            return made
        if isinstance(made.node, lp.Project):
            return replace(made, node=replace(made.node, ids=ids))
        schema = self.phys.node.schema
        node = lp.Project(made.node, identity_exprs(schema), schema, ids)
        cost = replace(made.cost, own=0.0)
        return replace(made, node=node, children=(made,), variant="project", states=(), cost=cost,
                       order=None, notes=())  # a call  # fmt: skip


def _shaped(options: PlanOptions) -> PlanOptions:
    """For joins whose shape stands."""
    return replace(options, joins="auto", disabled=options.disabled | SHAPED)


def _tree(phys: Phys, stands: Mapping[int, lp.Node], binary: bool = True) -> lp.Node:
    """The logical plan of joins, over what stands for the inputs; with Joins of two alone."""
    if not is_joins(phys.node):
        return stands[number(phys.node)]
    below = tuple(_tree(child, stands, binary) for child in phys.children)
    made = lp.with_children(phys.node, below)
    return as_joins(made) if binary and isinstance(made, lp.MultiJoin) else made


def key_columns(phys: Phys) -> dict[int, set[int]]:
    """Which columns of each input, by its number, rows are matched by."""
    stands = {number(child.node): child.node for _, child in inputs(phys)}
    cluster = collect(_tree(phys, stands))
    found: dict[int, set[int]] = {k: set() for k in stands}
    for column in (c for pair in cluster.equal for c in reads(pair)):
        k = bisect_right(cluster.starts, column) - 1
        found[number(cluster.inputs[k])].add(column - cluster.starts[k])
    return found


def _closed(node: lp.Node) -> lp.Node:
    """What stands for an input, so that no rule changes it; tables must be known as such."""
    return node if is_table(node) else lp.Answer(node, "", 0, node.schema)


def _summed(cost: Cost, children: tuple[Phys, ...]) -> Cost:
    return replace(cost, total=cost.own + sum(child.cost.total for child in children))


def id_columns(phys: Phys) -> tuple[tuple[int, int], ...]:
    """Of each id column the input, by its number, and which of its columns that is."""
    if not is_joins(phys.node):
        return tuple((number(phys.node), k) for k in range(phys.width))
    below = tuple(place for child in phys.children for place in id_columns(child))
    node = phys.node
    return moved(node, below) if isinstance(node, lp.Project) and node.ids else below


def _grown(search: Search, shape: Shape, of: Mapping[int, int], trees: dict[int, Tree]) -> int:
    """Put the tree of that shape, and those below, into `trees`; its inputs, as bits."""
    if isinstance(shape, int):
        if shape not in of:
            raise Unfit(f"it has no input {shape}")
        return of[shape]
    kind, *parts = shape
    below = [_grown(search, part, of, trees) for part in (parts if kind == "join" else parts[0])]
    whole = sum(below)
    if whole.bit_count() < sum(b.bit_count() for b in below):
        raise Unfit("an input is there twice")
    made: Tree | None
    if kind == "join":
        left, right = below
        made = search.joined(left, right, trees)
    else:
        made = search.pipelined(below, trees)
    if made is None:
        raise Unfit("its inputs are not all equal in one expression")
    trees[whole] = made
    return whole


def put_in(phys: Phys, path: Path, new: Phys) -> Phys:
    """The plan with another part at that place, of equal columns."""
    if not path:
        return new
    children = list(phys.children)
    children[path[0]] = put_in(children[path[0]], path[1:], new)
    node = lp.with_children(phys.node, tuple(child.node for child in children))
    found = tuple(children)
    return replace(phys, node=node, children=found, cost=_summed(phys.cost, found))
