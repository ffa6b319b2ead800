"""Settings of an engine: limits and defaults.  Sizes in bytes, durations in µs; the engine reads no
environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsms.sessions import Connectors, Memory, Sessions

CHANGEABLE: dict[str, tuple[str, ...]] = {
    "query_scheduler": ("none", "aggressive", "conservative", "hybrid"),
    "late_sharing": ("none", "late", "late-pending"),
    "transaction_scheduler": ("serial", "ws", "lws", "ttu"),
}  # what SET may change while the engine runs, and its values
OF_SESSION = ("statement_timeout",)  # ... and for one session of a server alone


def _nobody(name: str, url: str) -> None:
    """Archives are not updated."""


@dataclass(slots=True)
class Settings:
    """queries           registered queries at most
    state_bytes       state and waiting rows of one query at most; past it the query stops with
                      DS630
    statement_bytes   what one statement (SELECT, INSERT ... SELECT) may keep while it runs; past it
                      it fails with DS633, or with DS632 while it makes what a block over INTERNAL
                      windows has appended
    step_rows         results of one join at one instant at most; past it the query or statement
                      stops with DS631
    result_log_rows   result rows of a query kept for readers that resume
    result_log_bytes  ... and their bytes
    subscriber_bytes  results that may wait for one reader
    retain_default    of streams without RETAIN the rows of so many µs of event time are kept for
                      one-time queries, and at least `retain_default_rows` of the newest (0 and 0:
                      none), as far as `retain_default_bytes` go for all streams together
    timer             seconds, to measure operators with for EXPLAIN ANALYZE; None: not measured
    optimize          apply rewrite rules (tests switch them off to compare)
    predicate_index   queries that begin with a selection get the rows that an index over their
                      predicates finds (tests switch it off to compare); else each looks at all rows
    shared_parts      parts of plans that are the same in several continuous queries run once (tests
                      switch it off to compare); else each query runs alone
    window_index      one-time queries read by indices over what windows hold (tests switch it off
                      to compare)
    query_scheduler   which due periodic queries are evaluated together (Golab 2006, §8.4)
    late_sharing      which of them are when deadlines have been missed (§8.4.2)
    transaction_scheduler  in which order sub-windows are read while the window moves (§7.4)
    deferred          elastic queries are evaluated by `Engine.work`, not as rows come (the server
                      does so)
    checkpoint_bytes  what the journal may grow by before the state is written down whole (or by
                      that state's size, if that is more); 0: never on its own
    accept_loss       streams that go on without rows that files have lost, instead of refusing
                      others; and streams and queries whose archive is gone, which begin another one
    group_commit      rows of `sync` streams are brought to the disk by the caller of
                      `Journal.commit`, for many writers at once (the server does so before it
                      acknowledges)
    archive           folder or URL below which archives lie; None: in the data folder, if there is
                      one
    archive_waiting_bytes  rows that may wait to be archived, of one stream or query; past it rows
                           are refused (DS570)
    archive_writer    writes landing files one after the other: an executor with one thread; None:
                      the caller does
    archive_due       called with name and URL of an archive when a step of its UPDATE EVERY is over
    archive_runner    runs one-time queries that read archives
                      (`dsms.reads.archives.ArchiveRunner`); None: large ones are refused (DS412)
    archive_local_bytes  of archives' files that a query reads in this process, and lets DuckDB run;
                      what reads more is Spark's
    pause             asked between two steps of queries whether the call is to return and to leave
                      the rest to `Engine.work`; None: each call does all that it causes
    safe_mode         queries do not move: rows wait for them (to drop what keeps the server from
                      starting)
    recovering        called with how many records of the journal have been applied, after each
    at_work           notes what is under way, for the next start (`dsms.storage.working`); set by
                      the data folder
    files             looks at a file for ``CREATE ... LIKE FILE``: called with the statement, the
                      path and who may cancel it, it gives the plain statement and notes; None:
                      DS422
    quota             of users who have none of their own (`dsms.rights.quotas`)
    sessions          of the server that the engine runs in (SHOW SESSIONS); None: there is none
    memory            that all of it may take (SHOW MEMORY); None: there is no limit
    connectors        runs sources and sinks (CREATE SOURCE); None: there are none (DS446)
    eager_instants    look for expired rows at every instant instead of once a step (benchmarks of
                      the thesis)
    """

    queries: int = 1000
    state_bytes: int = 4 << 30
    statement_bytes: int = 1 << 30
    step_rows: int = 1 << 22
    result_log_rows: int = 100_000
    result_log_bytes: int = 64 << 20
    subscriber_bytes: int = 64 << 20
    retain_default: int = 600_000_000
    retain_default_rows: int = 1_000_000
    retain_default_bytes: int = 256 << 20
    timer: Callable[[], float] | None = None
    optimize: bool = True
    predicate_index: bool = True
    shared_parts: bool = True
    window_index: bool = True
    query_scheduler: str = "hybrid"
    late_sharing: str = "late-pending"
    transaction_scheduler: str = "ttu"
    deferred: bool = False
    checkpoint_bytes: int = 64 << 20
    accept_loss: tuple[str, ...] = ()
    group_commit: bool = False
    archive: str | None = None
    archive_waiting_bytes: int = 256 << 20
    archive_writer: Any = None
    archive_due: Callable[[str, str], None] = _nobody
    archive_runner: Any = None
    archive_local_bytes: int = 64 << 20
    safe_mode: bool = False
    recovering: Callable[[int], None] | None = None
    at_work: Any = None
    pause: Callable[[], bool] | None = None
    files: Callable[[str, str, Any], tuple[str, tuple[str, ...]]] | None = None
    quota: Mapping[str, int] = field(default_factory=dict)
    sessions: Sessions | None = None
    memory: Memory | None = None
    connectors: Connectors | None = None
    eager_instants: bool = False
