"""The transaction schedulers of Golab 2006, §7.5, on its workload: periodic queries that never
pause while the window moves, then one-time queries between them.

Virtual time: reads are done for real, one after the other, and their CPU time is stretched so that
a shared scan of the longest window of one-second sub-windows takes a second.  Staleness is how long
ago the youngest data of an answer were complete; response time counts from the arrival of a
one-time query; aborted is what part of all started transactions had to start again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Literal

from dsms.schedulers.transactions import KINDS
from tests.benchmarks.harness import Options, Plot, Section, Table, clean_heap
from tests.benchmarks.transactions_run import Run, Setting, calibrate, compare

NAMES = {"serial": "Serial", "ws": "WS", "lws": "LWS", "ttu": "TTU"}
Runs = dict[str, list[Run]]  # kind -> its trials
Metric = Callable[[Run], float]


def section(options: Options) -> Section:
    """Both workloads under the four schedulers."""
    rate = options.pick(1000, 1000, 100)
    lengths = options.pick((10, 25, 50, 100), (10, 30), (4, 8))
    with clean_heap():
        speed = calibrate(rate, max(lengths))
        periodic, mixed = {}, {}
        for n in lengths:
            updates = max(n, options.pick(30, 20, 8))
            for seconds, queries in ((1.0, 40), (5.0, 100)):
                periodic[seconds, n] = _trials(
                    options, Setting(seconds, n, queries, 0, rate, updates), speed
                )
            mixed[5.0, n] = _trials(options, Setting(5.0, n, 100, 5, rate, updates), speed)
    tables = [_table(periodic, *m) for m in PERIODIC] + [_table(mixed, *m) for m in MIXED]
    return Section(
        "Transaction schedulers (Golab 2006, §7.5)",
        __doc__ or "",
        [_claims(periodic, mixed), *tables, *_plots(periodic, mixed)],
    )


def _trials(options: Options, setting: Setting, speed: float) -> Runs:
    checks = options.pick(1, 1, 1_000_000)
    trials = [compare(KINDS, setting, seed, speed, checks) for seed in range(options.repeats)]
    return {kind: [trial[kind] for trial in trials] for kind in KINDS}


# -- metrics


def aborted(run: Run) -> float:
    """Per cent."""
    counters = run.scheduler.counters
    return 100 * counters.aborted / max(1, counters.aborted + counters.committed)


def staleness(run: Run) -> float:
    """Of periodic queries, seconds."""
    return _mean(run.periodic.staleness)


def between(run: Run) -> float:
    """Seconds between two answers of a periodic query."""
    return _mean(run.periodic.between)


def throughput(run: Run) -> float:
    """Transactions committed in a second, until the last commit."""
    return len(run.commits) / run.commits[-1] if run.commits else 0.0


def response(run: Run) -> float:
    """Of one-time queries, seconds."""
    return _mean(run.one_time.response)


def one_time_staleness(run: Run) -> float:
    """Of one-time queries, seconds."""
    return _mean(run.one_time.staleness)


NOTES = (
    "Why TTU takes longer than Serial at all: a read costs it some 0.3 us more (it remembers "
    "which sub-windows it has read), and the youngest tables, which all five windows need, are "
    "the coldest when the answer is made. The share grows as reads get smaller: one of a thousand "
    "packets takes 40 us here, one of a one-time query less than that, which is also the "
    "difference to WS in response time.",
    "Where LWS aborts most it gives few answers, and their mean staleness differs by a tenth and "
    "more from run to run; so it may come out below TTU there by chance. What its readers see is "
    "the inter-execution time.",
    "LWS aborts less with long sub-windows because five times as many packets take only about "
    "four times as long to scan: tables of 1000 addresses and answers cost the same for both.",
    "WS reads its snapshot oldest first, so that it pins little; but a snapshot that one-time "
    "queries suspend grows old, which is why periodic answers of WS can be staler than those of "
    "Serial.",
    "TTU can abort only if two updates come without a read of the transaction between them (all "
    "cases are gone through in tests/test_transactions_thesis.py): if one-time queries suspend it "
    "for more than a sub-window's time.",
)
PERIODIC: tuple[tuple[str, Metric], ...] = (
    ("Periodic queries: transactions aborted, %  (Figure 7.8)", aborted),
    ("Periodic queries: staleness, s  (Figure 7.9)", staleness),
    ("Periodic queries: inter-execution time, s  (Figure 7.10)", between),
    ("Periodic queries: throughput, transactions/s  (Figure 7.11)", throughput),
)
MIXED: tuple[tuple[str, Metric], ...] = (
    ("With one-time queries: their response time, s  (Figure 7.12)", response),
    ("With one-time queries: their staleness, s  (Figure 7.13)", one_time_staleness),
    ("With one-time queries: staleness of periodic ones, s  (Figure 7.14)", staleness),
    ("With one-time queries: transactions aborted, %", aborted),
)


def _mean(values: Iterable[float]) -> float:
    seen = list(values)
    return statistics.fmean(seen) if seen else float("nan")


def _value(runs: Runs, kind: str, metric: Metric) -> float:
    return _mean(x for x in map(metric, runs[kind]) if not math.isnan(x))


# -- tables and plots


def _table(runs: dict[tuple[float, int], Runs], title: str, metric: Metric) -> Table:
    rows = []
    for (seconds, n), here in sorted(runs.items()):
        values = [_value(here, kind, metric) for kind in KINDS]
        queries = here["ttu"][0].load.setting.periodic
        rows.append((f"{seconds:.0f} s", str(n), str(queries), *(_shown(v) for v in values)))
    header = ("sub-window", "sub-windows", "periodic queries", *NAMES.values())
    return Table(title, header, tuple(rows))


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"


def _plots(
    periodic: dict[tuple[float, int], Runs], mixed: dict[tuple[float, int], Runs]
) -> list[Plot]:
    out = []
    for file, runs, (title, metric) in [("periodic", periodic, m) for m in PERIODIC] + [
        ("mixed", mixed, m) for m in MIXED
    ]:
        lines = {}
        for seconds in sorted({s for s, _ in runs}):
            for kind in KINDS:
                points = [
                    (float(n), _value(here, kind, metric))
                    for (s, n), here in sorted(runs.items())
                    if s == seconds
                ]
                x, y = zip(*points, strict=True)
                lines[f"{NAMES[kind]}, {seconds:.0f} s"] = (list(x), list(y))
        name = metric.__name__.replace("_", "-")
        axis = title.split(": ")[1].split("  (")[0]
        out.append(
            Plot(
                f"transactions-{file}-{name}.png", title, "sub-windows", axis, lines, (False, False)
            )
        )
    return out


# -- claims


def _claims(periodic: dict[tuple[float, int], Runs], mixed: dict[tuple[float, int], Runs]) -> Table:
    everywhere = [*periodic.values(), *mixed.values()]
    ttu = max(_value(r, "ttu", aborted) for r in everywhere)
    lws = max(_value(r, "lws", aborted) for r in everywhere)
    cost = [_behind(r) for r in periodic.values()]
    replies = {k: _mean(_value(r, k, response) for r in mixed.values()) for k in KINDS}
    slower = [_value(r, "ttu", response) / _value(r, "ws", response) for r in mixed.values()]
    fresh = [_freshest(r, "periodic") for r in everywhere] + [
        _freshest(r, "one_time") for r in mixed.values()
    ]
    lowest, level = (
        sum(excess <= 0 for excess, _ in fresh),
        sum(excess <= error for excess, error in fresh),
    )
    often = {
        s: _mean(_value(r, "lws", aborted) for (t, _), r in periodic.items() if t == s)
        for s in (1.0, 5.0)
    }
    typical, worst = 100 * statistics.median(cost), 100 * max(cost)
    most = max(replies.values())
    rows = (
        ("TTU aborts nothing", f"{ttu:.1f} % at most", ttu == 0),
        ("LWS aborts up to half", f"{lws:.0f} % at most", lws >= 50),
        (
            "TTU takes at most 4 % longer than Serial for the same transactions",
            f"{typical:+.1f} % (median of settings), {worst:+.1f} % at most",
            typical <= 4,
        ),
        (
            "one-time queries: TTU answers as fast as WS (within 10 %)",
            f"{statistics.median(slower):.2f} of its time (median of settings), {max(slower):.2f} "
            "at most",
            statistics.median(slower) <= 1.1,
        ),
        (
            "one-time queries: Serial is slowest",
            f"{replies['serial']:.2f} s",
            replies["serial"] == most,
        ),
        (
            "TTU has the lowest staleness",
            f"in {lowest} of {len(fresh)} settings, within two standard errors in {level}",
            level == len(fresh),
        ),
        (
            "LWS aborts more with short sub-windows",
            f"1 s: {often[1.0]:.0f} %, 5 s: {often[5.0]:.0f} %",
            often[1.0] > often[5.0],
        ),
    )
    shown = tuple((claim, here, "yes" if holds else "no") for claim, here, holds in rows)
    return Table(
        "What the thesis claims, and what comes out here", ("claim", "here", "holds"), shown, NOTES
    )


def _behind(runs: Runs) -> float:
    """How much longer TTU takes than Serial until both have committed the same number of the same
    transactions."""
    ratios = []
    for ttu, serial in zip(runs["ttu"], runs["serial"], strict=True):
        both = min(len(ttu.commits), len(serial.commits))
        if both:
            ratios.append(ttu.commits[both - 1] / serial.commits[both - 1] - 1)
    return _mean(ratios)


def _freshest(runs: Runs, whose: Literal["periodic", "one_time"]) -> tuple[float, float]:
    """How much staler answers of TTU are than those of the best other, and two standard errors of
    that difference."""
    seen = {
        kind: [x for run in runs[kind] for x in getattr(run, whose).staleness] for kind in KINDS
    }
    best = min(
        (kind for kind in KINDS if kind != "ttu" and seen[kind]), key=lambda kind: _mean(seen[kind])
    )
    error = math.hypot(
        *(statistics.pstdev(seen[k]) / math.sqrt(len(seen[k])) for k in ("ttu", best))
    )
    return _mean(seen["ttu"]) - _mean(seen[best]), 2 * error
