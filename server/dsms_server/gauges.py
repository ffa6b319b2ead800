"""What the server's metrics say of the moment at which they are asked for."""

from __future__ import annotations

from typing import Any


def update(server: Any) -> None:
    """`server`: the whole of it, which no protocol of its parts shows."""
    m = server.metrics
    m.sessions.set(len(server.sessions))
    m.selects.set(server.core.runners.running)
    m.selects_waiting.set(server.core.runners.waiting)
    m.memory_limit.set(server.memory.limit or 0)
    for part, size in server.memory.parts().items():
        m.memory.labels(part).set(size)
    m.strangers.set(len(server.strangers))
    m.unprocessed.set(server.unprocessed)
    m.unread.set(server.unread)
    m.waiting.set(server.core.worker.waiting)
    m.held.set(server.watchdog.held)
    for kind, count in server.core.worker.limit.over.items():
        m.slices_over.labels(kind).set(count)
    m.busy.set(server.core.worker.busy_seconds)
    m.slow_readers.set(server.core.delivery.slow_readers)
    m.spark_up.set(server.spark.up)
    m.spark_starts.set(server.spark.starts)
    m.spark_deaths.set(server.spark.deaths)
    m.clock_offset.set(server.clock.away / 1e6)
    m.updates_due.set(server.spark.updates.waiting)
    if (audit := server.audit.writer) is not None:
        m.audit_lines.set(audit.lines)
        m.audit_lost.set(audit.lost)
        m.audit_waiting.set(audit.waiting)
        m.audit_failing.set(bool(audit.complaint))
