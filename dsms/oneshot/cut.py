"""What of a plan can be done to each sub-window by itself, before the window as a whole is known.

Filters and projections right above a stream leaf, and those above the window over it where the
window goes by instants alone and reaches up to now: they commute with it.  The rest of the plan
runs over a leaf that hands out the rows as they have left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.oneshot.relation import Op, Pick, Where
from dsms.plan.windows import commutes, reads, until
from dsms.sql import logical as lp
from dsms.sql.window import WindowSpec


@dataclass(frozen=True, slots=True)
class Cut:
    """rest  the plan over leaves that have done their part
    ops   what each stream leaf does first, by leaf number
    """

    rest: lp.Node
    ops: dict[int, tuple[Op, ...]]


def cut(plan: lp.Node) -> Cut:
    """The plan in two; `dsms.oneshot.reads.reads` of the whole plan says what its leaves need."""
    ops: dict[int, tuple[Op, ...]] = {}
    return Cut(_rest(plan, ops), ops)


def _rest(node: lp.Node, ops: dict[int, tuple[Op, ...]]) -> lp.Node:
    found = _chain(node)
    if found is not None:
        scan, window, done = found
        ops[scan.leaf] = done
        leaf = replace(scan, schema=node.schema)
        return leaf if window is None else replace(window, child=leaf, schema=node.schema)
    if isinstance(node, lp.Append):
        return node  # its rows are given as they are
    return lp.with_children(node, tuple(_rest(child, ops) for child in lp.children(node)))


def _chain(node: lp.Node) -> tuple[lp.StreamScan, lp.Window | None, tuple[Op, ...]] | None:
    """The leaf, the window and the stateless work below `node`, if there is nothing else."""
    ops: list[Op] = []
    window: lp.Window | None = None
    while True:
        match node:
            case lp.StreamScan():
                return node, window, tuple(reversed(ops))
            case lp.Select():
                ops.append(Where(node.predicate))
            case lp.Project():
                ops.append(Pick(node.exprs))
            case lp.Window() if window is None and _commutes(node.spec):
                window = node
            case _:
                return None
        node = node.child


def _commutes(spec: WindowSpec) -> bool:
    """Whether what stands above it may be done below, projections too."""
    return commutes(spec) and not reads(spec) and not until(spec)
