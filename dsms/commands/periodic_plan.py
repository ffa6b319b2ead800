"""How a query with SLIDE is evaluated: what is run, what is asked of synopses, and which access
path is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.commands.approximate import check_approximate
from dsms.periodic.counted import fits, is_counted, over_numbers
from dsms.periodic.incremental import inner_output, monotonic
from dsms.plan.paths import Asked, Offer, Path, choose, paths
from dsms.plan.physical import Phys
from dsms.running.runtime import Runtime
from dsms.sharing.join_request import JoinRequest, join_request, pays
from dsms.sharing.request import Request, request
from dsms.sharing.threshold import apart, threshold
from dsms.sql import logical as lp
from dsms.sql.catalog import Option


@dataclass(frozen=True, slots=True)
class Plan:
    """phys   what EXPLAIN shows;  core, inner: the continuous query whose answers are reported, and
           its plan
    wanted    what it asks of synopses, if they can answer it
    """

    phys: Phys
    core: lp.Output
    inner: Phys
    counted: bool
    wanted: Request | JoinRequest | None
    path: Path
    timed: bool = False  # points of a `Timeline` stand for instants


def periodic_plan(runtime: Runtime, bound: lp.Output, options: dict[str, Option]) -> Plan:
    """How a bound query with SLIDE is evaluated."""
    phys = runtime.plan(bound, options.items())
    output = phys.node
    assert isinstance(output, lp.Output) and bound.slide is not None
    core = inner_output(
        lp.Output(bound.child, output.kind, True, bound.restore, bound.slide, bound.schema),
        monotonic(phys),
    )
    counted = is_counted(bound)
    numbered, as_written = counted and fits(core), core
    if numbered:
        core = over_numbers(core)
    inner = runtime.plan(core, options.items())
    wanted = _wanted(bound, inner, counted, numbered) if options.get("on_error") != "stop" else None
    asked = Asked(replace(output, slide=bound.slide), inner, counted, numbered)
    path = choose(
        paths(asked, _offer(runtime, wanted, inner, counted, options)),
        str(options.get("path", "auto")),
    )
    if path.kind == "ISS" and _by_index(wanted, options):
        path = replace(path, kind="SS")
    check_approximate(options, path.kind, wanted)
    if path.kind == "WS" and numbered:
        core, inner = as_written, runtime.plan(as_written, options.items())
    timed = path.kind == "IS" and counted and not numbered
    if timed:
        inner = runtime.plan(core, {**options, "strategy": "nt"}.items())
    return Plan(phys, core, inner, counted, wanted, path, timed)


def _wanted(
    bound: lp.Output, inner: Phys, counted: bool, numbered: bool
) -> Request | JoinRequest | None:
    """What synopses are asked for, if they can answer the query."""
    root, slide = inner.node, bound.slide
    assert isinstance(root, lp.Output) and slide is not None
    if bound.restore or not slide.regular or counted != numbered:
        return None
    found = request(root.child, slide)
    return found if found is not None or counted else join_request(root.child, slide)


def _by_index(wanted: Request | JoinRequest | None, options: dict[str, Option]) -> bool:
    """Whether a collective index is asked for, and can be had: then no last answer is kept."""
    if options.get("path", "auto") != "auto":
        return False
    if options.get("synopsis") != "collective" and "approximate" not in options:
        return False
    return isinstance(wanted, Request) and threshold(wanted, wanted.above, below=True) is not None


def _offer(
    runtime: Runtime,
    wanted: Request | JoinRequest | None,
    inner: Phys,
    counted: bool,
    options: dict[str, Option],
) -> Offer | None:
    """What synopses offer.  Those of a join pay where they are there, or worth making."""
    if wanted is None:
        return None
    if isinstance(wanted, Request):
        declared = runtime.inputs[wanted.stream].definition.subwindow
        return runtime.shared.offer(wanted, counted, declared, not apart(options))
    grouped = inner
    while not isinstance(grouped.node, lp.GroupBy):
        (grouped,) = grouped.children
    groups = max(1.0, grouped.cost.size) if wanted.keys else 1.0
    return Offer(
        runtime.shared.joins.fits(wanted) or pays(wanted, groups, grouped.children[0].cost.rate)
    )
