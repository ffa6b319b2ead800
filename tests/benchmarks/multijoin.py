"""Joins of many windows: the algorithms and orders of Golab 2006, ch. 5, and the engine.

As models, each algorithm as it is described (`multijoin_models`): stream 1 with rate 10 and the
others with 1, windows of 100 time units, 40, 100, 8 and 5 values (Table 5.5, with λ1 = 10: the
costs of the text come of that), loop index as time, ms per 1000 tuples after the windows are full,
the least of the repetitions.  The paper's figures are curves without numbers, so what is held
against them is an order or a shape.  All eager and restoring algorithms must have the same number
of results.

The engine: a query over 3 to 6 windows as a tree of joins (the planner's, and as it is written), in
one operator (`joins = pipeline`), and as the planner decides after it has seen a fifteenth of the
rows; DuckDB joins all rows at once, a batch; the kernel alone.  CPU time of all rows, state of all
operators at most; results are counted and must be equal.

Plans that change: the same queries registered before the first rows, when the planner knows
nothing; and a chain of windows whose rates change, against each tree that never does.

Bars: where intermediate results are at least 10 times the windows, the pipeline has at most a fifth
of the tree's state and takes at most half of its time; `auto` never takes more than 1.1 times the
better one; registered before the first rows no more than 1.3 times over the whole run, and 1.1 over
its second half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from dsms.plan.join_order import JoinedWindow, Nested
from tests.benchmarks import multijoin_models as models
from tests.benchmarks.harness import Options, Plot, Section, Table, ratio, same, shown, took
from tests.benchmarks.multijoin_orders import heuristic, ordered, windows
from tests.benchmarks.multijoin_work import (
    BEFORE,
    Job,
    Ran,
    duck,
    kernel,
    real,
    run,
    star,
    swapping,
)

RATES, LENGTH = np.array([10.0, 1.0, 1.0, 1.0]), 100
VALUES = np.array([40, 100, 8, 5])
TABLE_5_5 = windows([(r, LENGTH, v) for r, v in zip(RATES, VALUES, strict=True)])
UNIT = int(RATES.sum())  # tuples of a time unit
ORDERS = ("2134", "1234", "2341")
LAZY_EVERY = 10
Lines = dict[str, tuple[list[float], list[float]]]  # costs by Δ
HOWS = {"eager": models.EAGER, "lazy": models.LAZY, "lazy, restore": models.RESTORE}
OPTIONS = {
    "tree": "joins = tree",
    "as written": "optimize = false",
    "pipeline": "joins = pipeline",
    "auto": "joins = auto",
}


def section(options: Options) -> Section:
    """All tables."""
    trials = _trials(options)
    orders, ratios = _figure_5_2(trials)
    curves, lines = _figures_5_3_and_5_4(options, trials)
    engine, jobs = _engine(options)
    claims = [*_about_orders(ratios), *_about_curves(lines), *_about_the_engine(jobs)]
    blind, more = _replanned(options)
    claims += more
    said = Table("Claims", ("claim", "here", "figures"), tuple(claims))
    parts: list[Table | Plot] = [orders, *curves, _heuristic(options), engine, *blind, said]
    return Section("Joins of many windows", __doc__ or "", parts)


# ---------------------------------------------------------------- models


@dataclass(frozen=True, slots=True)
class Trial:
    """Tuples to fill the windows, and those that are timed."""

    stream: np.ndarray
    value: np.ndarray
    full: int

    @staticmethod
    def of(count: int, seed: int) -> Trial:
        full = LENGTH * UNIT
        stream, value = models.tuples(RATES, VALUES, full + count, seed)
        return Trial(stream, value, full)

    def cost(self, order: str, buckets: int, how: int, every: int) -> tuple[float, int]:
        """(ms per 1000 tuples, results)."""
        length = np.full(len(RATES), self.full)
        args = (length, _indices(order), buckets, how, every * UNIT, self.full)
        found: list[int] = []
        whole = took(lambda: found.append(models.join(self.stream, self.value, *args))).cpu
        some = self.stream[: self.full], self.value[: self.full]
        before = took(lambda: models.join(*some, *args)).cpu
        return (whole - before) * 1e6 / (len(self.stream) - self.full), found[0]


def _indices(order: str) -> np.ndarray:
    return np.array([int(c) - 1 for c in order])


def _trials(options: Options) -> list[Trial]:
    count = options.pick(5000, 2000, 200)
    return [Trial.of(count, seed) for seed in range(options.pick(10, 3, 1))]


def _mean(
    trials: list[Trial], order: str, buckets: int, how: str, every: int, want: list[int]
) -> float:
    """Milliseconds per 1000 tuples; all results are there, or, without restore, some are lost."""
    cost, out = 0.0, []
    for trial in trials:
        ms, found = min(trial.cost(order, buckets, HOWS[how], every) for _ in range(2))
        cost += ms / len(trials)
        out.append(found)
    if how != "lazy":
        same(f"{how}, {order}, every {every}", out, want)
    elif sum(out) > sum(want):
        same("results without restore", sum(out), sum(want))
    return cost


def _wanted(trials: list[Trial]) -> list[int]:
    return [trial.cost(ORDERS[0], 10, models.EAGER, 0)[1] for trial in trials]


def _figure_5_2(trials: list[Trial]) -> tuple[Table, dict[str, list[float]]]:
    every = ordered(Nested(TABLE_5_5))
    want = _wanted(trials)
    orders = (*ORDERS, "".join(str(j + 1) for j in every[-1][1]))
    predicted = [Nested(TABLE_5_5).total(_indices(o).tolist()) for o in orders]
    found = {"predicted": [p / predicted[0] for p in predicted]}
    rows = [("predicted", *map(ratio, found["predicted"]), "")]
    for buckets in (1, 10):
        for name, how, lazy in (
            ("eager", "eager", 0),
            (f"eager, expiration every {LAZY_EVERY}", "eager", LAZY_EVERY),
            (f"lazy every {LAZY_EVERY}", "lazy", LAZY_EVERY),
            (f"lazy, restore, every {LAZY_EVERY}", "lazy, restore", LAZY_EVERY),
        ):
            costs = [_mean(trials, o, buckets, how, lazy, want) for o in orders]
            kind = "nested loops" if buckets == 1 else f"{buckets} buckets"
            found[f"{kind}, {name}"] = relative = [c / costs[0] for c in costs]
            rows.append((f"{kind}, {name}", *map(ratio, relative), f"{costs[0]:.2f}"))
    header = ("algorithm", *(f"S{', S'.join(o)}" for o in orders), "the best, ms per 1000")
    return Table("Orders (Fig 5.2), times relative to the best one", header, tuple(rows)), found


def _figures_5_3_and_5_4(options: Options, trials: list[Trial]) -> tuple[list[Table | Plot], Lines]:
    want, every = _wanted(trials), Lines()
    # of which the length of the windows is a multiple
    periods = options.pick((0, 1, 2, 5, 10, 20, 50), (0, 2, 10, 50), (0, 5))
    parts: list[Table | Plot] = []
    for figure, all_buckets in (("5.3", (1,)), ("5.4", (2, 5))):
        rows, lines = [], {}
        for buckets in all_buckets:
            kind = "nested loops" if buckets == 1 else f"{buckets} buckets"
            for how in HOWS:
                at = [p for p in periods if p or how == "eager"]
                costs = [_mean(trials, ORDERS[0], buckets, how, p, want) for p in at]
                lines[f"{kind}, {how}"] = ([float(p) for p in at], costs)
                first = [] if 0 in at else [""]
                rows.append((f"{kind}, {how}", *first, *(f"{c:.2f}" for c in costs)))
        title = f"Cost against Δ (Fig {figure}), ms per 1000 tuples"
        parts.append(Table(title, ("algorithm", *map(str, periods)), tuple(rows)))
        every |= lines
        file = f"multijoin_{figure.replace('.', '_')}.svg"
        parts.append(Plot(file, title, "Δ", "ms", lines, log=(False, False)))
    lost = []
    for p in periods[1:]:
        found = sum(t.cost(ORDERS[0], 10, models.LAZY, p)[1] for t in trials)
        lost.append((str(p), f"{1 - found / sum(want):.1%}", f"{p / LENGTH:.1%}"))
    parts.append(Table("Results lost without restore", ("Δ", "lost", "Δ / T"), tuple(lost)))
    return parts, every


Claim = tuple[str, str, str]


def _claim(text: str, holds: bool, figures: str) -> Claim:
    return text, "yes" if holds else "no", figures


def _about_orders(found: dict[str, list[float]]) -> Iterator[Claim]:
    predicted = found.pop("predicted")[-1]
    worst = {name: ratios[-1] for name, ratios in found.items()}
    loops = [r for name, r in worst.items() if name.startswith("nested")]
    hashed = [r for name, r in worst.items() if not name.startswith("nested")]
    flatter = max(worst.values()) <= predicted
    figures = f"the worst order: predicted {ratio(predicted)}, loops {_span(loops)}"
    yield _claim("5.2: orders differ as predicted, but less", flatter, figures)
    figures = f"loops {_span(loops)}, buckets {_span(hashed)}"
    yield _claim("5.2: hashing makes them differ less", max(hashed) < min(loops), figures)


def _span(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def _about_curves(lines: Lines) -> Iterator[Claim]:
    for kind in ("nested loops", "2 buckets", "5 buckets"):
        eager, lazy, restore = (lines[f"{kind}, {how}"][1] for how in HOWS)
        last = f"{lazy[-1]:.2f} < {restore[-1]:.2f} < {eager[-1]:.2f}"
        holds = lazy[-1] < restore[-1] < eager[-1]
        yield _claim(f"5.3, 5.4: {kind}: lazy < restore < eager at the largest Δ", holds, last)
    eager, lazy, restore = (lines[f"nested loops, {how}"][1] for how in HOWS)
    figures = f"eager {_ends(eager)}, lazy {_ends(lazy)}, restore {_ends(restore)}"
    holds = eager[-1] > eager[0] and lazy[-1] <= lazy[0] and restore[-1] <= restore[0]
    yield _claim("5.3: eager grows with Δ, the lazy ones fall", holds, figures)
    first, zero = lines["2 buckets, lazy, restore"][1][0], lines["2 buckets, eager"][1][0]
    figures = f"{first:.2f} against {zero:.2f}"
    yield _claim("5.4: 2 buckets: restore is dearer at first", first > zero, figures)
    eager = lines["5 buckets, eager"][1]
    holds = min(eager) < eager[0] and eager[-1] > min(eager)
    figures = f"{_ends(eager)}, least {min(eager):.2f}: an empty bucket costs next to nothing here"
    yield _claim("5.4: 5 buckets: eager falls, then rises", holds, figures)


def _ends(costs: Sequence[float]) -> str:
    return f"{costs[0]:.2f} to {costs[-1]:.2f}"


def _about_the_engine(jobs: list[tuple[Job, dict[str, Ran]]]) -> Iterator[Claim]:
    many = [(j, r) for j, r in jobs if "intermediate" in j.tags]
    if many:
        states = [r["pipeline"].state / r["tree"].state for _, r in many]
        times = [r["pipeline"].cpu / r["tree"].cpu for _, r in many]
        text = "many intermediate results: a fifth of the tree's state"
        yield _claim(text, max(states) <= 0.2, f"{min(states):.2f} to {max(states):.2f}")
        text = "many intermediate results: half of the tree's time"
        yield _claim(text, max(times) <= 0.5, f"{min(times):.2f} to {max(times):.2f}")
    over = [r["auto"].cpu / min(r["tree"].cpu, r["pipeline"].cpu) for _, r in jobs]
    text = "auto takes at most 1.1 times the better one"
    yield _claim(text, max(over) <= 1.1, f"{min(over):.2f} to {max(over):.2f}")


def _heuristic(options: Options) -> Table:
    """The heuristic of §5.3.2 against all orders."""
    random, rows = Random(1), []
    for n in (4, 5, 6):
        found = []
        for _ in range(options.pick(100, 30, 2)):
            table = [_window(random) for _ in range(n)]
            costs = Nested(table)
            every = ordered(costs)
            same("the best order", round(costs.best().cost), round(every[0][0]))
            mean = sum(c for c, _ in every) / len(every)
            taken = costs.total(heuristic(costs)[0])
            found.append((taken / every[0][0], taken <= mean * (1 + 1e-9)))
        share = sorted(f for f, _ in found)
        cells = (share[len(share) // 2], share[int(0.9 * len(share))], share[-1])
        rows.append((str(n), *map(ratio, cells), f"{sum(m for _, m in found)} of {len(found)}"))
    header = ("windows", "median of the best", "90 %", "worst", "no dearer than the mean")
    return Table("The ordering heuristic on random windows (ours takes the best)", header,
                 tuple(rows))  # a call  # fmt: skip


def _window(random: Random) -> JoinedWindow:
    rate = random.choice((1, 1, 2, 5, 10, 20))
    return JoinedWindow(rate, rate * random.choice((50, 100, 200)), random.randint(2, 300))


# ---------------------------------------------------------------- the engine


def _stars(options: Options) -> list[Job]:
    return options.pick(
        [star(3, 1600, 40), star(4, 300, 30), star(5, 60, 8, window=5),
         star(6, 30, 5, window=2.5, seconds=20), star(3, 3000, 3000), star(4, 10_000, 20_000),
         star(3, 20_000, 2_000_000)],
        [star(3, 600, 20), star(4, 100, 10), star(3, 3000, 3000)],
        [star(3, 20, 4), star(4, 10, 5)],
    )  # a table  # fmt: skip


def _jobs(options: Options) -> list[Job]:
    return [*_stars(options), *([] if options.mode == "toy" else real())]


def _engine(options: Options) -> tuple[Table, list[tuple[Job, dict[str, Ran]]]]:
    rows, jobs = [], []
    for job in _jobs(options):
        ran = _in_turns(job, options.pick(5, 3, 1))
        jobs.append((job, ran))
        batch, found = duck(job)
        for name, one in ran.items():
            same(f"{job.name}: {name}", one.results, found)
        tree, pipe, auto = ran["tree"], ran["pipeline"], ran["auto"]
        best = min(tree.cpu, pipe.cpu)
        taken = "pipeline" if any("MultiJoin" in line for line in auto.plan) else "tree"
        times = [f"{1000 * r.cpu:.0f}" for r in ran.values()]
        rows.append(
            (job.name, shown(found), *times, f"{1000 * batch:.0f}", f"{1000 * kernel(job):.0f}",
             shown(tree.state), shown(pipe.state), ratio(pipe.cpu / tree.cpu),
             ratio(pipe.state / tree.state), f"{taken}, {ratio(auto.cpu / best)}")
        )  # a row  # fmt: skip
    header = ("job", "results", *(f"{name}, ms" for name in OPTIONS), "DuckDB, ms", "kernel, ms",
              "tree, bytes", "pipeline, bytes", "time", "state", "auto")  # names  # fmt: skip
    note = "time, state: of the pipeline over the tree; auto: what was taken, over the better one"
    return Table("The engine", header, tuple(rows), (note,)), jobs


STILL = ", replan = never"
BLIND = {
    "tree": f"joins = tree{STILL}",
    "pipeline": f"joins = pipeline{STILL}",
    "auto, never": f"joins = auto{STILL}",
    "auto": "joins = auto",
}


def _replanned(options: Options) -> tuple[list[Table], list[Claim]]:
    """Registered before the first rows; and where rates change."""
    rows, whole, late = [], [], []
    for job in _stars(options):
        ran = _in_turns(job, options.pick(5, 3, 1), BLIND, 0)
        for name, one in ran.items():
            same(f"{job.name}: {name}", one.results, ran["tree"].results)
        best = min(ran["tree"].cpu, ran["pipeline"].cpu)
        half = min(ran["tree"].late, ran["pipeline"].late)
        auto = ran["auto"]
        whole.append((auto.cpu, best))
        late.append((auto.late, half))
        times = [f"{1000 * r.cpu:.0f}" for r in ran.values()]
        never = ratio(ran["auto, never"].cpu / best)
        rows.append(
            (
                job.name,
                *times,
                str(auto.changes),
                never,
                ratio(auto.cpu / best),
                ratio(auto.late / half),
            )
        )
    header = ("job", *(f"{name}, ms" for name in BLIND), "changes", "never", "auto", "later")
    note = "never, auto: over the better of tree and pipeline; later: in the second half"
    title = "Registered before the first rows"
    swapped, claim = _swapped(options)
    tables = [Table(title, header, tuple(rows), (note,)), swapped]
    bars = (("over the whole run", whole, 1.3), ("over the second half", late, 1.1))
    claims = []
    for what, found, bar in bars:  # of jobs that take tens of ms each says little
        over = sum(auto for auto, _ in found) / sum(best for _, best in found)
        figures = f"all jobs {over:.2f}; each {_span([auto / best for auto, best in found])}"
        claims.append(_claim(f"{title}: at most {bar} {what}", over <= bar, figures))
    return tables, [*claims, claim]


def _swapped(options: Options) -> tuple[Table, Claim]:
    job = swapping(options.pick(180, 90, 24))
    ways = {
        "as written, a b first": f"optimize = false{STILL}",
        "never": f"joins = auto{STILL}",
        "auto": "joins = auto",
    }
    times = options.pick(5, 3, 1)
    ran = _in_turns(job, times, ways, 0)
    turned = replace(job, windows=job.windows[::-1], chain=job.chain[::-1])
    ran["as written, c b first"] = _in_turns(turned, times, {"": ways["as written, a b first"]}, 0)[
        ""
    ]
    for name, one in ran.items():
        same(f"{job.name}: {name}", one.results, ran["auto"].results)
    auto = ran["auto"]
    rows = tuple(
        (name, f"{1000 * r.cpu:.0f}", shown(r.state), str(r.changes), ratio(r.cpu / auto.cpu))
        for name, r in ran.items()
    )
    best = min(r.cpu for name, r in ran.items() if name != "auto") / auto.cpu
    text = "Rates that change: auto is 1.3 times as fast as the best tree that never changes"
    title = f"Rates that change: {job.name}"
    table = Table(title, ("plan", "ms", "bytes", "changes", "of auto"), rows)
    return table, _claim(text, best >= 1.3, ratio(best))


def _in_turns(
    job: Job, times: int, ways: dict[str, str] = OPTIONS, before: int = BEFORE
) -> dict[str, Ran]:
    """The least of the repetitions, which take turns."""
    found: dict[str, Ran] = {}
    for _ in range(times):
        for name, option in ways.items():
            one = run(job, option, before)
            found[name] = min(found.get(name, one), one, key=lambda r: r.cpu)
    return found
