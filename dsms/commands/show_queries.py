"""SHOW QUERIES, SHOW WINDOWS: how registered queries do, and what of the streams is held in
memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from dsms.api import Rows, shown_instant
from dsms.commands.rows import as_rows
from dsms.commands.shared_joins import running_of
from dsms.commands.slices import Free
from dsms.intake.values import duration_text
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.plan.text import slide
from dsms.running.approximation import approximate
from dsms.running.beginning import partial, whole_at
from dsms.running.behind import rows_behind, waits_for
from dsms.running.chosen import Chosen
from dsms.running.letting_go import rows_let_go
from dsms.running.paused import PausedQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.shed import scaled, share_of
from dsms.sharing.member import Member
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS, FLOAT, FOREVER, INT, STRING, TIMESTAMP, Type


def status(query: Registered) -> str:
    """running, paused, or why it stopped."""
    if query.failure is None:
        return "paused" if isinstance(query, PausedQuery) else "running"
    return f"stopped: {query.failure.code} {query.failure.message}"


# columns of SHOW QUERIES; FULL has all
BRIEF = (
    "query",
    "status",
    "clock",
    "live_rows",
    "result_rows",
    "state_bytes",
    "errors",
    "waits_for",
)


class _Shown:
    """A query as a line tells of it.  `own`: to its owner, to whom errors may quote what it reads;
    `late`: its state tells of young rows that the asker does not see."""

    def __init__(self, runtime: Runtime, query: Any, catalog: Catalog) -> None:
        self.runtime, self.query, self.catalog = runtime, query, catalog
        self.own = runtime.rights.owns(catalog.user, query.home)
        self.late = catalog.sees_late(query.reads)

    @cached_property
    def timed(self) -> dict[str, Any]:
        """What only periodic queries have."""
        return _timing(self.runtime, self.query)

    @cached_property
    def chosen(self) -> Chosen | None:
        """How its joins are planned, if it runs some."""
        running = running_of(self.query)
        return None if running is None else running.chosen

    @cached_property
    def share(self) -> float | None:
        return share_of(self.runtime, self.query)

    def cost(self) -> float | None:
        return None if self.late else self.timed.get("cost", self.query.phys.cost.total)

    def plan_since(self) -> int | None:
        chosen = self.chosen
        return None if chosen is None or chosen.since <= ALWAYS else chosen.since


COLUMNS: dict[str, tuple[Type, Callable[[_Shown], Any]]] = {
    "query": (STRING, lambda s: s.query.name),
    "status": (STRING, lambda s: status(s.query) if s.own else _briefly(s.query)),
    "output": (STRING, lambda s: s.query.output.kind.capitalize()),
    "strategy": (STRING, lambda s: s.query.phys.strategy),
    "pattern": (STRING, lambda s: s.query.phys.children[0].pattern.name),
    "clock": (TIMESTAMP, lambda s: _clock(s.query)),
    "result_rows": (INT, lambda s: s.query.seq),
    "live_rows": (INT, lambda s: s.query.answer_rows()),
    "state_bytes": (INT, lambda s: None if s.late else s.query.nbytes()),
    "errors": (INT, lambda s: s.query.errors.count),
    "first_error": (STRING, lambda s: s.query.errors.first if s.own else None),
    "readers": (INT, lambda s: len(s.query.readers)),
    "path": (STRING, lambda s: s.timed.get("path")),
    "period": (STRING, lambda s: s.timed.get("period")),
    "deadline": (TIMESTAMP, lambda s: s.timed.get("deadline")),
    "evaluations": (INT, lambda s: s.timed.get("evaluations")),
    "lateness": (FLOAT, lambda s: s.timed.get("lateness")),
    "cost": (FLOAT, _Shown.cost),
    "shares_with": (INT, lambda s: s.timed.get("shares_with")),
    "partial_until": (TIMESTAMP, lambda s: whole_at(s.runtime, s.query)),
    "partial": (STRING, lambda s: partial(s.runtime, s.query)),
    "approximate": (FLOAT, lambda s: approximate(s.runtime.queries, [s.query.home])),
    "shed": (STRING, lambda s: _shed(s.query, s.share)),
    "share": (FLOAT, lambda s: s.share),
    "let_go": (INT, lambda s: None if s.late else rows_let_go(s.query)),
    "reads": (STRING, lambda s: _over(s.query, s.catalog)),
    "waits_for": (STRING, lambda s: _waits_for(s.runtime, s.query, s.catalog)),
    "waiting": (INT, lambda s: None if s.late else _waiting(s.runtime, s.query)),
    "replans": (INT, lambda s: s.chosen.changes if s.chosen else None),
    "plan_since": (TIMESTAMP, _Shown.plan_since),
    "plan": (STRING, lambda s: s.chosen.why if s.chosen and not s.late else None),
    "comment": (STRING, lambda s: s.runtime.comments.get(s.query.home)),
}


def show_queries(
    runtime: Runtime, catalog: Catalog, full: bool, see: Callable[[], Catalog]
) -> Free[Rows]:
    """One line per query, a query at a time: as it is then, if it is still there; what only
    periodic queries have is NULL for the others.  `full`: with all columns, not with those of BRIEF
    alone.

    see   what the asker may know of by then"""
    names = tuple(COLUMNS) if full else BRIEF
    lines: list[list[Any]] = []
    for known in list(runtime.queries.values()):
        query = runtime.dispatch.told(known.home)
        if query is not known:  # dropped, or another one of that name
            catalog = see()
        if query is not None and query.home in catalog.queries:
            shown = _Shown(runtime, query, catalog)
            lines.append([COLUMNS[name][1](shown) for name in names])
        yield None
    return as_rows([(n, COLUMNS[n][0], [x[k] for x in lines]) for k, n in enumerate(names)])


def _over(query: Registered, catalog: Catalog) -> str | None:
    """The queries whose answers it reads, those that one may know of."""
    found = (catalog.at(Catalog.key(address)) for address in query.definition.over)
    known = [one.name for one in found if one is not None]
    return ", ".join(known) or None


def _shed(query: Registered, share: float | None) -> str | None:
    """How its answers do where its streams shed, or its joins let go of rows."""
    if scaled(dict(query.definition.options)):
        return "scale"
    return None if share is None else "partial"


def _briefly(query: Registered) -> str:
    return status(query) if query.failure is None else "stopped"


def _waits_for(runtime: Runtime, query: Registered, catalog: Catalog) -> str | None:
    if query.failure is not None or not all(stream in catalog.streams for stream in query.reads):
        return None
    return waits_for(runtime, query.reads)


def _clock(query: Registered) -> int | None:
    return shown_instant(query.shown_clock) if query.shown_clock < FOREVER - 1 else None


def _waiting(runtime: Runtime, query: Registered) -> int | None:
    """Accepted rows of its streams that wait behind its clock."""
    return rows_behind(runtime, query.reads, runtime.clock_of(query.reads)) if query.reads else None


def _timing(runtime: Runtime, query: Registered) -> dict[str, Any]:
    """What is shown of a periodic query.  lateness: boundaries that passed unanswered, on average
    per evaluation."""
    if not isinstance(query, EvaluatedQuery):
        return {}
    late = runtime.backlog.lateness(query.name)
    member = query.evaluator if isinstance(query.evaluator, Member) else None
    period = query.output.slide
    found: dict[str, Any] = {
        "path": query.evaluator.path,
        "period": "on look-up" if period is None else slide(period),
        "deadline": query.due
        if isinstance(query, PeriodicQuery) and query.numbers is None
        else None,
        "evaluations": query.evaluations,
        "lateness": 0.0 if late is None else late.average,
        "shares_with": 0 if member is None else len(member.group.members) - 1,
    }
    if member is not None:
        found["cost"] = member.cost()
    return found


def show_windows(runtime: Runtime) -> Rows:
    """One line per ring of raw sub-windows, per index over one and per synopsis."""
    lines = [*_rings(runtime), *_indices(runtime), *_synopses(runtime)]
    names = (
        "stream",
        "holds",
        "kind",
        "subwindow",
        "subwindows",
        "rows",
        "bytes",
        "updates",
        "for",
    )
    types = (STRING, STRING, STRING, STRING, INT, INT, INT, INT, STRING)
    columns: list[Any] = list(zip(*lines, strict=True)) if lines else [[] for _ in names]
    return as_rows([(n, t, list(c)) for n, t, c in zip(names, types, columns, strict=True)])


def _rings(runtime: Runtime) -> list[tuple[Any, ...]]:
    lines: list[tuple[Any, ...]] = []
    for key, ring in runtime.rings.items():
        name = runtime.inputs[key].definition.name
        lines.append(
            (
                name,
                "rows",
                "ring",
                duration_text(ring.span),
                len(ring.closed) + bool(ring.buffer),
                ring.count,
                ring.nbytes,
                ring.updates,
                ", ".join(sorted(ring.needs)),
            )
        )
    return lines


def _indices(runtime: Runtime) -> Iterator[tuple[Any, ...]]:
    for key, ring in runtime.rings.items():
        stream = runtime.inputs[key].definition
        for index, declared in runtime.indices.of(key):
            yield (
                stream.name,
                stream.schema[index.column].name,
                "index",
                duration_text(ring.span),
                len(index.parts),
                index.rows,
                index.nbytes,
                index.updates,
                "INDEX BY" if declared else "one-time queries",
            )
        counts, lists = runtime.indices.counts_of(key), runtime.indices.sorted_of(key)
        for kind, of_kind in (("counts", counts), ("sorted", lists)):
            for column, held in of_kind.items():
                yield (
                    stream.name,
                    stream.schema[column].name,
                    kind,
                    duration_text(ring.span),
                    len(held.parts),
                    held.rows,
                    held.nbytes,
                    held.updates,
                    "one-time queries",
                )
        for (kind, column), fault in runtime.indices.given_up(key).items():
            span, why = duration_text(ring.span), f"given up: {fault}"
            yield (stream.name, stream.schema[column].name, kind, span, 0, 0, 0, 0, why)


def _synopses(runtime: Runtime) -> list[tuple[Any, ...]]:
    lines = []
    for group in runtime.shared.all():
        name = " * ".join(runtime.inputs[s].definition.name for s in group.sides)
        for feed in group.feed.feeds:
            span = f"{feed.span} rows" if feed.counted else duration_text(feed.span)
            users = ", ".join(
                sorted(m.query.name for m in group.members if m.query is not None and m.reads(feed))
            )
            for call, column in feed.columns.items():
                held = column.synopsis
                lines.append(
                    (
                        name,
                        call_text(call, runtime, group.sides),
                        held.kind,
                        span,
                        held.next - held.first,
                        held.groups,
                        column.nbytes,
                        feed.updates,
                        users,
                    )
                )
    return lines


def call_text(call: Any, runtime: Runtime, sides: tuple[str, ...]) -> str:
    """An aggregate over the streams' columns, as it would be written."""
    from dsms.plan.text import aggregate

    return aggregate(call, tuple(f for s in sides for f in runtime.inputs[s].definition.schema))
