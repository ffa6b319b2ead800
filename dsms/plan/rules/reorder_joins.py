"""Inner joins in the cheapest order (Golab 2006, §5.3), without cross products where the conditions
allow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.plan.exprs import reads, remap, total
from dsms.plan.physical import Pattern, Phys
from dsms.plan.rules.base import Context, column_positions, pick
from dsms.plan.rules.negation_push_down import is_table
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Expr, conjunction, conjuncts, shift
from dsms.sql.types import BOOL

MOST = 6  # joins of more inputs are left as they were written: the number of orders explodes

# for each column of a tree, its place among the columns of all inputs in FROM order
Columns = tuple[int, ...]
Score = tuple[int, float]


def reorder_joins(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(Join(a, b), c) -> Project(Join(Join(a, c), b)), columns put back in order; any tree over
    the same inputs.

    A result is a combination of one row of each input that meets all conditions, alive while all
    its parts are: the order of combining changes neither.  Trees are compared by cost per unit of
    time; a tree in which a table meets a strict input (§3.5.3) only if no other is possible; on a
    tie the order as written stays.  In a branch of a union only trees that keep the inputs in order
    are considered, for the sake of the id columns.
    """
    if not isinstance(node, lp.Join) or node.kind != "inner":
        return node
    cluster = _collect(node)
    if not (3 <= len(cluster.inputs) <= MOST and cluster.movable()):
        return node
    best = _Search(cluster, ctx).best()
    if best is None or best.score >= _nearly(score(ctx.build(node))):
        return node
    places = {column: i for i, column in enumerate(best.columns)}
    return pick(best.node, [places[c] for c in cluster.shown], node.schema)


def score(phys: Phys) -> Score:
    """(joins of a table with a strict input below, cost of the whole)."""
    return strict_tables(phys), phys.cost.total


def _nearly(s: Score) -> Score:
    return s[0], s[1] * (1 - 1e-9)


def strict_tables(phys: Phys) -> int:
    """How often below a table is joined with a strict input."""
    here = 0
    if isinstance(phys.node, lp.Join):
        left, right = phys.children
        here = int(is_table(left.node) and right.pattern is Pattern.STR) + int(
            is_table(right.node) and left.pattern is Pattern.STR
        )
    return here + sum(strict_tables(c) for c in phys.children)


@dataclass(slots=True)
class _Cluster:
    """Inner joins flattened.  Expressions are over all columns of all inputs in the order as
    written."""

    inputs: list[lp.Node] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    equal: list[tuple[Expr, Expr]] = field(default_factory=list)
    others: list[Expr] = field(default_factory=list)
    shown: Columns = ()
    known: dict[Expr, int] = field(default_factory=dict)

    def movable(self) -> bool:
        """Whether no condition can fail, and every one reads columns: a constant belongs to no
        input."""
        conditions = [e for pair in self.equal for e in pair] + self.others
        return all(total(e) and reads([e]) for e in conditions)

    def inputs_of(self, expr: Expr) -> int:
        """The inputs whose columns the expression reads, as a bit set."""
        if expr not in self.known:
            self.known[expr] = 0
            for column in reads([expr]):
                self.known[expr] |= 1 << (bisect_right(self.starts, column) - 1)
        return self.known[expr]

    def columns(self, i: int) -> Columns:
        return tuple(range(self.starts[i], self.starts[i] + len(self.inputs[i].schema)))


def _collect(node: lp.Join) -> _Cluster:
    cluster = _Cluster()
    cluster.shown = _flatten(node, cluster)
    return cluster


def _flatten(node: lp.Node, into: _Cluster) -> Columns:
    """Adds the inputs and conditions below `node`; where the node's columns are among all
    columns."""
    match node:
        case lp.Join(kind="inner"):
            left, right = _flatten(node.left, into), _flatten(node.right, into)
            both = dict(enumerate(left + right))
            into.equal += [(remap(a, both), remap(shift(b, len(left)), both)) for a, b in node.keys]
            into.others += [remap(p, both) for p in conjuncts(node.residual)]
            return left + right
        case lp.Project(lp.Join(kind="inner"), exprs) if (
            at := column_positions(exprs)
        ) is not None:
            below = _flatten(node.child, into)
            return tuple(below[i] for i in at)
        case _:
            start = into.starts[-1] + len(into.inputs[-1].schema) if into.inputs else 0
            into.inputs.append(node)
            into.starts.append(start)
            return into.columns(len(into.inputs) - 1)


@dataclass(frozen=True, slots=True)
class _Tree:
    node: lp.Node
    columns: Columns
    score: Score


