"""The order in which rows take through the windows of an adaptive join, and what it costs.

Not fixed by the plan: the operator looks for it again and again (`dsms.operators.routing`).  The
planner does so once, with its statistics, to know what such a join would cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dsms.plan.estimate import Estimate
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Adaptive
from dsms.plan.statistics import column_of
from dsms.sql import logical as lp

# to probe all partitions of a window, and each row that is found, as shares of what it costs to
# process and keep a row (measured with `python -m tests.benchmarks amri`)
PROBED, FOUND = 1.6, 0.4

Expects = Callable[[int, int], tuple[float, float]]
Route = tuple[float, tuple[int, ...]]


def cheapest(origin: int, classes: Sequence[Sequence[int]], expects: Expects, each: float) -> Route:
    """(cost, order of the other inputs) that is least, given the equality classes of each input's
    attributes, (matches, cost) of a probe of an input with a pattern, and the cost of a match.

    By dynamic programming over sets of inputs.  Only an input that has a class in common with those
    before it comes into question; all are connected."""
    n = len(classes)
    sets = [sum(1 << c for c in set(of)) for of in classes]
    # by set of inputs: (cost, partial results, order, classes known)
    best = {1 << origin: (0.0, 1.0, tuple[int, ...](), sets[origin])}
    for size in range(1, n):
        for done in [s for s in best if s.bit_count() == size]:
            cost, partial, order, known = best[done]
            for j in range(n):
                if done >> j & 1 or not sets[j] & known:
                    continue
                pattern = sum(1 << a for a, c in enumerate(classes[j]) if known >> c & 1)
                matches, price = expects(j, pattern)
                total = cost + partial * (price + each * matches)
                if done | 1 << j not in best or total < best[done | 1 << j][0]:
                    step = total, partial * matches, (*order, j), known | sets[j]
                    best[done | 1 << j] = step
    cost, _, order, _ = best[(1 << n) - 1]
    return cost, order


def classes_of(node: lp.MultiJoin) -> list[tuple[int, ...]]:
    """The equality classes of each input's attributes."""
    return [
        tuple(c for c, same in enumerate(node.keys) if same[k] is not None)
        for k in range(len(node.inputs))
    ]


def connected(node: lp.MultiJoin) -> bool:
    """Whether its equalities connect all inputs."""
    sets = [set(of) for of in classes_of(node)]
    reached, todo = {0}, [0]
    while todo:
        i = todo.pop()
        near = [j for j in range(len(sets)) if j not in reached and sets[i] & sets[j]]
        reached.update(near)
        todo += near
    return len(reached) == len(sets)


def patterns_met(node: lp.MultiJoin) -> int:
    """How many access patterns an input can be probed with, at most."""
    sets = [sum(1 << c for c in of) for of in classes_of(node)]
    met: list[set[int]] = [set() for _ in sets]
    todo = [(1 << i, known) for i, known in enumerate(sets)]
    seen = set(todo)
    while todo:
        done, known = todo.pop()
        for j, own in enumerate(sets):
            if done >> j & 1 or not own & known:
                continue
            met[j].add(own & known)
            step = done | 1 << j, known | own
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return max(map(len, met))


def adaptive_cost(node: lp.MultiJoin, sizes: Sequence[Estimate]) -> float:
    """Per unit of time, of the probes of all inputs' new rows along their best routes."""
    classes = classes_of(node)
    values = [
        [column_of(e, sizes[k].columns).distinct for same in node.keys if (e := same[k])]
        for k in range(len(sizes))
    ]
    widest = {
        c: max(v for of, vs in zip(classes, values, strict=True)
               for d, v in zip(of, vs, strict=True) if d == c)
        for c in range(len(node.keys))
    }  # by class  # fmt: skip

    def expects(j: int, pattern: int) -> tuple[float, float]:
        given = [c for a, c in enumerate(classes[j]) if pattern >> a & 1]
        return sizes[j].size / math.prod(max(1.0, widest[c]) for c in given), PROBED

    return sum(size.rate * cheapest(i, classes, expects, FOUND)[0] for i, size in enumerate(sizes))


def adapting(node: lp.MultiJoin, sizes: list[Estimate], options: PlanOptions) -> Adaptive:
    """What it costs, and how its indices are tuned, if the query says something of it."""
    migration, tuning = options.migration, options.tuning
    if migration or tuning:
        migration, tuning = migration or "nothing", tuning or "hybrid"
    return Adaptive(migration, tuning, adaptive_cost(node, sizes))
