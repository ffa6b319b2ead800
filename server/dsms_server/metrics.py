"""Prometheus metrics of the server, and the engine's own counters beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from dsms.api import IngestReport

LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)

UPDATE_BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0)

RESPONSE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """One registry per server, so that several servers may live in one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.sessions = Gauge("dsms_sessions", "open sessions", registry=registry)
        self.sessions_total = Counter(
            "dsms_sessions_opened", "sessions ever opened", registry=registry
        )
        self.strangers = Gauge(
            "dsms_strangers", "sessions that have not shown who they are", registry=registry
        )
        self.let_go = Counter(
            "dsms_let_go", "connections ended by the server, by reason", ["why"], registry=registry
        )
        self.accept_failures = Counter(
            "dsms_accept_failures", "times that no connection could be accepted", registry=registry
        )
        self.wrong_tokens = Counter("dsms_wrong_tokens", "wrong tokens given", registry=registry)
        self.requests = Counter("dsms_requests", "requests by name", ["op"], registry=registry)
        self._often: list[Often] = []
        self._by_op: dict[str, Often] = {}
        self.errors = Counter("dsms_errors", "errors answered by code", ["code"], registry=registry)
        self.frames_in = Counter("dsms_frames_received", "frames received", registry=registry)
        self.bytes_in = Counter("dsms_received_bytes", "bytes received", registry=registry)
        self.bytes_out = self._tallied(Counter("dsms_sent_bytes", "bytes sent", registry=registry))
        self.rows = Counter(
            "dsms_ingested_rows",
            "rows received by what became of them",
            ["fate"],
            registry=registry,
        )
        self._accepted, self._late, self._refused, self._shed = (
            self._tallied(self.rows.labels(fate))
            for fate in ("accepted", "late", "refused", "shed")
        )
        self.pushes = Counter("dsms_pushes", "result pushes handed to sessions", registry=registry)
        self.paused = Counter("dsms_reading_paused", "times a writer was slowed", registry=registry)
        self.slow_readers = Gauge(
            "dsms_slow_readers", "subscriptions ended because of DS620", registry=registry
        )
        self.unprocessed = Gauge(
            "dsms_unprocessed_bytes", "bytes of requests not yet answered", registry=registry
        )
        self.unread = Gauge(
            "dsms_unread_bytes", "bytes of replies that sessions have not read", registry=registry
        )
        self.memory = Gauge("dsms_memory_bytes", "bytes held, by part", ["part"], registry=registry)
        self.memory_limit = Gauge(
            "dsms_memory_limit_bytes", "what may be held; 0: any", registry=registry
        )
        self.selects = Gauge("dsms_selects", "SELECTs whose plans run", registry=registry)
        self.selects_waiting = Gauge(
            "dsms_selects_waiting", "SELECTs that wait for a place", registry=registry
        )
        self.waiting = Gauge(
            "dsms_waiting_lanes", "writers with work for the engine thread", registry=registry
        )
        self.busy = Gauge(
            "dsms_engine_busy_seconds", "time the engine thread has worked", registry=registry
        )
        self.held = Gauge(
            "dsms_engine_held_seconds",
            "how long one slice holds the engine, once 5 s are over",
            registry=registry,
        )
        self.slices_over = Gauge(
            "dsms_slices_over_limit",
            "slices that took longer than --max-slice-ms",
            ["kind"],
            registry=registry,
        )
        self.slices = Histogram(
            "dsms_slice_seconds",
            "duration of one slice of engine work",
            ["kind"],
            registry=registry,
            buckets=LAG_BUCKETS,
        )
        self.response = Histogram(
            "dsms_response_seconds",
            "from a statement that answers with rows to its answer",
            registry=registry,
            buckets=RESPONSE_BUCKETS,
        )
        self.lag = Histogram(
            "dsms_loop_lag_seconds",
            "how late the event loop wakes up",
            registry=registry,
            buckets=LAG_BUCKETS,
        )
        self.clock_offset = Gauge(
            "dsms_clock_offset_seconds",
            "how far the system clock is from where it ought to be",
            registry=registry,
        )
        self.clock_steps = Counter(
            "dsms_clock_steps", "jumps of the system clock that were followed", registry=registry
        )
        self.lag_now = Gauge(
            "dsms_loop_lag_last_seconds", "the latest measured lag", registry=registry
        )
        self.spark_up = Gauge(
            "dsms_spark_up", "1 while there is a Spark session", registry=registry
        )
        self.spark_starts = Gauge(
            "dsms_spark_starts", "times the Spark process was started", registry=registry
        )
        self.spark_deaths = Gauge("dsms_spark_deaths", "times it died", registry=registry)
        self.updates_due = Gauge(
            "dsms_archive_updates_due", "archives that wait for an update", registry=registry
        )
        self.updates = Counter(
            "dsms_archive_updates",
            "updates of an archive's index",
            ["archive", "outcome"],
            registry=registry,
        )
        self.update_rows = Counter(
            "dsms_archive_update_rows",
            "landed rows that updates took into the index",
            ["archive"],
            registry=registry,
        )
        self.update_seconds = Histogram(
            "dsms_archive_update_seconds",
            "duration of an update",
            ["archive"],
            registry=registry,
            buckets=UPDATE_BUCKETS,
        )
        self.audit_lines = Gauge(
            "dsms_audit_lines", "lines of the audit log that were written", registry=registry
        )
        self.audit_lost = Gauge(
            "dsms_audit_lost", "events that the audit log could not take", registry=registry
        )
        self.audit_waiting = Gauge(
            "dsms_audit_waiting", "events that are not written yet", registry=registry
        )
        self.audit_failing = Gauge(
            "dsms_audit_failing", "1 while the audit log can't be written", registry=registry
        )
        self.engine: Mapping[str, Any] = {}
        registry.register(_EngineCollector(self))  # type: ignore[arg-type]

    def _tallied(self, counter: Counter) -> Often:
        self._often.append(Often(counter))
        return self._often[-1]

    def count_rows(self, report: IngestReport) -> None:
        if report.accepted:
            self._accepted.inc(report.accepted)
        if report.late:
            self._late.inc(report.late)
        if report.refused:
            self._refused.inc(report.refused)
        if report.shed:
            self._shed.inc(report.shed)

    def count_request(self, op: str) -> None:
        counter = self._by_op.get(op)
        if counter is None:
            counter = self._by_op[op] = self._tallied(self.requests.labels(op))
        counter.inc()

    def observe_update(
        self, archive: str, seconds: float, report: Mapping[str, Any] | None
    ) -> None:
        """An update of an archive is over; without a report it failed."""
        self.updates.labels(archive, "failed" if report is None else "done").inc()
        self.update_seconds.labels(archive).observe(seconds)
        if report is not None:
            self.update_rows.labels(archive).inc(report.get("taken", 0))

    def observe_slice(self, kind: str, seconds: float) -> None:
        self.slices.labels(kind).observe(seconds)

    def observe_lag(self, seconds: float) -> None:
        self.lag.observe(seconds)
        self.lag_now.set(seconds)

    def text(self) -> bytes:
        """The exposition format of everything."""
        for counter in self._often:
            counter.settle()
        return generate_latest(self.registry)


