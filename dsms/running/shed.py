"""Which answers lack rows that streams have shed, or joins let go: of queries over such streams, or
with such joins, and of what reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from dsms.intake.stream import StreamInput
from dsms.plan.windows import longest
from dsms.running.approximation import home_of, of_plan
from dsms.running.letting_go import kept_share
from dsms.running.registered import Registered
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS


class Surroundings(Protocol):
    """The runtime (`dsms.running.runtime`)."""

    inputs: dict[str, StreamInput]
    queries: dict[str, Registered]


def share_of(runtime: Surroundings, query: Registered, at: int | None = None) -> float | None:
    """Which share of the rows that came a query's answer, at an instant (None: its clock), rests
    on: the least of the streams that it reads, over the instants that its windows hold, and of its
    joins, of the rows that these would hold.  None: all of them."""
    at = query.shown_clock if at is None else at
    found = _let_go(query, at), shares(runtime, _keys(query), query.output, at)
    return min((share for share in found if share is not None), default=None)


def shares(runtime: Surroundings, reads: Iterable[str], plan: lp.Node, at: int) -> float | None:
    """As `share_of`, of a plan that reads streams and queries of these keys.  What is behind them
    is looked at once, whatever leads there, for the earliest instant."""
    first = [_node(runtime, key) for key in reads]
    order = _in_order(runtime, first)
    if not any(_loses(runtime, node) for node in order):
        return None
    since = _since(plan, at)
    known = {node: since if node.stream else at for node in first}
    found: list[float | None] = []
    for node in order:
        at = since = known[node]
        query, entry = _query(runtime, node), _entry(runtime, node)
        if query is not None:
            found.append(_let_go(query, at))
            since = _since(query.output, at)
        if entry is not None:
            found.append(None if entry.shedder is None else entry.shedder.kept(at))
            found += [share for until, share in entry.lacking if until > at]
        for other in _read_by(runtime, node):
            mine = since if other.stream else at
            known[other] = min(mine, known.get(other, mine))
    return min((share for share in found if share is not None), default=None)


def remember(runtime: Surroundings, entry: StreamInput, query: Registered) -> None:
    """The query feeds the stream no more; what it has put in is what it was."""
    share = share_of(runtime, query, ALWAYS)
    if share is not None:
        later = [(until, s) for until, s in entry.lacking if until > query.clock or s < share]
        entry.lacking = (*later, (query.clock, share))


class Node(NamedTuple):
    """A stream, or a query, by its key."""

    stream: bool
    key: str


def _node(runtime: Surroundings, key: str) -> Node:
    return Node(key in runtime.inputs, key)


def _entry(runtime: Surroundings, node: Node) -> StreamInput | None:
    return runtime.inputs.get(node.key) if node.stream else None


def _query(runtime: Surroundings, node: Node) -> Registered | None:
    return None if node.stream else runtime.queries.get(node.key)


def _let_go(query: Registered, at: int) -> float | None:
    return kept_share(query, at) if query.lets_go else None


def _loses(runtime: Surroundings, node: Node) -> bool:
    """Whether rows may be left out there."""
    query, entry = _query(runtime, node), _entry(runtime, node)
    if entry is not None:
        return entry.shedder is not None or bool(entry.lacking)
    return query is not None and query.lets_go


def _keys(query: Registered) -> set[str]:
    return {*query.reads, *map(Catalog.key, query.definition.over)}


def _read_by(runtime: Surroundings, node: Node) -> list[Node]:
    """What a query reads, or which queries feed a stream."""
    query, entry = _query(runtime, node), _entry(runtime, node)
    if entry is not None:
        return [Node(False, Catalog.key(feeder)) for feeder in entry.fed_by]
    return [] if query is None else [_node(runtime, key) for key in _keys(query)]


def _in_order(runtime: Surroundings, first: Iterable[Node]) -> list[Node]:
    """These and all behind them, whoever reads before what it reads."""
    order: list[Node] = []
    seen: set[Node] = set()
    ahead = [(node, False) for node in first]
    while ahead:
        node, over = ahead.pop()
        if over:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            ahead.append((node, True))
            ahead += [(other, False) for other in _read_by(runtime, node)]
    return order[::-1]


def told(runtime: Surroundings, plan: lp.Node, at: int) -> tuple[float | None, float | None]:
    """Of an answer that is given once: by which share its groups may miss a threshold, and the
    share of the rows that it rests on (`dsms.api.Rows`)."""
    reads = {home_of(leaf) for leaf in lp.leaves_of(plan)}
    return of_plan(runtime.queries, plan), shares(runtime, reads, plan, at)


def _since(plan: lp.Node, at: int) -> int:
    """The instant behind which all rows lie that an answer at `at` rests on, if windows say so."""
    windows = [n.spec for n in lp.nodes_of(plan) if isinstance(n, lp.Window)]
    scans = sum(isinstance(n, lp.StreamScan) for n in lp.nodes_of(plan))
    lengths = [longest(window) for window in windows]
    if not lengths or len(lengths) < scans or at == ALWAYS:
        return ALWAYS
    known = [length for length in lengths if length is not None]
    return ALWAYS if len(known) < len(lengths) else at - max(known)


def scaled(options: Mapping[str, object]) -> bool:
    """Whether the sums of a query make up for what was shed."""
    return options.get("shed") == "scale"
