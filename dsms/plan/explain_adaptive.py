"""What EXPLAIN ANALYZE says of an adaptive join: routes, access patterns, indices, and how often
they were changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from dsms.plan.index_choice import IndexConfig
from dsms.plan.physical import Phys
from dsms.plan.text import expression
from dsms.sql import logical as lp

Configs = Sequence[tuple[IndexConfig, int | None]]


def adaptive_report(phys: Phys, found: Mapping[str, Sequence[Any]]) -> list[str]:
    """Lines of an operator's report: `routes` by origin, `patterns` and their shares, `indices`
    (configuration and rows of each partition; rows None: the open one), `changes` by input, and how
    many partitions were `moved`."""
    node = phys.node
    assert isinstance(node, lp.MultiJoin)
    names = [input_name(child) for child in node.inputs]
    attributes = [_attributes(node, k) for k in range(len(names))]
    routes = (
        f"{name} to {', '.join(names[j] for j in route)}"
        for name, route in zip(names, found["routes"], strict=True)
    )
    lines = [f"routes now: {'; '.join(routes)}"]
    if not any(found["indices"]):
        return lines
    for k, name in enumerate(names):
        probed = _patterns(found["patterns"][k], attributes[k])
        indices = _indices(found["indices"][k], attributes[k])
        lines.append(
            f"index of {name}: {indices}; probed by {probed}; changed {found['changes'][k]} times"
        )
    return [*lines, f"partitions sorted anew: {found['moved'][0]}"]


def input_name(node: lp.Node) -> str:
    """An input by the names of the streams and tables below it."""
    names = list(dict.fromkeys(leaf.alias for leaf in lp.leaves_of(node)))
    return names[0] if len(names) == 1 else f"({' '.join(names)})"


def _attributes(node: lp.MultiJoin, k: int) -> list[str]:
    schema = node.inputs[k].schema
    return [expression(e, schema) for same in node.keys if (e := same[k]) is not None]


def _patterns(shares: Mapping[int, float], names: Sequence[str]) -> str:
    """The most frequent first."""
    often = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    shown = (f"{_given(ap, names)} {share:.0%}" for ap, share in often)
    return ", ".join(shown) or "nothing yet"


def _given(pattern: int, names: Sequence[str]) -> str:
    return " and ".join(n for a, n in enumerate(names) if pattern >> a & 1) or "none"


def _indices(configs: Configs, names: Sequence[str]) -> str:
    """Neighbours of one configuration together, oldest first."""
    parts = []
    for config, run in groupby(configs, key=lambda each: each[0]):
        rows = [n for _, n in run]
        sealed = sum(n for n in rows if n is not None)
        many = f"{len(rows)} partitions" if len(rows) > 1 else "1 partition"
        bits = ", ".join(f"{names[a]} {config.bits[a]}" for a in config.high) or "none"
        parts.append(f"{many} of {sealed} sealed rows with bits {bits}")
    return ", ".join(parts)
