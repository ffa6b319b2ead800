"""From a physical plan to a pipeline and a sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dsms.operators.base import Operator
from dsms.operators.build import Builder, inside
from dsms.operators.expressions import ErrorCounter
from dsms.operators.sink import SinkSpec, fitting_state
from dsms.plan.identity import by_value, order, width
from dsms.plan.netting import announces, may_cancel
from dsms.plan.physical import Pattern, Phys
from dsms.running.pipeline import Path, Pipeline, Stage
from dsms.running.sources import StreamSource
from dsms.sql import logical as lp


@dataclass(slots=True)
class Leaves:
    """Gives the leaves of a plan their operators and remembers the stream queues by leaf number."""

    table_source: Callable[[lp.TableScan], Operator]
    streams: dict[int, StreamSource]
    names: dict[int, str]
    tables: list[str]

    def source(self, node: lp.StreamScan | lp.TableScan) -> Operator:
        if isinstance(node, lp.TableScan):
            self.tables.append(node.table.home)
            return self.table_source(node)
        queue = StreamSource(node.schema)
        self.streams[node.leaf] = queue
        self.names[node.leaf] = node.stream.home
        return queue


def assemble(
    phys: Phys, builder: Builder, leaves: Leaves, timer: Callable[[], float] | None
) -> Pipeline:
    """Operators of the whole plan, inputs first."""
    stages: list[Stage] = []
    _add(phys, (), builder, stages)
    return Pipeline(stages, leaves.streams, timer)


def _add(phys: Phys, path: Path, builder: Builder, stages: list[Stage]) -> int:
    below = inside(builder, phys.node)
    inputs = tuple(_add(child, (*path, k), below, stages) for k, child in enumerate(phys.children))
    own = replace(builder, errors=builder.errors.of_operator())
    stages.append(Stage(path, own.operator(phys), inputs, errors=own.errors))
    return len(stages) - 1


def new_builder(
    leaves: Leaves,
    relation: Callable[[lp.TableScan], object],
    errors: ErrorCounter,
    eager_instants: bool,
) -> Builder:
    """A builder over those leaves."""
    return Builder(leaves.source, relation, errors, eager_instants)


def sink_spec(phys: Phys, eager_instants: bool = False) -> SinkSpec:
    """What the root of a plan asks of its sink."""
    node = phys.node
    assert isinstance(node, lp.Output)
    root = phys.children[0]
    value, cancels = by_value(node.child), may_cancel(node.child)
    mortal = root.pattern is not Pattern.MON
    view = (cancels and mortal) or (node.kind != "istream" and not announces(node.child))
    kept = phys.states[0] if phys.states and phys.states[0].kind != "none" else fitting_state(root)
    return SinkSpec(
        node.kind,
        node.schema,
        width(node.child),
        order(node.child),
        value,
        cancels and mortal,
        view,
        kept,
        root.strict,
        eager_instants,
    )
