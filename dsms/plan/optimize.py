"""The optimizer: applies the rewrite rules, checks each step, and searches among plans by cost.

Three phases.  `always` rules to a fixpoint; then best-first search over what the `cost` rules offer
(join orders, negation above or below joins, ...), each offer simplified again; then the `last`
rules to a fixpoint.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dsms.errors import InternalError
from dsms.plan.chooser import Chooser
from dsms.plan.demand import demand
from dsms.plan.identity import arrivals
from dsms.plan.patterns import pattern_of
from dsms.plan.rules import RULES, Context, Rule
from dsms.plan.rules.join_search import Score, score
from dsms.sql import logical as lp
from dsms.sql.looking import look

ROUNDS = 100  # a fixpoint that takes more rounds is a bug
EXPANSIONS = 24  # plans looked into during the search,
EFFORT = 2000  # unless the search has costed so many nodes before (about a second)
BETTER = 1 - 1e-9

Names = tuple[str, ...]
Path = tuple[int, ...]


def optimize(output: lp.Node, chooser: Chooser) -> tuple[lp.Node, Names]:
    """The best plan found and the names of the rules that made it.  InternalError DS910 if a rule
    misbehaves."""
    if not chooser.options.optimize:
        return output, ()
    return _Optimizer(chooser).run(output)


def finished(tree: lp.Node, chooser: Chooser) -> lp.Node:
    """The plan, whose shape stands, with the rules of the last phase applied."""
    return _Optimizer(chooser).fixpoint(tree, "last")[0]


@dataclass(slots=True)
class _Optimizer:
    chooser: Chooser
    rules: dict[str, list[Rule]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = self.chooser.options
        forced = {"up": "negation_pull_up", "down": "negation_push_down"}.get(options.negation)
        opposite = {"up": "negation_push_down", "down": "negation_pull_up"}.get(options.negation)
        rules = [
            replace(r, when="always") if r.name == forced else r
            for r in RULES
            if r.name != opposite
        ]
        if options.joins in ("pipeline", "adaptive"):
            rules = [replace(r, when="last") if r.name == "pipeline_joins" else r for r in rules]
        for when in ("always", "cost", "last"):
            fits = (when, "both") if when != "cost" else (when,)
            self.rules[when] = [
                r for r in rules if r.when in fits and r.name not in options.disabled
            ]

    def run(self, output: lp.Node) -> tuple[lp.Node, Names]:
        tree, first = self.fixpoint(output, "always")
        tree, found = self.search(tree)
        tree, last = self.fixpoint(tree, "last")
        return tree, tuple(dict.fromkeys(first + found + last))

    # ------------------------------------------------------------ fixpoint

    def fixpoint(self, tree: lp.Node, when: str) -> tuple[lp.Node, Names]:
        """Apply the rules of that phase everywhere until nothing changes."""
        names: list[str] = []
        for _ in range(ROUNDS):
            before = len(names)
            new = self._everywhere(tree, when, self.context(), names)
            if new == tree:
                return new, tuple(names[:before])
            tree = new
        raise _bug(names[-1], "does not come to an end", tree)

    def context(self) -> Context:
        return Context(self.chooser.options, lambda node: self.chooser.build(node)[0])

    def _everywhere(self, node: lp.Node, when: str, ctx: Context, names: list[str]) -> lp.Node:
        node = self._here(node, when, ctx, names)
        if isinstance(node, lp.Answer):  # what runs that query works here, too
            return node
        old = lp.children(node)
        new = tuple(
            self._everywhere(c, when, below(node, i, ctx), names) for i, c in enumerate(old)
        )
        return (
            node
            if all(a is b for a, b in zip(old, new, strict=True))
            else lp.with_children(node, new)
        )

    def _here(self, node: lp.Node, when: str, ctx: Context, names: list[str]) -> lp.Node:
        for _ in range(ROUNDS):
            for rule in self.rules[when]:
                new = apply(rule, node, ctx)
                if new is not node:
                    names.append(rule.name)
                    node = new
                    break
            else:
                return node
        raise _bug(names[-1], "does not come to an end", node)

    # ------------------------------------------------------------ search

    def search(self, tree: lp.Node) -> tuple[lp.Node, Names]:
        """Best-first: look into the cheapest plan not looked into yet, within bounds."""
        best = self.score(tree)
        start = tree, ()
        winner: tuple[lp.Node, Names] = start
        open_: list[tuple[Score, int, tuple[lp.Node, Names]]] = [(best, 0, start)]
        seen = {tree}
        for _ in range(EXPANSIONS):
            if not open_ or self.chooser.effort > EFFORT:
                break
            _, _, (current, names) = heapq.heappop(open_)
            for new, name in self._offers(current):
                if new in seen:
                    continue
                seen.add(new)
                found = self.score(new)
                offer = new, (*names, *name)
                heapq.heappush(open_, (found, len(seen), offer))
                if found < (best[0], best[1] * BETTER):
                    best, winner = found, offer
        return winner

    def score(self, tree: lp.Node) -> Score:
        return score(self.chooser.build(tree)[0])

    def _offers(self, tree: lp.Node) -> Iterator[tuple[lp.Node, Names]]:
        """Every plan that one application of one cost rule leads to, simplified."""
        for path, node, ctx in positions(tree, self.context()):
            for rule in self.rules["cost"]:
                new = apply(rule, node, ctx)
                if new is not node:
                    simple, names = self.fixpoint(put(tree, path, new), "always")
                    yield simple, (rule.name, *names)


def apply(rule: Rule, node: lp.Node, ctx: Context) -> lp.Node:
    """The rule's answer, checked: same columns, same arrivals (in order if that matters), pattern
    no worse.

    Columns keep their names: a node may name its columns otherwise than the input from which it
    passes them on.
    """
    look()
    new = rule.apply(node, ctx)
    if new is node or new == node:
        return node
    if [f.type for f in new.schema] != [f.type for f in node.schema]:
        raise _bug(rule.name, "changed the columns", node)
    if new.schema != node.schema:
        new = replace(new, schema=node.schema)
    if pattern_of(new) > pattern_of(node):
        raise _bug(rule.name, "made the update pattern worse", node)
    old_ids, new_ids = arrivals(node), arrivals(new)
    if sorted(old_ids) != sorted(new_ids) or (ctx.ordered and old_ids != new_ids):
        raise _bug(rule.name, "changed the identity of rows", node)
    return new if new != node else node


def below(node: lp.Node, child: int, ctx: Context) -> Context:
    """What the surroundings of that child are.

    Operators and sinks sort by `identity.order`, so the order of id columns is free, except in the
    branches of a union: there the id columns of different inputs lie in one.
    """
    ordered = ctx.ordered or isinstance(node, lp.Union)
    return replace(ctx, ordered=ordered, asked=demand(node, child, ctx.asked))


def positions(
    node: lp.Node, ctx: Context, path: Path = ()
) -> Iterator[tuple[Path, lp.Node, Context]]:
    """Every node with its path and surroundings, parents first."""
    yield path, node, ctx
    if isinstance(node, lp.Answer):
        return
    for i, child in enumerate(lp.children(node)):
        yield from positions(child, below(node, i, ctx), (*path, i))


def put(tree: lp.Node, path: Path, new: lp.Node) -> lp.Node:
    """The tree with another node at that path."""
    if not path:
        return new
    children = list(lp.children(tree))
    children[path[0]] = put(children[path[0]], path[1:], new)
    return lp.with_children(tree, tuple(children))


def _bug(rule: str, what: str, node: lp.Node) -> InternalError:
    return InternalError(
        "DS910",
        f"the rewrite rule {rule} {what} at a {type(node).__name__}; please report this with the "
        "query",
        hint="the query runs with WITH (optimize = false)",
    )
