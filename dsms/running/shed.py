"""Which answers lack rows that streams have shed, or joins let go: of queries over such streams, or
with such joins, and of what reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

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
    reads = {*query.reads, *map(Catalog.key, query.definition.over)}
    at = query.shown_clock if at is None else at
    found = kept_share(query, at), shares(runtime, reads, query.output, at)
    return min((share for share in found if share is not None), default=None)


def shares(runtime: Surroundings, reads: Iterable[str], plan: lp.Node, at: int) -> float | None:
    """As `share_of`, of a plan that reads streams and queries of these keys."""
    since = _since(plan, at)
    found: list[float | None] = []
    for key in reads:
        entry = runtime.inputs.get(key)
        if entry is None:
            found.append(_of(runtime, key, at))
            continue
        found.append(None if entry.shedder is None else entry.shedder.kept(since))
        found += [_of(runtime, Catalog.key(feeder), since) for feeder in entry.fed_by]
        found += [share for until, share in entry.lacking if until > since]
    return min((share for share in found if share is not None), default=None)


def remember(runtime: Surroundings, entry: StreamInput, query: Registered) -> None:
    """The query feeds the stream no more; what it has put in is what it was."""
    share = share_of(runtime, query, ALWAYS)
    if share is not None:
        later = [(until, s) for until, s in entry.lacking if until > query.clock or s < share]
        entry.lacking = (*later, (query.clock, share))


def told(runtime: Surroundings, plan: lp.Node, at: int) -> tuple[float | None, float | None]:
    """Of an answer that is given once: by which share its groups may miss a threshold, and the
    share of the rows that it rests on (`dsms.api.Rows`)."""
    reads = {home_of(leaf) for leaf in lp.leaves_of(plan)}
    return of_plan(runtime.queries, plan), shares(runtime, reads, plan, at)


def _of(runtime: Surroundings, key: str, at: int) -> float | None:
    query = runtime.queries.get(key)
    return None if query is None else share_of(runtime, query, at)


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
