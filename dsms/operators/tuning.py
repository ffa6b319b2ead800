"""When the index of a STeM is looked at again, and which of its partitions are sorted anew (Works,
Rundensteiner and Agu 2012, §7, §8).

Windows of search requests, counted over all STeMs:

continuous  every STeM is assessed all the time, and tuned at the end of each window
periodic    the same in every other window
triggered   the STeM whose share of requests has changed most since the window before is assessed in
            the next; one that never changes never is
hybrid      both: the STeM that has waited longest, each period; and the one that has changed most
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dsms.operators.assess import Method, Sria, assessment
from dsms.operators.stems import Stem
from dsms.plan.index_choice import IndexConfig, Prices, Workload, best_config, bits_for, cost
from dsms.state.bits import BitIndex

Schedule = Literal["continuous", "periodic", "triggered", "hybrid"]
Migration = Literal["nothing", "all", "partial"]
PERIOD, TRIGGER = 24_000, 40_000  # search requests
CHANGED = 0.1  # a share of requests that is another by less is the same
BETTER = 0.95  # a new configuration costs no more than that share of the old one
MOVING = 8.0  # what it costs to sort a row into its bucket, in the units of Prices


@dataclass(slots=True)
class Tuner:
    """ends     by STeM: the request with which its assessment ends; -1: it is not assessed
    finished the request at which the last one ended
    total    requests so far;  asked: by STeM
    requests by STeM, in this trigger's window, and in the one before
    schedule None: indices are never looked at
    waiting  STeMs, the one that was assessed longest ago first
    patterns the last statistics of each STeM;  rates: (arrivals, probes) while they were taken
    since    by STeM, what had come and been asked when its last assessment ended
    sizes    bits that the index of each STeM may have
    changes  configurations that were taken, by STeM;  moved: partitions that were sorted anew"""

    stems: int
    schedule: Schedule | None = "hybrid"
    migration: Migration = "nothing"
    method: Method = "cdia-highest"
    error: float = 0.05
    threshold: float = 0.1
    period: int = PERIOD
    trigger: int = TRIGGER
    total: int = 0
    next_period: int = 0
    next_trigger: int = 0
    assessed: list[Sria] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    patterns: list[dict[int, float]] = field(default_factory=list)
    rates: list[tuple[float, float]] = field(default_factory=list)
    since: list[tuple[int, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    moved: int = 0

    def __post_init__(self) -> None:
        every = range(self.stems)
        self.assessed = [assessment(self.method, self.error, self.threshold) for _ in every]
        self.ends, self.waiting = [self.period for _ in every], list(every)
        self.requests, self.before, self.changes = ([0 for _ in every] for _ in range(3))
        self.finished, self.asked, self.sizes = ([0 for _ in every] for _ in range(3))
        self.patterns, self.since = [{} for _ in every], [(0, 0) for _ in every]
        self.rates = [(1.0, self.stems - 1.0) for _ in every]
        self.next_period, self.next_trigger = self.period, self.trigger

    def count(self, stem: int, pattern: int, probes: int) -> None:
        """So many probes of a STeM with that pattern."""
        if self.schedule is None:
            return
        self.total += probes
        self.requests[stem] += probes
        self.asked[stem] += probes
        if self.ends[stem] >= 0:
            self.assessed[stem].add(pattern, probes)

    def tune(self, stems: Sequence[Stem]) -> None:
        """Between batches: end what has been assessed, and begin what is due."""
        if self.schedule is None:
            return
        for j in [j for j, end in enumerate(self.ends) if 0 <= end <= self.total]:
            self._finish(j, stems[j])
        if self.total >= self.next_period:
            self.next_period = self.total + self.period
            self._periodic()
        if self.total >= self.next_trigger:
            self.next_trigger = self.total + self.trigger
            self._triggered()

    def _begin(self, stem: int) -> None:
        if self.ends[stem] < 0:
            self.assessed[stem].restart()
            self.ends[stem] = self.total + self.period
            self.waiting.remove(stem)
            self.waiting.append(stem)

    def _periodic(self) -> None:
        match self.schedule:
            case "continuous":
                for j in range(self.stems):
                    self._begin(j)
            case "periodic":
                # assessed in the period that ends now: not in the next
                if self.total - max(self.finished) >= self.period:
                    for j in range(self.stems):
                        self._begin(j)
            case "hybrid":
                self._begin(self.waiting[0])
            case "triggered" | None:
                return

    def _triggered(self) -> None:
        now, self.requests = self.requests, [0] * self.stems
        past, self.before = self.before, now
        if self.schedule not in ("triggered", "hybrid") or not sum(past):
            return
        changes = [
            abs(n / sum(now) - p / sum(past)) * sum(past) / max(p, 1)
            for n, p in zip(now, past, strict=True)
        ]
        most = max(range(self.stems), key=lambda j: (changes[j], -j))
        if changes[most] > CHANGED:
            self._begin(most)

    def _finish(self, j: int, stem: Stem) -> None:
        self.ends[j] = -1
        self.finished[j] = self.total
        if not self.assessed[j].probes:
            return
        self.patterns[j] = self.assessed[j].result()
        come, asked = self.since[j]
        self.rates[j] = max(1.0, stem.come - come), float(self.asked[j] - asked)
        self.since[j] = stem.come, self.asked[j]
        assert isinstance(stem.index, BitIndex)
        old, new = stem.index.config, self.config(j, stem)
        work = self.workload(j, stem)
        if new == old or cost(work, new) > BETTER * cost(work, old):
            return
        self.changes[j] += 1
        stem.index.use(new, stem.indexed)
        again = self._migrated(stem.index, new, work)
        if again:
            self.moved += len(again)
            stem.index.sort_again(again, new, stem.indexed)

    def at_seal(self, j: int, stem: Stem) -> IndexConfig | None:
        """Of the next partition: as it was tuned, unless partitions have another size by now."""
        if not isinstance(stem.index, BitIndex):
            return None
        bits = bits_for(stem.partition)
        if bits == self.sizes[j]:
            return stem.index.config
        self.sizes[j] = bits
        return self.config(j, stem)

    def config(self, j: int, stem: Stem) -> IndexConfig:
        """The best configuration by what is known."""
        return best_config(self.workload(j, stem), bits_for(stem.partition))

    def workload(self, j: int, stem: Stem) -> Workload:
        """What a STeM has to do, as far as its last assessment tells."""
        arrivals, probes = self.rates[j]
        rows = float(stem.partition)
        parts = max(1.0, stem.rows.store.live / rows)
        return Workload(arrivals, probes, rows, parts, self.patterns[j], stem.values)

    def _migrated(self, index: BitIndex, new: IndexConfig, work: Workload) -> list[int]:
        """Sealed partitions that get the new configuration."""
        others = [
            (p, config, rows) for p, (config, rows) in enumerate(index.configs()) if config != new
        ]
        if self.migration == "nothing":
            return []
        if self.migration == "all":
            return [p for p, _, _ in others]
        return [p for p, old, rows in others if _pays(work, p, old, new, rows)]


def _pays(work: Workload, p: int, old: IndexConfig, new: IndexConfig, rows: int) -> bool:
    """B_m > 0 (§8.1, equation (3)): the p-th partition from the oldest is probed until as many have
    come as there are older ones, and one more."""
    to_come = work.probes / work.arrivals * (p + 1) * work.rows
    left = Workload(0.0, to_come, rows, 1.0, work.patterns, work.values)
    moving = rows * (sum(b > 0 for b in new.bits) * Prices().hashing + MOVING)
    return cost(left, old) - cost(left, new) - moving > 0
