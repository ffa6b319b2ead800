"""Continuous queries whose plans have parts in common share what runs them.

A query begins alone, over what is kept of its windows, as it would without others.  Where it then
stands at the same instant as another one, and the part would make the same rows from there on, the
part of the other one works for both, and its own is given up.  That is so

    same        if both have been given the same rows: of the same state comes the same
    arrivals    if each row of the part is made of arrivals alone (windows in time, selections,
                joins): those made of arrivals that came before the query was there are left out
    live rows   if both have all that is alive in the windows and, of a GROUP BY, stand by the same
                rows with the same ids: then what they keep is the same

Else both stay alone; where time may change that it is looked at again, after longer and longer
stretches.  Nothing here is state: which parts there are stands in the queries' pipelines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from dsms.operators.expressions import can_fail
from dsms.operators.predicate_index import atom_of
from dsms.plan.above import Offered
from dsms.plan.parts import (
    Key,
    columns_from,
    expressions_of,
    is_of_arrivals,
    is_of_live_rows,
    keys_of,
    node_at,
    streams_of,
    tables_of,
)
from dsms.plan.physical import Phys
from dsms.running.dispatch import Dispatch
from dsms.running.exchanging import Exchange
from dsms.running.part import Part, PartFeed, feeds_of
from dsms.running.pipeline import Path, Reporting
from dsms.running.query import RunningQuery
from dsms.running.splitting import Unit, give_way, let_go, located, split_off
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Session, When, counts
from dsms.state.batch import Batch

Fit = Literal["same", "arrivals", "live rows"]
MOST = 1 << 18  # rows of answers that are compared in one go
SOON = 1_000_000  # µs after which what does not fit is looked at again, at the earliest


@dataclass(slots=True)
class SharedParts:
    """Which parts which queries have.

    on       parts are shared; else each query runs alone
    keys     of the parts of each query that are worth sharing, by place
    known    queries by the keys of their parts, with the place
    pending  when a query is looked at again, and since when it has been
    made     parts so far
    wanted   how many queries would have had a part (`dsms.plan.above`)
    """

    dispatch: Dispatch
    on: bool = True
    keys: dict[str, dict[Path, Key]] = field(default_factory=dict)
    known: dict[Key, dict[str, Path]] = field(default_factory=dict)
    pending: dict[str, tuple[int, int]] = field(default_factory=dict)
    made: int = 0
    wanted: Counter[Key] = field(default_factory=Counter)

    @classmethod
    def over(cls, dispatch: Dispatch, on: bool) -> SharedParts:
        """Of queries that are there already."""
        found = cls(dispatch, on)
        found.made = max((part.number for part in dispatch.parts.values()), default=0)
        for key, query in dispatch.queries.items():
            if on and (running := _sharer(query)) is not None:
                found._know(key, running)
        for key in found.keys:
            if found._has_company(key):
                found.pending[key] = ALWAYS, ALWAYS
        return found

    def _has_company(self, key: str) -> bool:
        """Whether other queries have a part that this one has."""
        return any(len(self.known[part_key]) > 1 for part_key in self.keys[key].values())

    def joined(self, *keys: str) -> None:
        """Queries have begun, or have other plans."""
        found = [(key, _sharer(self.dispatch.queries[key])) for key in keys if self.on]
        for key, query in found:
            if query is not None:
                self._know(key, query)
        for key, query in found:
            if query is not None and self._has_company(key):
                self._look(key, query, query.clock)

    def renamed(self, key: str, to: str) -> None:
        """A query has another key."""
        if key in self.keys:
            self.keys[to] = self.keys.pop(key)
        for part_key in self.keys.get(to, {}).values():
            self.known[part_key] = {
                to if k == key else k: p for k, p in self.known[part_key].items()
            }
        if key in self.pending:
            self.pending[to] = self.pending.pop(key)

    def left(self, key: str, query: object) -> None:
        """A query is gone, and with it the parts that nothing else uses."""
        self._forget(key, query)
        if isinstance(query, RunningQuery) and query.shares:
            self._free(query.feeds)

    def exchanged(self, exchange: Exchange, keys: Sequence[str]) -> None:
        """Other joins take the place of those at work; then queries of these keys have `joined`."""
        for key in keys:
            self._forget(key, self.dispatch.queries[key])
        gone = exchange.take_place(self.part_of)
        if gone and isinstance(exchange.unit, RunningQuery):
            self.dispatch.anew(_key_of(self.dispatch, exchange.unit))
        self._free_parts(gone)

    def _forget(self, key: str, query: object) -> None:
        self.pending.pop(key, None)
        if key in self.keys and isinstance(query, RunningQuery):
            self.wanted -= Counter(query.phys.wants)
        for part_key in set(self.keys.pop(key, {}).values()):  # one may stand at two places
            self.known[part_key].pop(key)
            if not self.known[part_key]:
                del self.known[part_key]

    def offered(self) -> Offered | None:
        """What a new query may plan with."""
        return Offered(frozenset(self.known), dict(self.wanted)) if self.on else None

    def again(self) -> None:
        """Look at one of those whose time has come."""
        for key, (due, since) in self.pending.items():
            query = self.dispatch.told(key)
            if not isinstance(query, RunningQuery) or query.failure is not None:
                del self.pending[key]
                return
            if query.clock >= due:
                self._look(key, query, since)
                return

    def part_of(self, unit: Unit, path: Path) -> Part:
        """What runs that place of a plan, as a part that others may read from."""
        unit, place = located(unit, path)
        if isinstance(unit, Part) and not place:
            return unit
        return self.split(unit, place)

    # ------------------------------------------------------------ who has what

    def _know(self, key: str, query: RunningQuery) -> None:
        works: dict[int, bool] = {}
        self.keys[key] = {
            path: part_key
            for path, part_key in keys_of(query.phys, answers=False).items()
            if path and is_worth(node_at(query.phys, path), works)
        }
        self.wanted.update(query.phys.wants)
        for path, part_key in self.keys[key].items():
            self.known.setdefault(part_key, {})[key] = path

    def _look(self, key: str, query: RunningQuery, since: int) -> None:
        """Share what can be shared now."""
        self.pending.pop(key, None)
        later = self._share_below(key, query, (0,))
        if later < FOREVER:
            waited = query.clock - since if ALWAYS < since <= query.clock < FOREVER - 1 else 0
            due = max(later, query.clock + max(SOON, waited)) if query.clock > ALWAYS else ALWAYS
            self.pending[key] = due, since if since > ALWAYS else query.clock

    def _share_below(self, key: str, query: RunningQuery, path: Path) -> int:
        """Share the largest parts at and below that place; when to try again what does not fit
        yet."""
        unit, _ = located(query, path)
        if unit is not query:
            return FOREVER
        later = FOREVER
        part_key = self.keys[key].get(path)
        if part_key is not None:
            for other, place in self._others(key, part_key):
                least, when = self._fits(query, path, other, place)
                if least is not None:
                    self._share(key, query, path, other, place, least)
                    return FOREVER
                later = min(later, when)
        children = range(len(node_at(query.phys, path).children))
        if isinstance(node_at(query.phys, path).node, lp.Append):
            children = range(0)
        return min([later, *(self._share_below(key, query, (*path, k)) for k in children)])

    def _others(self, key: str, part_key: Key) -> Iterator[tuple[Unit, Path]]:
        """Where operators for such a part are, each once."""
        seen = set()
        for name, path in list(self.known[part_key].items()):
            query = self.dispatch.queries[name]
            if name == key or not isinstance(query, RunningQuery) or query.beginning:
                continue
            unit, place = located(query, path)
            if (id(unit), place) in seen or unit.failure is not None:
                continue
            seen.add((id(unit), place))
            self.dispatch.told(name)
            yield unit, place

    # ------------------------------------------------------------ whether they fit

    def _fits(
        self, query: RunningQuery, path: Path, other: Unit, place: Path
    ) -> tuple[tuple[tuple[int, int], ...] | None, int]:
        """What the query may not see of the part of another one (None: it may not share it), and
        when to look again."""
        mine, theirs = node_at(query.phys, path), node_at(other.phys, place)
        if query.errors.room != other.errors.room or other.starts is None or query.starts is None:
            return None, FOREVER
        if other.clock != query.clock or other.flow is not None or query.flow is not None:
            return None, query.clock
        first = {leaf: query.starts[leaf] for leaf in streams_of(mine.node)}
        theirs_first = [other.starts[leaf] for leaf in streams_of(theirs.node)]
        tables = not tables_of(mine.node) or other.since == query.since
        if list(first.values()) == theirs_first and tables:
            return (), FOREVER
        if any(map(can_fail, expressions_of(mine.node))):
            return None, FOREVER  # of whom rows fail is told
        later = [a >= b for a, b in zip(first.values(), theirs_first, strict=True)]
        if is_of_arrivals(mine.node) and all(later):
            return columns_from(mine.node, first), FOREVER
        return self._fits_alive(query, path, other, place)

    def _fits_alive(
        self, query: RunningQuery, path: Path, other: Unit, place: Path
    ) -> tuple[tuple[tuple[int, int], ...] | None, int]:
        node = node_at(query.phys, path).node
        counted = other.full_at if isinstance(other, RunningQuery) else other.counted
        if not is_of_live_rows(node) or query.full_at or counted:
            return None, FOREVER
        whole = max(query.partial_until, other.partial_until)
        if whole > query.clock:
            return None, whole
        own, others = _answers(query, path), _answers(other, place)
        if sum(map(len, own)) > MOST:
            return None, FOREVER
        same = len(own) == len(others) and all(map(_alike, own, others))
        return (() if same else None), query.clock

    # ------------------------------------------------------------ sharing

    def _share(
        self,
        key: str,
        query: RunningQuery,
        path: Path,
        other: Unit,
        place: Path,
        least: tuple[tuple[int, int], ...],
    ) -> None:
        """The part of another one works for the query, too."""
        part = other
        if place or not isinstance(other, Part):
            part = self.split(other, place)
        assert isinstance(part, Part)
        with _Answer(query):
            self.dispatch.anew(key)
            self._free_parts(give_way(query, path, part, least))
            query.shares = True

    def split(self, unit: Unit, place: Path) -> Part:
        """What a query, or a part, has at that place becomes a part of its own."""
        self.made += 1
        name = f"part {self.made}"
        if isinstance(unit, Part):
            part = split_off(unit, place, name)
        else:
            self.dispatch.anew(_key_of(self.dispatch, unit))
            with _Answer(unit):
                part = split_off(unit, place, name)
                unit.shares = True
        self.dispatch.find_parts()
        return part

    def _free(self, feeds: list[PartFeed]) -> None:
        for feed in feeds:
            let_go(feed)
        self._free_parts([feed.part for feed in feeds])

    def _free_parts(self, parts: list[Part]) -> None:
        """Those of them that feed nothing any more go, and what they alone stood on."""
        for part in parts:
            if not part.feeds:
                self._free(feeds_of(part.pipeline))
        self.dispatch.find_parts()


@dataclass(slots=True)
class _Answer:
    """Around a cut: an answer that was read from an operator which is cut off is kept."""

    query: RunningQuery
    rows: Batch | None = None

    def __enter__(self) -> None:
        if self.query.sink.kept is None and self.query.output.kind == "rstream":
            self.rows = self.query.pipeline.answer()

    def __exit__(self, *_: object) -> None:
        if self.rows is not None and self.query.pipeline.answer() is None:
            self.query.keep_answer(self.rows)


def _key_of(dispatch: Dispatch, query: RunningQuery) -> str:
    return next(key for key, q in dispatch.queries.items() if q is query)


def _sharer(query: object) -> RunningQuery | None:
    """A query whose parts may be shared."""
    if not isinstance(query, RunningQuery) or query.early or query.archived is not None:
        return None
    if query.feed is not None or query.lets_go:  # what it has put in must be known at any time
        return None
    if query.grouped or not query.streams or query.starts is None or query.failure is not None:
        return None
    if any(stage.errors is None for stage in query.pipeline.stages if not query.shares):
        return None
    # its clock stops at the last instant of its streams before the failing row
    stops = query.errors.mode == "stop" and any(map(can_fail, expressions_of(query.output)))
    return None if stops else query


def is_worth(phys: Phys, works: dict[int, bool] | None = None) -> bool:
    """Whether the part has state, or work that no index saves.

    works  what has been found out of nodes of this plan, by their identity"""
    works = {} if works is None else works
    if not streams_of(phys.node):
        return False
    for node in _own_nodes(phys.node):
        if id(node) not in works:
            works[id(node)] = _works(node)
        if works[id(node)]:
            return True
    return False


def _own_nodes(node: lp.Node) -> Iterator[lp.Node]:
    """The nodes of a plan, without those of queries that it reads."""
    if isinstance(node, lp.Answer):
        return
    yield node
    for child in lp.children(node):
        yield from _own_nodes(child)


def _works(node: lp.Node) -> bool:
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Values() | lp.Project() | lp.Union():
            return False
        case lp.Select():
            return atom_of(node.predicate) is None
        case lp.Window():
            return counts(node.spec) or isinstance(node.spec, Session | When)
        case _:
            return True


def _answers(unit: Unit, place: Path) -> list[Batch]:
    """What the operators at a place and below stand by, of those that report."""
    found = []
    for stage in unit.pipeline.stages:
        if stage.path[: len(place)] != place:
            continue
        if isinstance(stage.operator, Reporting):
            found.append(stage.operator.current())
        elif isinstance(stage.operator, PartFeed):
            found += _answers(stage.operator.part, ())
    return found


def _alike(a: Batch, b: Batch) -> bool:
    """Whether they have the same rows with the same ids."""
    if len(a) != len(b) or len(a.ids) != len(b.ids):
        return False
    return _sorted(a).equals(_sorted(b))


def _sorted(rows: Batch) -> pa.Table:
    names = [f"id{k}" for k in range(len(rows.ids))]
    values = [f"value{k}" for k in range(len(rows.cols))]
    table = pa.table([*map(pa.array, rows.ids), *rows.cols], names=[*names, *values])
    return table.sort_by([(name, "ascending") for name in names])
