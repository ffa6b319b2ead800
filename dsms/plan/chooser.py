"""Physical choice: operator variants and state structures by update pattern (Golab 2006, §3.5.2).

          upa                                              direct                     nt
window    time: stamps exp, keeps nothing                  the same                   time-negative:
          keeps its rows
WKS       fifo                                             list                       hash
WK        calendar                                         list                       hash
STR       hash if every death is announced, else calendar  list                       hash
DISTINCT  delta-star; counting over STR                    input-storing; the same    counting
one MIN   deque over WKS, else array                       array                      array

§3.5.2 stores a strict edge hashed, with all its deaths announced, where most are premature, because
a calendar queue must be searched for each premature death.  Here the identity index of every strict
input finds the row at once, so the calendar queue serves whatever the share of premature deaths;
hash is for edges on which nothing dies silently (count windows, tables, aggregates).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from dsms.plan import over, variants, windows
from dsms.plan.adaptive_order import adapting
from dsms.plan.cost import keep_cost, process_cost
from dsms.plan.demand import Demand
from dsms.plan.estimate import Estimate, estimate
from dsms.plan.growth import growth
from dsms.plan.identity import by_value, width
from dsms.plan.join_order import order_of
from dsms.plan.options import PlanOptions
from dsms.plan.patterns import pattern, pattern_of
from dsms.plan.physical import Adaptive, Cost, JoinOrder, Pattern, Phys, State
from dsms.plan.statistics import Statistics
from dsms.plan.variants import Place
from dsms.sql import logical as lp
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)

MIN_PARTITIONS, MAX_PARTITIONS, ROWS_PER_PARTITION = 10, 4096, 16

OF_RESULT = frozenset(
    {
        "output",
        "output + youngest",
        "window",
        "rows of each partition",
        "rows of open episodes",
        "first rows",
    }
)

Plans = tuple[Phys, ...]
Built = tuple[Phys, Estimate]


@dataclass(slots=True)
class Chooser:
    """Turns logical nodes into physical ones; remembers what it has seen, so that alternatives cost
    little."""

    stats: Statistics
    options: PlanOptions
    # by id: plans that run, of queries whose answers this one reads (`dsms.plan.answers`)
    running: Mapping[int, Phys] = field(default_factory=dict)
    # by id: hashing trees is slow
    _seen: dict[tuple[int, Place], tuple[lp.Node, Built]] = field(default_factory=dict)

    def build(self, node: lp.Node, place: Place = variants.TOP) -> Built:
        """The node's physical plan and estimate at that place of a plan."""
        key = (id(node), place)
        if key not in self._seen:
            phys, size = self._build(node, place)
            self._seen[key] = node, (self.running.get(id(node), phys), size)
        return self._seen[key][1]

    @property
    def effort(self) -> int:
        """How many nodes have been built so far."""
        return len(self._seen)

    def _build(self, node: lp.Node, place: Place) -> Built:
        built = [
            self.build(c, variants.below(node, i, place)) for i, c in enumerate(lp.children(node))
        ]
        plans, sizes = tuple(p for p, _ in built), [e for _, e in built]
        variant, notes = self._variant(node, plans, place)
        label = pattern(node, [p.pattern for p in plans], variant)
        size = estimate(node, sizes, self.stats, variant)
        states = self._states(node, variant, plans, sizes, label, size)
        order: JoinOrder | Adaptive | None = None
        if isinstance(node, lp.MultiJoin):
            adaptive = variant == "adaptive"
            order = adapting(node, sizes, self.options) if adaptive else order_of(node, sizes)
        own = self._own(node, variant, sizes, states, size, order)
        total = own + sum(p.cost.total for p in plans)
        flow = size.rate + size.announced(self.options.strategy)
        values = min(size.size, max((c.distinct for c in size.columns), default=1.0))
        cost = Cost(total, own, flow, size.size, values)
        grows = growth(node, plans, sizes, states)
        phys = Phys(
            node,
            plans,
            label,
            variant,
            states,
            cost,
            self.options.strategy,
            width(node),
            (),
            notes + grows,
            order,
        )
        return phys, size

    # ------------------------------------------------------------ variants

    def _variant(self, node: lp.Node, plans: Plans, place: Place) -> tuple[str, tuple[str, ...]]:
        match node:
            case lp.Window():
                return self._window(node.spec), ()
            case lp.Join():
                return variants.join(node, self.options.over), ()
            case lp.MultiJoin():
                return variants.multi_join(node, self.options.joins, self.options.over), ()
            case lp.JoinNRR() | lp.AsofJoin():
                return variants.finding(node, plans[0]), (
                    (variants.STRICT_NRR,) if plans[0].pattern is Pattern.STR else ()
                )
            case lp.SemiJoin():
                return variants.semijoin(node), ()
            case lp.Match():
                return variants.pattern(node, self.options.strategy), ()
            case lp.Distinct():
                return self._distinct(plans[0].pattern, place.asked)
            case lp.GroupBy():
                return variants.group(node, plans[0], place), ()
            case lp.TopN():
                return variants.top(node, plans[0]), ()
            case lp.Append():
                return variants.append(node, plans[0], self.options.strategy, place.restore), ()
            case lp.Output():
                return ("view" if node.kind == "rstream" else "stream"), ()
            case _:
                return VARIANTS[type(node)], ()

    def _window(self, spec: WindowSpec) -> str:
        negative = "-negative" if self.options.strategy == "nt" else ""
        match spec:
            case Time():
                return ("historical" if spec.until else "time") + negative
            case Now():
                return "now" + negative
            case Rows():
                return "historical-rows" if spec.until else "rows"
            case Partitioned():
                return "partitioned" if spec.age is None else "partitioned-aged"
            case Latest():
                return "latest"
            case Session():
                gaps = "session" if isinstance(spec.gap, int) else "session-gaps"
                return f"{gaps}-close" if spec.at_close else gaps
            case When():
                return "when-close" if spec.at_close else "when"
            case First():
                return "first"
            case Throttled():
                return ("historical-throttled" if spec.until else "throttled") + negative
            case Lasting():
                return ("historical-lasting" if spec.until else "lasting") + negative
            case Unbounded():
                return "historical-unbounded" if spec.until else "unbounded"
            case Landmark():
                return "historical-landmark" if spec.until else "landmark"
            case _:
                assert_never(spec)

    def _distinct(self, child: Pattern, asked: Demand) -> tuple[str, tuple[str, ...]]:
        """δ* and input-storing hand a value on to a younger row, which an operator that asks for
        its age must not see."""
        wanted, strategy = self.options.distinct, self.options.strategy
        if child is Pattern.MON:
            return "delta-star", ()
        must_count = asked is Demand.AGE or (child is Pattern.STR and wanted != "input-storing")
        if must_count or (strategy == "nt" and wanted == "delta-star"):
            refused = wanted not in ("auto", "counting")
            return "counting", (
                (f"{wanted} is not possible here: counting is used",) if refused else ()
            )
        if wanted != "auto":
            return wanted, ()
        return {"upa": "delta-star", "direct": "input-storing", "nt": "counting"}[strategy], ()

    # ------------------------------------------------------------ states

    def _states(
        self,
        node: lp.Node,
        variant: str,
        plans: Plans,
        sizes: list[Estimate],
        label: Pattern,
        size: Estimate,
    ) -> tuple[State, ...]:
        def kept(i: int, of: str, lazy: bool = False) -> State:
            return self.keep(plans[i].pattern, announced(plans[i]), sizes[i], of, lazy)

        match node:
            case lp.Window(spec=Latest()):
                return (kept(0, "last row of each key"),)
            case lp.Window():
                return _window_state(node.spec, variant)
            case lp.Join():
                lazy = node.kind == "inner" and self.options.strategy != "nt"
                return kept(0, "left", lazy), kept(1, "right", lazy)
            case lp.MultiJoin():
                lazy = self.options.strategy != "nt"
                return tuple(kept(k, f"input {k + 1}", lazy) for k in range(len(plans)))
            case lp.SemiJoin() | lp.SetOp():
                return kept(0, "left"), kept(1, "right")
            case lp.Match():
                return (State("hash", of="attempts of each key"),)
            case lp.JoinNRR():
                return (kept(0, "results"),) if variant == "probe-stored" else ()
            case lp.AsofJoin():
                newest = State("hash", of="newest row of each key")
                return (newest, kept(0, "results")) if variant == "merge-stored" else (newest,)
            case lp.Over():
                return (over.state(node),)
            case lp.Distinct() if variant == "delta-star":
                return (self.keep(label, False, size, "output + youngest"),)
            case lp.Distinct() if variant == "input-storing":
                return kept(0, "input"), self.keep(label, announced(plans[0]), size, "output")
            case lp.Distinct():
                return (kept(0, "input + counts"),)
            case lp.GroupBy() if variant == "closing":
                return ()
            case lp.GroupBy():
                return (
                    State("none", of="groups")
                    if plans[0].pattern is Pattern.MON
                    else kept(0, "input + groups"),
                )
            case lp.TopN() | lp.Sort():
                return (kept(0, variants.TOP_KEEPS.get(variant, "input")),)
            case lp.Output():
                return self._result(node, plans[0], sizes[0])
            case _:
                return ()

    def keep(
        self, label: Pattern, spoken: bool, rows: Estimate, of: str, lazy: bool = False
    ) -> State:
        """The structure for rows with that update pattern; `spoken`: every death is announced."""
        if label is Pattern.MON:
            return State("grow", of=of)
        match self.options.strategy:
            case "nt":
                return State("hash", of=of)
            case "direct":
                return State("list", lazy=lazy and label < Pattern.STR, of=of)
            case "upa" if label is Pattern.WKS:
                return State("fifo", lazy=lazy, of=of)
            case "upa" if label is Pattern.STR and spoken:
                return State("hash", of=of)
            case "upa":
                lazy = lazy and label < Pattern.STR
                return State(
                    "calendar", self.partitions(rows), lazy, of, self.options.partitions is not None
                )
            case _:
                assert_never(self.options.strategy)

    def partitions(self, rows: Estimate) -> int:
        """Buckets of a calendar queue: as asked, else so many that one holds a few rows, none under
        a microsecond."""
        if self.options.partitions is not None:
            return self.options.partitions
        wanted = min(max(MIN_PARTITIONS, rows.size / ROWS_PER_PARTITION), MAX_PARTITIONS)
        return int(max(1.0, min(wanted, rows.span * 1e6)))

    def _result(self, node: lp.Output, child: Phys, rows: Estimate) -> tuple[State, ...]:
        """A view is kept; a stream of what enters needs the answer only to net by value, one of
        what leaves always."""
        nets = by_value(node.child) and child.pattern > Pattern.MON
        needed = node.kind == "rstream" or (
            child.pattern > Pattern.MON and (nets or node.kind == "dstream")
        )
        return (self.keep(child.pattern, announced(child), rows, "output"),) if needed else ()

    # ------------------------------------------------------------ cost

    def _own(
        self,
        node: lp.Node,
        variant: str,
        sizes: list[Estimate],
        states: tuple[State, ...],
        size: Estimate,
        order: JoinOrder | Adaptive | None,
    ) -> float:
        strategy = self.options.strategy
        arrivals = sum(e.rate for e in sizes)
        made = 0.0
        if isinstance(node, lp.MultiJoin):
            made = estimate(replace(node, residual=None), sizes, self.stats).rate
        work = process_cost(node, variant, sizes, strategy, made, order)
        for k, state in enumerate(states):
            rows = size if state.of in OF_RESULT else sizes[k]
            work += keep_cost(state, rows, strategy, arrivals)
        return work


