"""Counters for metrics: of transactions, streams, queries, archives."""

from __future__ import annotations

from typing import Any

from dsms.api import shown_instant
from dsms.commands.quotas import user_stats
from dsms.commands.shared_joins import running_of
from dsms.commands.show_archives import archive_stats
from dsms.intake.shedding import Shedder
from dsms.intake.stream import StreamInput
from dsms.reads.stream_rows import kept
from dsms.running.letting_go import kept_share, rows_let_go
from dsms.running.progress import progress
from dsms.running.registered import Registered, is_hidden
from dsms.running.runtime import Runtime


def engine_stats(runtime: Runtime) -> dict[str, Any]:
    """By name; those of streams, queries and archives by theirs."""
    runtime.dispatch.all_told()
    streams = {
        s.definition.name: {
            "accepted": s.counts.accepted,
            "late": s.counts.late,
            "refused": sum(s.counts.refused.values()),
            "waiting": s.waiting,
            "complete": shown_instant(s.completed),
            "kept": kept(runtime, key)[0],
            **_shed(s),
        }
        for key, s in runtime.inputs.items()
    }
    queries = {
        q.name: {
            "result_rows": q.seq,
            "live_rows": q.answer_rows(),
            "state_bytes": q.nbytes(),
            "errors": q.errors.count,
            "readers": len(q.readers),
            "failed": int(q.failure is not None),
            "clock": shown_instant(q.shown_clock),
            **({"replans": r.chosen.changes} if (r := running_of(q)) is not None else {}),
            **progress(runtime, q),
            **_let_go(q),
        }
        for key, q in runtime.queries.items()
        if not is_hidden(key)
    }
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
        "users": user_stats(runtime),
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
