"""Counters for metrics: of transactions, streams, queries, archives."""

from __future__ import annotations

from typing import Any

from dsms.api import shown_instant
from dsms.commands.quotas import user_stats
from dsms.commands.shared_joins import running_of
from dsms.commands.show_archives import archive_stats
from dsms.commands.slices import Free
from dsms.intake.shedding import Shedder
from dsms.intake.stream import StreamInput
from dsms.reads.stream_rows import kept
from dsms.running.letting_go import kept_share, rows_let_go
from dsms.running.progress import progress
from dsms.running.registered import Registered, is_hidden
from dsms.running.runtime import Runtime


def engine_stats(runtime: Runtime) -> Free[dict[str, Any]]:
    """By name; those of streams, queries and archives by theirs.  A stream or query at a time, each
    as it is then, if it is still there."""
    streams, queries = {}, {}
    for key, entry in list(runtime.inputs.items()):
        if runtime.inputs.get(key) is entry:
            streams[entry.definition.name] = _of_stream(runtime, key, entry)
        yield None
    for key in [key for key in runtime.queries if not is_hidden(key)]:
        if (query := runtime.dispatch.told(key)) is not None:
            queries[query.name] = _of_query(runtime, query)
        yield None
    users = yield from user_stats(runtime)
    counts = runtime.transactions.counters()
    return {
        "transactions_begun": counts.begun,
        "transactions_committed": counts.committed,
        "transactions_aborted": counts.aborted,
        "transactions_cancelled": counts.cancelled,
        "transactions_suspended": counts.suspended,
        "transactions_waiting": runtime.transactions.waiting(),
        "window_updates": counts.writes,
        "stream_count": len(streams),
        "query_count": len(queries),
        "table_count": len(runtime.tables),
        "streams": streams,
        "queries": queries,
        "archives": archive_stats(runtime),
        "users": users,
    }


def _of_stream(runtime: Runtime, key: str, entry: StreamInput) -> dict[str, Any]:
    return {
        "accepted": entry.counts.accepted,
        "late": entry.counts.late,
        "refused": sum(entry.counts.refused.values()),
        "waiting": entry.waiting,
        "complete": shown_instant(entry.completed),
        "kept": kept(runtime, key)[0],
        **_shed(entry),
    }


def _of_query(runtime: Runtime, query: Registered) -> dict[str, Any]:
    running = running_of(query)
    return {
        "result_rows": query.seq,
        "live_rows": query.answer_rows(),
        "state_bytes": query.nbytes(),
        "errors": query.errors.count,
        "readers": len(query.readers),
        "failed": int(query.failure is not None),
        "clock": shown_instant(query.shown_clock),
        **({} if running is None else {"replans": running.chosen.changes}),
        **progress(runtime, query),
        **_let_go(query),
    }


def _let_go(query: Registered) -> dict[str, Any]:
    """Of a query whose joins may let go of rows: how many they have, and the share that they keep
    now."""
    rows = rows_let_go(query)
    share = kept_share(query, query.shown_clock)
    return {} if rows is None else {"let_go": rows, "share": 1.0 if share is None else share}


def _shed(entry: StreamInput) -> dict[str, Any]:
    """Of a stream that may shed: rows that it has shed, and the share that it keeps now."""
    if entry.definition.weight is None:
        return {}
    shedder = entry.shedder or Shedder()
    return {"shed": shedder.shed, "share": shedder.share}
