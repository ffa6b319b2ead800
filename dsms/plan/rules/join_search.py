"""The trees over the inputs of inner joins, and the cheapest of them (Golab 2006, §5.3).

Dynamic programming over sets of inputs.  A set is joined of two, and, if `pipelines`, of three
parts or more that are all equal in one expression: single inputs, or all but one, which is a tree
of its own whose results are kept (which of them pay to be kept: §9.2).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dsms.plan.adaptive_order import connected, patterns_met
from dsms.plan.exprs import reads, remap, total
from dsms.plan.identity import leaves
from dsms.plan.physical import Pattern, Phys
from dsms.plan.rules.base import Context, column_positions, pick
from dsms.plan.rules.negation_push_down import is_table
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Expr, conjunction, conjuncts, shift
from dsms.sql.types import BOOL

MANY = 8  # inputs of a MultiJoin, at most
# whether MultiJoins may be in a tree, or as few Joins beside them as can be: of inputs that are all
# equal in one expression (offered, forced), or under any equalities, too (any), or alone (adaptive)
Pipelines = Literal["none", "offered", "any", "forced", "adaptive"]

# for each column of a tree, its place among the columns of all inputs in FROM order
Columns = tuple[int, ...]
Score = tuple[int, float]
Key = Sequence[Expr | None]


def score(phys: Phys) -> Score:
    """(joins of a table with a strict input below, cost of the whole)."""
    return strict_tables(phys), phys.cost.total


def nearly(s: Score) -> Score:
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
class Cluster:
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


def collect(node: lp.Node) -> Cluster:
    """The joins from there down; `node` is one, or columns of one."""
    cluster = Cluster()
    cluster.shown = _flatten(node, cluster)
    return cluster


def _flatten(node: lp.Node, into: Cluster) -> Columns:
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
class Tree:
    node: lp.Node
    columns: Columns
    score: Score


@dataclass(slots=True)
class Search:
    """Dynamic programming over sets of inputs (bit sets): the best tree for each connected set."""

    cluster: Cluster
    ctx: Context
    pipelines: Pipelines = "none"
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

    def better(self, node: lp.Node) -> lp.Node:
        """The best tree instead of `node`, if it costs less, or has to be taken; else `node`."""
        return self._instead(node, self.best())

    def whole(self, node: lp.Node) -> lp.Node:
        """One MultiJoin of all inputs instead of `node`, if it costs less, or has to be taken."""
        parts = [1 << i for i in range(len(self.cluster.inputs))]
        found = self._multi(parts, self.singles())
        return self._instead(node, min(found, key=self._rank, default=None))

    def _instead(self, node: lp.Node, tree: Tree | None) -> lp.Node:
        if tree is None:
            return node
        if self.pipelines in ("forced", "adaptive"):
            taken = _count(tree.node, lp.MultiJoin) > _count(node, lp.MultiJoin)
        else:
            taken = tree.score < nearly(score(self.ctx.build(node)))
        places = {column: i for i, column in enumerate(tree.columns)}
        shown = [places[c] for c in self.cluster.shown]
        return pick(tree.node, shown, node.schema) if taken else node

    def pipelinable(self) -> bool:
        """Whether an equality holds for three inputs or more, or there are as many equalities as a
        cycle has."""
        few = {"any": 2, "adaptive": 1}.get(self.pipelines, MANY**2)
        return any(len(same) > 2 for same in self.classes) or len(self.classes) > few

    def singles(self) -> dict[int, Tree]:
        """A tree of each input."""
        leaves = enumerate(self.cluster.inputs)
        return {
            1 << i: Tree(leaf, self.cluster.columns(i), score(self.ctx.build(leaf)))
            for i, leaf in leaves
        }

    def best(self) -> Tree | None:
        """The best tree of all inputs."""
        n = len(self.cluster.inputs)
        trees = self.singles()
        for members in sorted(range(1, 1 << n), key=lambda s: (s.bit_count(), s)):
            if members.bit_count() > 1:
                found = self._join_up(members, trees)
                if found is not None:
                    trees[members] = found
        return trees.get((1 << n) - 1)

    def _join_up(self, members: int, trees: dict[int, Tree]) -> Tree | None:
        pairs = [(a, b) for a, b in _splits(members, self.ctx.ordered) if a in trees and b in trees]
        connected = [(a, b) for a, b in pairs if self._connected(a, b)]
        if (
            not connected
            and members != (1 << len(self.cluster.inputs)) - 1
            and self._connectable(members)
        ):
            return None
        options = [self.joined(a, b, trees) for a, b in connected or pairs]
        if self.pipelines != "none":
            for parts in self._partings(members, trees):
                options += self._multi(parts, trees)
        return min(options, key=self._rank, default=None)

    def _rank(self, tree: Tree) -> tuple[int, int, float]:
        tables, cost = tree.score
        forced = self.pipelines in ("forced", "adaptive")
        joins = _count(tree.node, lp.Join) if forced else 0
        return tables, joins, cost

    def _partings(self, members: int, trees: dict[int, Tree]) -> Iterator[list[int]]:
        """Single inputs; then single ones and one tree of several."""
        singles = [1 << i for i in range(len(self.cluster.inputs)) if members >> i & 1]
        yield singles
        for kept in sorted(trees):
            rest = [s for s in singles if not s & kept]
            if kept & ~members or len(rest) < 2 or kept.bit_count() < 2:
                continue
            if not self.ctx.ordered or _run(kept):
                yield sorted([kept, *rest], key=lambda part: part & -part)

    def _multi(self, parts: list[int], trees: dict[int, Tree]) -> list[Tree]:
        """The parts in one MultiJoin; tables change, and are joined beside it."""
        if not 3 <= len(parts) <= MANY or any(is_table(trees[p].node) for p in parts):
            return []
        if not self.ctx.ordered:  # as in FROM, so that equal ones look equal
            parts = sorted(parts, key=lambda part: min(leaves(trees[part].node)))
        made = [] if self.pipelines == "adaptive" else [self._pipelined(parts, trees)]
        if self.pipelines in ("any", "adaptive"):
            made.append(self._adaptive(parts, trees))
        return [tree for tree in made if tree is not None]

    def pipelined(self, parts: list[int], trees: dict[int, Tree]) -> Tree | None:
        """The parts in one MultiJoin, if an equality holds for all of them."""
        return next(iter(self._multi(parts, trees)), None)

    def _pipelined(self, parts: list[int], trees: dict[int, Tree]) -> Tree | None:
        keys, others = list[Key](), self._spanning(parts)
        for same in self.classes:
            found = [(p, e) for p in parts for e in self._among(same, p)[:1]]
            if len(found) == len(parts):
                keys.append([e for _, e in found])
            elif len(found) > 1:
                others += [Call("eq", (found[0][1], e), BOOL) for _, e in found[1:]]
        return self._scored(*self._at_once(parts, trees, keys, others)) if keys else None

    def _adaptive(self, parts: list[int], trees: dict[int, Tree]) -> Tree | None:
        """... if equalities connect all of them; if it is a matter of cost, only with more than two
        access patterns."""
        keys = list[Key]()
        for same in self.classes:
            found = [next(iter(self._among(same, p)), None) for p in parts]
            if len(parts) - found.count(None) > 1:
                keys.append(found)
        asked = self.pipelines == "adaptive"
        if not keys or not (asked or any(None in key for key in keys)):
            return None
        join, columns = self._at_once(parts, trees, keys, self._spanning(parts))
        fits = connected(join) and (asked or patterns_met(join) > 2)
        return self._scored(join, columns) if fits else None

    def _scored(self, node: lp.Node, columns: Columns) -> Tree:
        return Tree(node, columns, score(self.ctx.build(node)))

    def _at_once(
        self, parts: list[int], trees: dict[int, Tree], keys: list[Key], others: list[Expr]
    ) -> tuple[lp.MultiJoin, Columns]:
        inputs = tuple(trees[p].node for p in parts)
        columns = tuple(c for p in parts for c in trees[p].columns)
        to = {c: i for i, c in enumerate(columns)}
        inner = [{c: i for i, c in enumerate(trees[p].columns)} for p in parts]
        node = lp.MultiJoin(
            inputs,
            tuple(
                tuple(None if e is None else remap(e, at) for e, at in zip(key, inner, strict=True))
                for key in keys
            ),
            conjunction([remap(p, to) for p in others]),
            tuple(f for i in inputs for f in i.schema),
        )
        return node, columns

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
            left, right = self._among(same, a), self._among(same, b)
            if left and right:
                keys.append((left[0], right[0]))
        return keys

    def _among(self, same: list[Expr], part: int) -> list[Expr]:
        """Expressions of a class over the columns of that part alone."""
        return [e for e in same if not self.cluster.inputs_of(e) & ~part]

    def _spanning(self, parts: Sequence[int]) -> list[Expr]:
        """Other conditions that can be asked of all parts together, but could not be asked of
        one."""
        bits_of, everything = self.cluster.inputs_of, sum(parts)

        def within(expr: Expr) -> bool:
            return any(not bits_of(expr) & ~part for part in parts)

        spanning = [
            Call("eq", pair, BOOL) for pair in self.cluster.equal if not all(map(within, pair))
        ]
        return [
            p
            for p in [*spanning, *self.cluster.others]
            if not bits_of(p) & ~everything and not within(p)
        ]

    def joined(self, a: int, b: int, trees: dict[int, Tree]) -> Tree:
        """Two sets, of which there are trees, in a Join."""
        left, right = trees[a], trees[b]
        to_left = {c: i for i, c in enumerate(left.columns)}
        to_right = {c: i for i, c in enumerate(right.columns)}
        both = {**to_left, **{c: len(left.columns) + i for c, i in to_right.items()}}
        keys = tuple((remap(x, to_left), remap(y, to_right)) for x, y in self._keys(a, b))
        residual = conjunction([remap(p, both) for p in self._spanning((a, b))])
        node = lp.Join(
            left.node, right.node, "inner", keys, residual, left.node.schema + right.node.schema
        )
        return Tree(node, left.columns + right.columns, score(self.ctx.build(node)))


def _count(node: lp.Node, kind: type) -> int:
    return sum(isinstance(n, kind) for n in lp.nodes_of(node))


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
