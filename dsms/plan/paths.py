"""Access paths of periodic queries (Golab 2006, §7.2.1): which there are for a query, what they
cost, which is taken.

WS   window scan               the windows are read and the query computed from scratch
IS   incremental scan          operators keep state; only rows that came or expired are touched
SS   synopsis scan             pre-aggregated sub-windows are combined
ISS  incremental synopsis scan the last answer, and the sub-windows that came or expired
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dsms.aggregates.cards import CARDS
from dsms.plan.identity import leaves
from dsms.plan.physical import Phys
from dsms.plan.windows import rescanned
from dsms.sql import logical as lp
from dsms.sql.plan_reads import holds_all
from dsms.sql.window import Session, When, WindowSpec

Kind = Literal["WS", "IS", "SS", "ISS"]
MEANINGS: dict[Kind, str] = {
    "WS": "window scan",
    "IS": "incremental scan",
    "SS": "synopsis scan",
    "ISS": "incremental synopsis scan",
}
OVERHEAD = 2000.0  # row operations that a scan costs before it has read a row
SCANNED = 0.3  # row operations that a scanned row costs
WORTH = 4.0  # times less that a scan must cost to be taken: its cost comes all at once
SPARED = 2.0  # times fewer cells that the last answer must spare to be kept
SECOND = 1_000_000
UNFOLLOWED = "its aggregates are put together from sub-windows, and no synopsis answers the query"
AGGREGATES = "aggregates over windows, from pre-aggregated sub-windows"


@dataclass(frozen=True, slots=True)
class Path:
    """A path, and the reason for it.  `cost`: row operations a period, about; None: not known
    before it runs."""

    kind: Kind
    cost: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Synopses can answer the query.

    pays    they are there, or worth making; else they must be asked for
    cells   that SS and ISS combine for an answer; None: no last answer can be kept"""

    pays: bool = True
    cells: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A query whose continuous form has the plan `inner`; `output` as it was written.

    counted  its SLIDE counts rows;  numbered: and so do all its windows"""

    output: lp.Output
    inner: Phys
    counted: bool
    numbered: bool


def paths(asked: Asked, offer: Offer | None) -> list[Path]:
    """All that can answer the query; the first is taken unless another is asked for.  `offer`: of
    shared synopses."""
    scans = _scans(asked)
    if offer is None:
        return scans
    shared = _shared(offer)
    return [*shared, *scans] if offer.pays else [*scans, *shared]


def lookup_paths(shared: bool, indexed: bool | None, unfollowed: bool = False) -> list[Path]:
    """Those of a query ON LOOKUP.

    shared      synopses can answer it
    indexed     its rows are found by indices when it is asked; None: it can't be answered so late
    unfollowed  no state follows its rows one by one"""
    found = [Path("SS", None, AGGREGATES)] if shared else []
    read = Path("WS", None, "its windows are read when it is asked")
    if unfollowed and indexed is not None:
        return [*found, read]
    waiting = Path("IS", None, "rows wait until it is asked, or too many do")
    if indexed is None:
        return [*found, waiting]
    return [*found, read, waiting] if indexed else [*found, waiting, read]


def _shared(offer: Offer) -> list[Path]:
    """SS always; ISS where the last answer can be kept."""
    whole, last = Path("SS", None, AGGREGATES), Path("ISS", None, AGGREGATES)
    if offer.cells is None:
        return [whole]
    scan, steps = offer.cells
    return [last, whole] if scan > SPARED * steps else [whole, last]


def choose(found: Sequence[Path], wish: str) -> Path:
    """Of those `paths` the one that is taken.  `wish`: the option `path`; one that can't be had is
    passed over."""
    kinds = [p.kind for p in found]
    if wish == "iss" and "ISS" not in kinds:
        wish = "ss"
    wished = next((p for p in found if p.kind == wish.upper()), None)
    if wished is None:
        return next((p for p in found if p.kind == "IS"), found[0]) if wish == "ws" else found[0]
    free = wished.kind in ("WS", "IS") and {"WS", "IS"} <= set(kinds)
    return replace(wished, why="asked for") if free else wished


def _scans(asked: Asked) -> list[Path]:
    """IS but where no state follows single rows; WS where the answer is a function of what the
    windows hold."""
    past, (incremental, scan) = _past(asked), _costs(asked)
    if past is not None:
        return [Path("IS", incremental, past)]
    figures = f"about {_figure(incremental)} row operations a period, a scan about {_figure(scan)}"
    if unfollowed(asked.inner.node):
        return [Path("WS", scan, UNFOLLOWED)]
    whole = Path("WS", scan, f"keeping state costs {figures}")
    if asked.numbered:
        return [Path("IS", incremental, "operators go on row by row"), whole]
    rows = Path("IS", incremental, f"only rows that came or expired are touched: {figures}")
    return [whole, rows] if scan < incremental / WORTH else [rows, whole]


def unfollowed(node: lp.Node) -> bool:
    """Whether an aggregate of the plan is put together from sub-windows: no state follows the rows
    that come and leave one by one."""
    return any(
        CARDS[call.fn].sampled
        for found in lp.nodes_of(node)
        if isinstance(found, lp.GroupBy)
        for call in found.aggs
    )


def _past(asked: Asked) -> str | None:
    """Why a scan would not find the answer; None if it would."""
    output, inner = asked.output, asked.inner.node
    if output.restore:
        return "restore reports what lived between two boundaries"
    if (past := from_past(inner)) is not None:
        return past
    if any(isinstance(n, lp.Window) and not rescanned(n.spec) for n in lp.nodes_of(inner)):
        return "rows of its windows may live longer than any that would be kept for a scan"
    if any(isinstance(n, lp.AsofJoin) for n in lp.nodes_of(inner)):
        return "ASOF JOIN finds rows that may be older than what windows hold"
    if any(isinstance(n, lp.Over) for n in lp.nodes_of(inner)):
        return "OVER looks at rows that may be older than what windows hold"
    if output.kind == "istream" and isinstance(inner, lp.Output) and inner.kind == "istream":
        return "no row of the answer ever leaves, so only new ones are looked at"
    return _between_rows(inner) if asked.counted and not asked.numbered else None


def from_past(node: lp.Node) -> str | None:
    """Why the answer is no function of what the windows hold now, for a sentence; None where it is.

    Such a plan, evaluated again and again, runs incrementally; asked once, rows count as born at
    their own ts."""
    match node:
        case lp.Append():
            return "results over INTERNAL windows stay"
        case lp.Window(spec=Session() | When()):
            return "an episode may have begun before all rows that are kept"
        case lp.Window() if holds_all(node):
            return "what a stream with KEY holds may be older than all rows that are kept"
        case lp.Match(skip=True):
            return "a match may be skipped because of one before all rows that are kept"
        case lp.JoinNRR() if _reborn(node.child):
            return (
                "a non-retroactive table is read as of the instant at which rows of this input "
                "came (back)"
            )
        case lp.GroupBy() if _reborn(node.child) and any(CARDS[a.fn].ordered for a in node.aggs):
            return "FIRST, LAST, ARGMAX and ARGMIN go by when rows of this input came (back)"
        case _:
            return next((why for child in lp.children(node) if (why := from_past(child))), None)


def _reborn(node: lp.Node) -> bool:
    """Whether rows of the node may leave and come back, or change, while their parts stay."""
    match node:
        case lp.SemiJoin() | lp.SetOp() | lp.Distinct() | lp.GroupBy() | lp.TopN():
            return True
        case lp.Join() if node.kind != "inner":
            return True
        case lp.AsofJoin():
            return _reborn(node.left)
        case _:
            return any(_reborn(child) for child in lp.children(node))


def _between_rows(node: lp.Node) -> str | None:
    """Why a scan as of an instant does not know the order of rows that are counted one by one
    within it."""
    if (
        isinstance(node, lp.GroupBy)
        and any(CARDS[a.fn].ordered for a in node.aggs)
        and len(leaves(node)) > 1
    ):
        return (
            "FIRST, LAST, ARGMAX and ARGMIN over a join go by which row of an instant "
            "completed a result"
        )
    return next((why for child in lp.children(node) if (why := _between_rows(child))), None)


# ---------------------------------------------------------------- costs


def _costs(asked: Asked) -> tuple[float, float]:
    """Of IS and of WS."""
    every = 0 if asked.output.slide is None else asked.output.slide.every
    period = every / (_rate(asked.inner) if asked.counted else SECOND)
    return asked.inner.cost.total * period, OVERHEAD + SCANNED * _read(asked.inner)


def _read(phys: Phys) -> float:
    """Rows that a scan reads, times the nodes they go through."""
    if isinstance(phys.node, lp.Window):
        return phys.cost.size
    own = sum(_read(c) for c in phys.children)
    return own + (0.0 if not phys.children else sum(c.cost.size for c in phys.children))


def _rate(phys: Phys) -> float:
    """Rows/s of the streams that have windows with a SLIDE, one with another."""
    found = [rate for spec, rate in _windows(phys) if spec.slide is not None]
    return max(sum(found) / max(1, len(found)), 1e-6)


def _windows(phys: Phys) -> Iterator[tuple[WindowSpec, float]]:
    """Each with the rows/s that come to it."""
    if isinstance(phys.node, lp.Window):
        yield phys.node.spec, phys.children[0].cost.rate
    for child in phys.children:
        yield from _windows(child)


def _figure(x: float) -> str:
    return f"{x:.3g}" if x < 1e4 else f"{x / 1e3:.3g}k"
