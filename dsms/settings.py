"""Settings of an engine: limits and defaults.  Sizes in bytes, durations in µs; the engine reads no environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CHANGEABLE: dict[str, tuple[str, ...]] = {
    "query_scheduler": ("none", "aggressive", "conservative", "hybrid"),
    "late_sharing": ("none", "late", "late-pending"),
    "transaction_scheduler": ("serial", "ws", "lws", "ttu"),
}  # what SET may change while the engine runs, and its values


@dataclass(slots=True)
class Settings:
    """queries           registered queries at most
    state_bytes       state and waiting rows of one query at most; past it the query stops with DS630
    statement_bytes   what one statement (SELECT, INSERT ... SELECT) may keep while it runs; past it it fails with DS632
    step_rows         results of one join at one instant at most; past it the query or statement stops with DS631
    result_log_rows   result rows of a query kept for readers who resume
    result_log_bytes  ... and their bytes
    subscriber_bytes  results that may wait for one reader
    timer             seconds, to measure operators with for EXPLAIN ANALYZE; None: not measured
    optimize          apply rewrite rules (tests switch them off to compare)
    query_scheduler   which due periodic queries are evaluated together (Golab 2006, §8.4)
    late_sharing      which of them are when deadlines have been missed (§8.4.2)
    transaction_scheduler  in which order sub-windows are read while the window moves (§7.4)
    deferred          elastic queries are evaluated by `Engine.work`, not as rows come (the server does so)
    eager_instants    look for expired rows at every instant instead of once a step (benchmarks of the thesis)
    """

    queries: int = 1000
    state_bytes: int = 4 << 30
    statement_bytes: int = 1 << 30
    step_rows: int = 1 << 22
    result_log_rows: int = 100_000
    result_log_bytes: int = 64 << 20
    subscriber_bytes: int = 64 << 20
    timer: Callable[[], float] | None = None
    optimize: bool = True
    query_scheduler: str = "hybrid"
    late_sharing: str = "late-pending"
    transaction_scheduler: str = "ttu"
    deferred: bool = False
    eager_instants: bool = False
