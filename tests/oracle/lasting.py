"""When rows leave windows that ask them how long they stay: that depends on what the rows say, so
the input of such a window is evaluated before its instants are known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Lasting
from tests.oracle.facts import Change, Row
from tests.oracle.instants import instants
from tests.oracle.relational import Evaluator
from tests.oracle.windows import end_of

Deaths = Callable[[lp.Window], Collection[int]]


def with_deaths(
    plan: lp.Node,
    find: Callable[[Deaths], set[int]],
    evaluator: Callable[[Sequence[int]], Evaluator],
) -> set[int]:
    """The instants that `find` finds, given those at which rows leave such windows.

    A window over what another one has let in or out (a block that appends) needs those of that one
    first: so this goes on until no more are found."""
    asking = [n for n in lp.nodes_of(plan) if isinstance(n, lp.Window) and _asks(n)]
    known: dict[int, set[int]] = {}
    found = find(lambda node: known.get(id(node), ()))
    while asking:
        steps = sorted(found | {ALWAYS})
        evaluated = evaluator(steps)
        seen = {id(n): _ends(n, evaluated, len(steps) - 1) for n in asking}
        if seen == known:
            break
        known.update(seen)
        found = find(lambda node: known.get(id(node), ()))
    return found


def _asks(node: lp.Window) -> bool:
    return isinstance(node.spec, Lasting)


def _ends(node: lp.Window, evaluated: Evaluator, step: int) -> set[int]:
    assert isinstance(node.spec, Lasting)
    rows = evaluated.at(node.child, step)
    came = ((r, at) for r in rows for at in (r.birth, r.ts) if at > ALWAYS)
    ends = (end_of(node.spec, row, at) for row, at in came)
    return {int(e) for e in ends if ALWAYS < e < FOREVER}


def ends_of(
    node: lp.Window,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    ages: Mapping[str, int],
) -> set[int]:
    """When rows leave a window over what is no block that appends at boundaries."""

    def evaluator(steps: Sequence[int]) -> Evaluator:
        return Evaluator(steps, streams, tables, ages=ages)

    found = with_deaths(
        node.child,
        lambda deaths: instants(node.child, streams, tables, ages, deaths=deaths),
        evaluator,
    )
    steps = sorted(found | {ALWAYS})
    return _ends(node, evaluator(steps), len(steps) - 1)