@dataclass(slots=True)
class _Search:
    """Dynamic programming over sets of inputs (bit sets): the best tree for each connected set."""

    cluster: _Cluster
    ctx: Context
    classes: list[list[Expr]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for a, b in self.cluster.equal:
            found = [c for c in self.classes if a in c or b in c]
            merged = list(dict.fromkeys([*(e for c in found for e in c), a, b]))
            self.classes = [c for c in self.classes if c not in found] + [merged]
        self.classes = [part for c in self.classes for part in self._sound(c)]

    def _sound(self, same: list[Expr]) -> list[list[Expr]]:
        """The class, if one equality per join implies the others: its members are of different
        single inputs.

        Otherwise its equalities one by one.
        """
        bits = [self.cluster.inputs_of(e) for e in same]
        if all(b.bit_count() == 1 for b in bits) and len(set(bits)) == len(bits):
            return [same]
        return [[a, b] for a, b in self.cluster.equal if a in same]

    def best(self) -> _Tree | None:
        n = len(self.cluster.inputs)
        trees: dict[int, _Tree] = {}
        for i, leaf in enumerate(self.cluster.inputs):
            trees[1 << i] = _Tree(leaf, self.cluster.columns(i), score(self.ctx.build(leaf)))
        for members in sorted(range(1, 1 << n), key=lambda s: (s.bit_count(), s)):
            if members.bit_count() > 1:
                found = self._join_up(members, trees)
                if found is not None:
                    trees[members] = found
        return trees.get((1 << n) - 1)

    def _join_up(self, members: int, trees: dict[int, _Tree]) -> _Tree | None:
        pairs = [(a, b) for a, b in _splits(members, self.ctx.ordered) if a in trees and b in trees]
        connected = [(a, b) for a, b in pairs if self._connected(a, b)]
        if (
            not connected
            and members != (1 << len(self.cluster.inputs)) - 1
            and self._connectable(members)
        ):
            return None
        options = [self._joined(a, b, trees) for a, b in connected or pairs]
        return min(options, key=lambda t: t.score, default=None)

    def _connectable(self, members: int) -> bool:
        """Whether the members hang on other inputs by some condition, so that a cross product can
        be put off."""
        return any(
            bits & members and bits & ~members
            for bits in [
                self.cluster.inputs_of(a) | self.cluster.inputs_of(b) for a, b in self.cluster.equal
            ]
            + [self.cluster.inputs_of(p) for p in self.cluster.others]
        )

    def _connected(self, a: int, b: int) -> bool:
        return bool(self._keys(a, b)) or any(
            bits & a and bits & b and not bits & ~(a | b)
            for bits in map(self.cluster.inputs_of, self.cluster.others)
        )

    def _keys(self, a: int, b: int) -> list[tuple[Expr, Expr]]:
        """One equality per class of equal expressions with members on both sides: the others
        follow."""
        keys = []
        for same in self.classes:
            left = [e for e in same if not self.cluster.inputs_of(e) & ~a]
            right = [e for e in same if not self.cluster.inputs_of(e) & ~b]
            if left and right:
                keys.append((left[0], right[0]))
        return keys

    def _late(self, a: int, b: int) -> list[Expr]:
        """Other conditions that can be asked of a pair, but could not be asked of either side."""
        spanning = [
            Call("eq", pair, BOOL)
            for pair in self.cluster.equal
            if any(self.cluster.inputs_of(e) & a and self.cluster.inputs_of(e) & b for e in pair)
        ]
        asked = [(self.cluster.inputs_of(p), p) for p in [*spanning, *self.cluster.others]]
        return [p for bits, p in asked if not bits & ~(a | b) and bits & ~a and bits & ~b]

    def _joined(self, a: int, b: int, trees: dict[int, _Tree]) -> _Tree:
        left, right = trees[a], trees[b]
        to_left = {c: i for i, c in enumerate(left.columns)}
        to_right = {c: i for i, c in enumerate(right.columns)}
        both = {**to_left, **{c: len(left.columns) + i for c, i in to_right.items()}}
        keys = tuple((remap(x, to_left), remap(y, to_right)) for x, y in self._keys(a, b))
        residual = conjunction([remap(p, both) for p in self._late(a, b)])
        node = lp.Join(
            left.node, right.node, "inner", keys, residual, left.node.schema + right.node.schema
        )
        return _Tree(node, left.columns + right.columns, score(self.ctx.build(node)))


def _splits(members: int, ordered: bool) -> Iterator[tuple[int, int]]:
    """Ways to part a set in two, the part with the first input on the left; if `ordered` only runs
    of neighbours."""
    first = members & -members
    rest = members ^ first
    chosen = rest
    while chosen:
        chosen = (chosen - 1) & rest
        left, right = first | chosen, rest ^ chosen
        if not ordered or (_run(left) and _run(right) and left < (right & -right)):
            yield left, right
        if not chosen:
            return


def _run(members: int) -> bool:
    """Whether the set is a run of neighbours."""
    shifted = members // (members & -members)
    return shifted & (shifted + 1) == 0
