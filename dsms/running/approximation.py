"""Which answers are approximate: those of queries `WITH (approximate = e)`, and of what reads
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsms.running.registered import Registered
from dsms.sql import logical as lp


def approximate(queries: Mapping[str, Registered], keys: Iterable[str]) -> float | None:
    """By which share groups may miss a threshold of HAVING, of some of these queries or of those
    that they read; None: no group does."""
    seen: set[str] = set()
    ahead = list(keys)
    shares: list[float] = []
    while ahead:
        query = queries.get(key := ahead.pop())
        if query is None or key in seen:
            continue
        seen.add(key)
        ahead += query.definition.over
        shares += [] if query.approximate is None else [query.approximate]
    return max(shares, default=None)


def of_plan(queries: Mapping[str, Registered], plan: lp.Node) -> float | None:
    """`approximate`, of what a plan that runs once reads."""
    return approximate(queries, map(home_of, lp.leaves_of(plan)))


def home_of(leaf: lp.StreamScan | lp.TableScan) -> str:
    """The key of what a leaf reads."""
    return leaf.stream.home if isinstance(leaf, lp.StreamScan) else leaf.table.home