class Often:
    """A counter that the event loop raises for each small frame: its lock is taken when somebody
    looks."""

    __slots__ = ("_counter", "_since")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._since = 0

    def inc(self, more: int = 1) -> None:
        self._since += more

    def settle(self) -> None:
        """The counter has what has come since the last time."""
        since, self._since = self._since, 0
        self._counter.inc(since)


class _EngineCollector:
    """`Engine.stats()` as gauges: flat numbers, and one label for what is counted per stream or per
    query."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        stats = self._metrics.engine
        for name, value in stats.items():
            if _is_number(value):
                family = GaugeMetricFamily(f"dsms_engine_{name}", f"engine: {name}")
                family.add_metric([], float(value))
                yield family
            elif isinstance(value, Mapping):
                yield from _labelled(name, value)


def _labelled(kind: str, objects: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    label = {
        "streams": "stream",
        "queries": "query",
        "tables": "table",
        "archives": "archive",
        "users": "user",
    }.get(kind, kind)
    families: dict[str, GaugeMetricFamily] = {}
    for name, counters in objects.items():
        for counter, value in counters.items():
            if not _is_number(value):
                continue
            if counter not in families:
                families[counter] = GaugeMetricFamily(
                    f"dsms_{label}_{counter}", f"{label}: {counter}", labels=[label]
                )
            families[counter].add_metric([name], float(value))
    yield from families.values()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