def _window_state(spec: WindowSpec, variant: str) -> tuple[State, ...]:
    match spec:
        case Partitioned():
            return (State("fifo", of="rows of each partition"),)
        case Rows():
            return (State("fifo", of="window"),)
        case Time() | Now():
            stores = variant.endswith("negative") or variant.startswith("historical")
            return (State("fifo", of="window"),) if stores else ()
        case Unbounded() | Landmark():
            return (State("fifo", of="rows to enter"),) if spec.until else ()
        case Session() | When():
            return (State("fifo", of="rows of open episodes"),)
        case First() | Throttled():
            stores = variant.endswith("negative") or variant.startswith("historical")
            partitions = (State("none", of="partitions"),)
            return (*partitions, State("fifo", of="window")) if stores else partitions
        case Lasting():
            waiting = (State("fifo", of="rows to enter"),) if spec.until else ()
            kept = (State("calendar", of="window"),) if variant.endswith("negative") else ()
            return waiting + kept
        case Latest():
            return ()
        case _:
            assert_never(spec)


VARIANTS: dict[type, str] = {
    lp.StreamScan: "stream",
    lp.TableScan: "table",
    lp.Values: "values",
    lp.Select: "select",
    lp.Project: "project",
    lp.SetOp: "counting",
    lp.Unnest: "unnest",
    lp.Over: "frames",
    lp.Union: "merge",
    lp.Answer: "answer",
    lp.Sort: "sort",
}


def announced(phys: Phys) -> bool:
    """Whether every death on the node's output edge is announced by a deletion, none left to
    `exp`."""
    if phys.pattern is Pattern.MON:
        return False
    if phys.strategy == "nt":
        return True
    match phys.node:
        case lp.TableScan() | lp.GroupBy():
            return True
        case lp.Window(spec=spec) if not isinstance(spec, Latest):
            return not windows.alone(spec)
        case lp.Append():
            return False
        case lp.SemiJoin() | lp.SetOp() | lp.AsofJoin():
            return phys.children[0].pattern is Pattern.MON or announced(phys.children[0])
        case _:
            return all(c.pattern is Pattern.MON or announced(c) for c in phys.children)


def with_kind(output: lp.Output) -> lp.Output:
    """The output with its default filled in: Istream of a monotonic plan, Rstream of others."""
    if output.explicit:
        return output
    return replace(output, kind="istream" if pattern_of(output.child) is Pattern.MON else "rstream")
