"""Answers once more, the slow way: from all packets, at one boundary.  They must be what the server
says.

Exact answers must be equal.  Sketches must lie within their error bounds, with room for the rare
answer outside; what FREQUENT lists must occur more than δ times and at least as often as it says.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from examples.network.trace import SECOND, Trace

MINUTE = 60 * SECOND
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Check:
    """An answer of `query` at a boundary is right if `holds(trace, boundary, rows)`."""

    query: str
    period: int
    holds: Callable[[Trace, int, Rows], bool]


def wrong(trace: Trace, boundary: int, answers: dict[str, Rows]) -> Iterator[str]:
    """The queries whose answer at this boundary is wrong; `answers`: what each said (nothing, if it
    is not there)."""
    for check in CHECKS:
        rows = answers.get(check.query, [])
        if boundary % check.period == 0 and not check.holds(trace, boundary, rows):
            yield f"{check.query} at {(boundary - trace.begin) // SECOND} s: {rows}"


def window(trace: Trace, link: str, boundary: int, length: int) -> pa.Table:
    """The packets of a link in [boundary - length, boundary)."""
    rows = trace.links[link]
    at = rows["t"].cast(pa.int64()).to_numpy()
    first, last = np.searchsorted(at, [boundary - length, boundary])
    return rows.slice(first, last - first)


def counted(rows: pa.Table, by: str) -> list[tuple[Any, int]]:
    """Values and their counts, most frequent first, of equally frequent ones the smaller."""
    return sorted(Counter(rows[by].to_pylist()).items(), key=lambda item: (-item[1], item[0]))


def summed(rows: pa.Table, by: str) -> dict[Any, int]:
    """The sum of bytes by a column."""
    found = rows.group_by(by).aggregate([("bytes", "sum")])
    return dict(zip(found[by].to_pylist(), found["bytes_sum"].to_pylist(), strict=True))


# ---------------------------------------------------------------- one check each


def _load(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = window(trace, "north", boundary, MINUTE)
    return rows == [(len(held), pc.sum(held["bytes"]).as_py())]


def _talkers(trace: Trace, boundary: int, rows: Rows) -> bool:
    top = counted(window(trace, "north", boundary, 5 * MINUTE), "src")[:5]
    return rows == [(f"[{', '.join(src for src, _ in top)}]" if top else None,)]


def _packets(trace: Trace, boundary: int, rows: Rows) -> bool:
    return rows == counted(window(trace, "north", boundary, MINUTE), "src")[:5]


def _median(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = window(trace, "north", boundary, MINUTE)["bytes"].to_numpy()
    return rows == [(float(np.median(held)) if len(held) else None,)]


def _p99(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = np.sort(window(trace, "north", boundary, 5 * MINUTE)["bytes"].to_numpy())
    return rows == [(int(held[-(-99 * len(held) // 100) - 1]) if len(held) else None,)]


def _peers(trace: Trace, boundary: int, rows: Rows) -> bool:
    return rows == [(len(set(window(trace, "north", boundary, MINUTE)["dst"].to_pylist())),)]


def _some_protocols(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = window(trace, "north", boundary, MINUTE)
    held = held.filter(pc.is_in(held["port"], pa.array([80, 25])))
    return rows == [(pc.sum(held["bytes"]).as_py(),)]


def _scans(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = window(trace, "north", boundary, MINUTE)
    ports: dict[str, set[int]] = {}
    for src, port in zip(held["src"].to_pylist(), held["port"].to_pylist(), strict=True):
        ports.setdefault(src, set()).add(port)
    return dict(rows) == {src: len(found) for src, found in ports.items() if len(found) > 20}


def _floods(trace: Trace, boundary: int, rows: Rows) -> bool:
    totals = summed(window(trace, "south", boundary, 10 * SECOND), "dst")
    return dict(rows) == {dst: total for dst, total in totals.items() if total > 2_000_000}


def _on_both(trace: Trace, boundary: int, rows: Rows) -> bool:
    north, south = (
        set(window(trace, link, boundary, MINUTE)["src"].to_pylist()) for link in ("north", "south")
    )
    return {row[0] for row in rows} == north & south


def _pairs(trace: Trace, boundary: int, rows: Rows) -> bool:
    sides = []
    for link in ("north", "south"):
        held = window(trace, link, boundary, MINUTE)
        sides.append(Counter(held.filter(pc.equal(held["port"], 22))["src"].to_pylist()))
    return rows == [(sum(n * sides[1][src] for src, n in sides[0].items()),)]


def _sites(trace: Trace, boundary: int, rows: Rows) -> bool:
    sites, totals = trace.sites(), Counter[str]()
    for dst, total in summed(window(trace, "north", boundary, 5 * MINUTE), "dst").items():
        if dst in sites:
            totals[sites[dst]] += total
    return dict(rows) == dict(totals)


# ---------------------------------------------------------------- approximate ones

ERROR_OF_COUNT = 0.6931 / math.sqrt(2**11)  # standard error
ERROR_OF_RANK = 0.0133


def _near_peers(trace: Trace, boundary: int, rows: Rows) -> bool:
    true = len(set(window(trace, "north", boundary, 5 * MINUTE)["dst"].to_pylist()))
    return len(rows) == 1 and abs(rows[0][0] - true) <= max(1.0, 5 * ERROR_OF_COUNT * true)


def _near_p99(trace: Trace, boundary: int, rows: Rows) -> bool:
    held = np.sort(window(trace, "north", boundary, 5 * MINUTE)["bytes"].to_numpy())
    if not len(held) or not rows:
        return rows == [(None,)]
    least, most = (
        np.searchsorted(held, rows[0][0], "left"),
        np.searchsorted(held, rows[0][0], "right"),
    )
    room = 2 * ERROR_OF_RANK * len(held) + 1
    return bool(least - room <= 0.99 * len(held) <= most + room)


def _frequent(trace: Trace, boundary: int, rows: Rows) -> bool:
    true = dict(counted(window(trace, "north", boundary, MINUTE), "src"))
    if not rows or rows[0][0] is None:
        return bool(rows) and not true
    reported = json.loads(rows[0][0])
    return all(reported["delta"] < count <= true[src] for src, count in reported["items"])


CHECKS = (
    Check("load_1m", 10 * SECOND, _load),
    Check("talkers_5m", 30 * SECOND, _talkers),
    Check("packets_1m", 10 * SECOND, _packets),
    Check("median_1m", 10 * SECOND, _median),
    Check("p99_5m", 30 * SECOND, _p99),
    Check("peers_1m", 10 * SECOND, _peers),
    Check("web_or_mail", 10 * SECOND, _some_protocols),
    Check("scans", 10 * SECOND, _scans),
    Check("floods", 10 * SECOND, _floods),
    Check("on_both", 30 * SECOND, _on_both),
    Check("ssh_on_both", 10 * SECOND, _pairs),
    Check("sites", 30 * SECOND, _sites),
    Check("near_peers", 30 * SECOND, _near_peers),
    Check("near_p99", 30 * SECOND, _near_p99),
    Check("frequent_1m", 10 * SECOND, _frequent),
)
