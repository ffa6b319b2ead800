"""EXPLAIN as text: a physical plan as a tree; EXPLAIN ANALYZE adds live counts.

One line per node: what it is, the update pattern of its output edge, its operator variant and state
structures, and what it is expected to cost.  The line of an Output that SLIDEs says at which
boundaries it answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dsms.plan.explain_adaptive import adaptive_report, input_name
from dsms.plan.join_order import probing
from dsms.plan.physical import Adaptive, Phys, State
from dsms.plan.text import boundaries, describe
from dsms.sql import logical as lp

Path = tuple[int, ...]
Live = Mapping[Path, Mapping[str, Any]]

WIDE = 72  # a cell that is longer pushes the rest of its line to the right, and of no other

_TRIVIAL = frozenset(  # variants that say no more than the node's own line
    [
        "stream",
        "table",
        "values",
        "time",
        "now",
        "unbounded",
        "landmark",
        "rows",
        "partitioned",
        "select",
        "project",
    ]
    + ["merge", "append", "append-negative", "sort", "view"]
)


def as_text(phys: Phys, live: Live | None = None) -> str:
    """The plan as an indented tree in columns, then the rewrites that made it, then notes."""
    rows = [_row(path, node, live) for path, node in nodes(phys)]
    widths = [
        max((len(r[i]) for r in rows if len(r[i]) <= WIDE), default=0) for i in range(len(rows[0]))
    ]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    if phys.rules:
        lines.append("rewrites: " + ", ".join(phys.rules))
    for path, node in nodes(phys):
        lines += orders(node)
        if live is not None and "report" in live.get(path, {}):
            lines += adaptive_report(node, live[path]["report"])
    lines += [
        f"note: {describe(node.node)}: {note}" for _, node in nodes(phys) for note in node.notes
    ]
    return "\n".join(lines)


def nodes(phys: Phys, path: Path = ()) -> Iterator[tuple[Path, Phys]]:
    """Every node with its path from the root, parents first; not those of queries that it reads,
    whose own EXPLAIN shows them."""
    yield path, phys
    if isinstance(phys.node, lp.Answer):
        return
    for i, child in enumerate(phys.children):
        yield from nodes(child, (*path, i))


def _row(path: Path, phys: Phys, live: Live | None) -> list[str]:
    head = "  " * len(path) + title(phys)
    cells = [head, phys.pattern.name, how(phys), figures(phys)]
    return cells if live is None else [*cells, counts(live.get(path, {}))]


def title(phys: Phys) -> str:
    """What the node is; for a periodic Output also when it answers."""
    node = phys.node
    text = describe(node)
    if isinstance(node, lp.Output) and node.slide is not None:
        text += f", {boundaries(node.slide)}"
    return text


def how(phys: Phys) -> str:
    """Operator variant (where there is a choice) and state structures."""
    states = ", ".join(structure(s) for s in phys.states)
    variant = "" if phys.variant in _TRIVIAL else phys.variant
    return "  ".join(p for p in (variant, f"state: {states}" if states else "") if p)


def structure(state: State) -> str:
    """A state structure in words: `left calendar(64) lazy`."""
    size = f"({state.partitions})" if state.kind == "calendar" else ""
    what = "" if state.of == "input" else f"{state.of} "
    return (
        what
        + (state.kind if state.kind != "none" else "array")
        + size
        + (" lazy" if state.lazy else "")
    )


def orders(phys: Phys) -> list[str]:
    """Of a MultiJoin: the global order of its inputs, the next best, and what new rows of each
    input look into (Golab 2006, Table 5.2)."""
    found = phys.order
    if found is None:
        return []
    if isinstance(found, Adaptive):
        if found.tuning is None:
            how = "routes as it goes, a hash index for each attribute"
        else:
            how = (
                "routes and bit-address indices as it goes: "
                f"tuning = {found.tuning}, migration = {found.migration}"
            )
        return [f"{how} (cost {number(found.cost)})"]
    named = [input_name(child.node) for child in phys.children]

    def listed(inputs: Sequence[int]) -> str:
        return ", ".join(named[i] for i in inputs)

    looks = (f"of {name} {listed(probing(found.order, i))}" for i, name in enumerate(named))
    return [
        f"join order: {listed(found.order)} (cost {number(found.cost)}); next: "
        f"{listed(found.second)} ({number(found.second_cost)})",
        f"new rows look into: {'; '.join(looks)}",
    ]


def figures(phys: Phys) -> str:
    """Estimates: rows per second on the output edge, live rows, and operations per second of this
    node and below; nothing where they are withheld."""
    cost = phys.cost
    if math.isnan(cost.total):
        return ""
    return (
        f"{number(cost.rate)} rows/s, {number(cost.size)} live, cost {number(cost.own)} of "
        f"{number(cost.total)}"
    )


def without_figures(phys: Phys) -> Phys:
    """The plan without estimates, which are made of rows that who reads it may not know of."""
    cost = replace(phys.cost, total=math.nan)
    below = tuple(map(without_figures, phys.children))
    return replace(phys, cost=cost, order=None, children=below)


def counts(live: Mapping[str, Any]) -> str:
    """Live counts of EXPLAIN ANALYZE."""
    parts = []
    if "rows_in" in live:
        parts.append(f"in {int(live['rows_in'])}")
    if "rows_out" in live:
        parts.append(f"out {int(live['rows_out'])}")
    if "positive" in live or "negative" in live:
        parts.append(f"(+{int(live.get('positive', 0))} -{int(live.get('negative', 0))})")
    if "state_rows" in live:
        parts.append(f"state {int(live['state_rows'])} rows")
    if "bytes" in live:
        parts.append(f"{size(live['bytes'])}")
    if "ms" in live:
        parts.append(f"{live['ms']:.3g} ms")
    return " ".join(parts)


def number(x: float) -> str:
    """Three significant digits; whole numbers without a point: 0.05, 1.5, 120, 3.6k, 12M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if x >= limit:
            return f"{x / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def size(n: float) -> str:
    """A number of bytes."""
    for unit, limit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= limit:
            return f"{n / limit:.1f} {unit}"
    return f"{int(n)} B"
