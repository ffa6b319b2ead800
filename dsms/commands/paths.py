"""Access paths of periodic queries (Golab 2006, §7.2.1): which one a query takes, and why.

WS   window scan               the windows are read and the query computed from scratch
IS   incremental scan          operators keep state; only rows that came or expired are touched
SS   synopsis scan             pre-aggregated sub-windows are combined
ISS  incremental synopsis scan the last answer, and the sub-windows that came or expired
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dsms.adhoc.reads import from_past
from dsms.aggregates.cards import CARDS
from dsms.plan.identity import leaves
from dsms.plan.physical import Phys
from dsms.sql import logical as lp

Name = Literal["WS", "IS", "SS", "ISS"]
OVERHEAD = 2000.0  # row operations that a scan costs before it has read a row
SCANNED = 0.3  # row operations that a scanned row costs
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Path:
    """A path and the reason for it."""

    name: Name
    why: str


def path_of(output: lp.Output, inner: Phys, counted: bool, numbered: bool, fits_synopsis: bool, asked: str) -> Path:
    """The path of a query whose continuous form has the plan `inner`.

    counted: its SLIDE counts rows; numbered: and so do all its windows; asked: the option `path`."""
    past = "restore reports what lived between two boundaries" if output.restore else from_past(inner.node)
    if output.kind == "istream" and inner.node.kind == "istream":  # type: ignore[union-attr]
        past = past or "no row of the answer ever leaves, so only new ones are looked at"
    if counted and not numbered:
        past = past or _between_rows(inner.node)
    if asked in ("ss", "iss", "auto") and fits_synopsis:
        return Path("ISS" if asked == "iss" else "SS", "aggregates over windows, from pre-aggregated sub-windows")
    if asked == "ws" and past is None:
        return Path("WS", "asked for")
    if asked == "is" or past is not None:
        return Path("IS", past or "asked for")
    return Path("IS", "operators go on row by row") if numbered else _cheaper(output, inner, counted)


def _between_rows(node: lp.Node) -> str | None:
    """Why a scan as of an instant does not know the order of rows that are counted one by one within it."""
    if isinstance(node, lp.GroupBy) and any(CARDS[a.fn].ordered for a in node.aggs) and len(leaves(node)) > 1:
        return "FIRST, LAST, ARGMAX and ARGMIN over a join go by which row of an instant completed a result"
    return next((why for child in lp.children(node) if (why := _between_rows(child))), None)


def _cheaper(output: lp.Output, inner: Phys, counted: bool) -> Path:
    every = 0 if output.slide is None else output.slide.every
    period = every / (_rate(inner) if counted else SECOND)
    incremental, scan = inner.cost.total * period, OVERHEAD + SCANNED * _read(inner)
    told = f"about {_figure(incremental)} row operations a period, a scan about {_figure(scan)}"
    if scan < incremental / 4:
        return Path("WS", f"keeping state costs {told}")
    return Path("IS", f"only rows that came or expired are touched: {told}")


def _read(phys: Phys) -> float:
    """Rows that a scan reads, times the nodes they go through."""
    if isinstance(phys.node, lp.Window):
        return phys.cost.size
    own = sum(_read(c) for c in phys.children)
    return own + (0.0 if not phys.children else sum(c.cost.size for c in phys.children))


def _rate(phys: Phys) -> float:
    """Rows/s of the streams that have windows with a SLIDE, one with another."""
    found = [p.children[0].cost.rate for p in _windows(phys) if p.node.spec.slide is not None]  # type: ignore[union-attr]
    return max(sum(found) / max(1, len(found)), 1e-6)


def _windows(phys: Phys) -> Iterator[Phys]:
    if isinstance(phys.node, lp.Window):
        yield phys
    for child in phys.children:
        yield from _windows(child)


def _figure(x: float) -> str:
    return f"{x:.3g}" if x < 1e4 else f"{x / 1e3:.3g}k"
