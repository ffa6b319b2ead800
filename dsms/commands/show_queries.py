"""SHOW QUERIES, SHOW WINDOWS: how registered queries do, and what of the streams is held in
memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsms.api import Rows, shown_instant
from dsms.commands.rows import as_rows
from dsms.commands.shared_joins import running_of
from dsms.intake.values import duration_text
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.plan.text import slide
from dsms.running.approximation import approximate
from dsms.running.beginning import partial, whole_at
from dsms.running.behind import rows_behind, waits_for
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


def show_queries(runtime: Runtime, catalog: Catalog, full: bool) -> Rows:
    """One line per query; what only periodic queries have is NULL for the others.  `full`: with all
    columns, not with those of BRIEF alone.

    Errors may quote what a query reads: they are told to those whose query it is."""
    runtime.dispatch.all_told()
    queries: list[Any] = [q for key, q in runtime.queries.items() if key in catalog.queries]
    own = [runtime.rights.owns(catalog.user, q.home) for q in queries]
    timed = [_timing(runtime, q) for q in queries]
    late = [catalog.sees_late(q.reads) for q in queries]  # their state tells of young rows
    running = [running_of(q) for q in queries]
    chosen = [None if r is None else r.chosen for r in running]
    shares = [share_of(runtime, q) for q in queries]
    columns: list[tuple[str, Type, list[Any]]] = [
        ("query", STRING, [q.name for q in queries]),
        (
            "status",
            STRING,
            [status(q) if o else _briefly(q) for q, o in zip(queries, own, strict=True)],
        ),
        ("output", STRING, [q.output.kind.capitalize() for q in queries]),
        ("strategy", STRING, [q.phys.strategy for q in queries]),
        ("pattern", STRING, [q.phys.children[0].pattern.name for q in queries]),
        ("clock", TIMESTAMP, [_clock(q) for q in queries]),
        ("result_rows", INT, [q.seq for q in queries]),
        ("live_rows", INT, [q.answer_rows() for q in queries]),
        (
            "state_bytes",
            INT,
            [None if hidden else q.nbytes() for q, hidden in zip(queries, late, strict=True)],
        ),
        ("errors", INT, [q.errors.count for q in queries]),
        (
            "first_error",
            STRING,
            [q.errors.first if o else None for q, o in zip(queries, own, strict=True)],
        ),
        ("readers", INT, [len(q.readers) for q in queries]),
        ("path", STRING, [t.get("path") for t in timed]),
        ("period", STRING, [t.get("period") for t in timed]),
        ("deadline", TIMESTAMP, [t.get("deadline") for t in timed]),
        ("evaluations", INT, [t.get("evaluations") for t in timed]),
        ("lateness", FLOAT, [t.get("lateness") for t in timed]),
        (
            "cost",
            FLOAT,
            [
                None if hidden else t.get("cost", q.phys.cost.total)
                for t, q, hidden in zip(timed, queries, late, strict=True)
            ],
        ),
        ("shares_with", INT, [t.get("shares_with") for t in timed]),
        ("partial_until", TIMESTAMP, [whole_at(runtime, q) for q in queries]),
        ("partial", STRING, [partial(runtime, q) for q in queries]),
        ("approximate", FLOAT, [approximate(runtime.queries, [q.home]) for q in queries]),
        ("shed", STRING, [_shed(q, share) for q, share in zip(queries, shares, strict=True)]),
        ("share", FLOAT, shares),
        (
            "let_go",
            INT,
            [None if hidden else rows_let_go(q) for q, hidden in zip(queries, late, strict=True)],
        ),
        ("reads", STRING, [_over(q, catalog) for q in queries]),
        ("waits_for", STRING, [_waits_for(runtime, q, catalog) for q in queries]),
        (
            "waiting",
            INT,
            [
                None if hidden else _waiting(runtime, q)
                for q, hidden in zip(queries, late, strict=True)
            ],
        ),
        ("replans", INT, [c.changes if c else None for c in chosen]),
        (
            "plan_since",
            TIMESTAMP,
            [c.since if c and c.since > ALWAYS else None for c in chosen],
        ),
        (
            "plan",
            STRING,
            [c.why if c and not hidden else None for c, hidden in zip(chosen, late, strict=True)],
        ),
        ("comment", STRING, [runtime.comments.get(q.home) for q in queries]),
    ]
    return as_rows(columns if full else [c for c in columns if c[0] in BRIEF])


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
