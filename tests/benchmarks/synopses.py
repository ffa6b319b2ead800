"""Synopses of sliding-window aggregates: the experiments of Arasu and Widom 2004, §6.1 and §6.2
(Figs 9, 10, 11).

Fig 9: 1000 operators SUM over the last N = 0 .. 999 tuples share one synopsis.  Inputs are updates
(a tuple arrives) and look-ups (one operator, drawn at random) in ratios from 1 : 1000 to 1000 : 1,
taken one by one in a Numba loop; all contenders are written alike, over arrays, and must give the
same answers.  PSoup keeps the last 999 tuples in a balanced search tree (here an AVL tree);
"materialize all" keeps every operator's sum up to date, "materialize none" adds up when asked.
L-INT needs a gamma group for every doubling of the width, since there are windows of every width.

Figs 10 and 11: updates alone, against the longest window N_max, and look-ups alone, against the
width W of windows that stand anywhere in the last 2^17 tuples.  Once in such loops, and once with
the synopses of `dsms.synopses` themselves, a sub-window a tuple: a thousand tuples lifted, appended
and trimmed at a time, a thousand spans probed and lowered at a time.  Rates are per CPU second;
every answer is checked.  Medians of three.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np

from tests.benchmarks import synopses_kernels as kernels
from tests.benchmarks import synopses_rates as rates
from tests.benchmarks.harness import (
    Options,
    Plot,
    Section,
    Table,
    clean_heap,
    ratio,
    same,
    shown,
    took,
)
from tests.benchmarks.synopses_kernels import FILL, GAMMAS, LONGEST
from tests.benchmarks.synopses_tree import psoup

Run = Callable[[np.ndarray, np.ndarray], int]

CONTENDERS: dict[str, Run] = {
    "R-INT": kernels.running,
    "B-INT": kernels.interval,
    "L-INT": lambda values, inputs: kernels.landmark(values, inputs, GAMMAS),
    "PSoup": psoup,
    "materialize all": kernels.materialize_all,
    "materialize none": kernels.materialize_none,
}
RATIOS = ((1, 1000), (1, 100), (1, 10), (1, 1), (10, 1), (100, 1), (1000, 1))
MIDDLE = ((1, 10), (1, 1), (10, 1))
OTHERS = ("PSoup", "materialize all", "materialize none")


def section(options: Options) -> Section:
    """All figures."""
    found = compared(options)
    parts: list[Table | Plot] = [_figure_9(found), _claims(found), _plot_9(found)]
    parts += [*rates.updates(options), *rates.lookups(options)]
    return Section("Synopses (Arasu and Widom 2004, §6)", __doc__ or "", parts)


def compared(options: Options) -> dict[str, list[float]]:
    """Inputs a second of each contender, by ratio."""
    count = options.pick(1_000_000, 200_000, 2_000)
    rng = np.random.default_rng(9)
    values = rng.integers(0, 1000, count + FILL)
    for run in CONTENDERS.values():
        run(values, np.array([-1, 5]))
    out: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for updates, lookups in RATIOS:
        inputs = rng.integers(0, LONGEST + 1, count)
        inputs[rng.random(count) < updates / (updates + lookups)] = -1
        answers = {name: run(values, inputs) for name, run in CONTENDERS.items()}
        for name, answer in answers.items():
            same(f"{name} at {updates} : {lookups}", answer, answers["materialize none"])
        for name, run in CONTENDERS.items():
            out[name].append(rate(count, options, run, values, inputs))
    return out


def rate(count: int, options: Options, run: Callable[..., object], *arguments: object) -> float:
    """`count` things a CPU second; the median of several runs, each repeated until it takes a
    while."""
    least = options.pick(0.05, 0.02, 0.0)
    seen = []
    with clean_heap():
        for _ in range(options.repeats):
            spent, times = 0.0, 0
            while spent <= least:
                spent += took(lambda: run(*arguments)).cpu
                times += 1
                if least == 0.0:
                    break
            seen.append(times * count / max(spent, 1e-9))
    return statistics.median(seen)


def _figure_9(found: dict[str, list[float]]) -> Table:
    header = ("updates : look-ups", *found)
    rows = tuple(
        (f"{u} : {k}", *(shown(found[name][i]) for name in found))
        for i, (u, k) in enumerate(RATIOS)
    )
    return Table(
        "Fig 9: inputs a second, 1000 SUM operators over windows of 0 .. 999 tuples", header, rows
    )


def _claims(found: dict[str, list[float]]) -> Table:
    """How much faster R-INT and B-INT are in the middle than the fastest of the others."""
    rows = []
    for name in ("R-INT", "B-INT"):
        for other in OTHERS:
            least = {r: found[name][i] / found[other][i] for i, r in enumerate(RATIOS)}
            worst = min(MIDDLE, key=lambda r: least[r])
            wins = "yes" if least[worst] > 1 else "no"
            everywhere = [f"{u} : {k}" for (u, k) in RATIOS if least[(u, k)] > 1]
            where = (
                "at every ratio"
                if len(everywhere) == len(RATIOS)
                else f"at {', '.join(everywhere)}"
            )
            rows.append(
                (name, other, wins, f"{ratio(least[worst])} at {worst[0]} : {worst[1]}", where)
            )
    header = ("", "against", "faster from 1 : 10 to 10 : 1", "at least", "faster")
    kept, added = 1e9 / found["materialize all"][-1], 1e9 / found["materialize none"][0]
    note = (
        f"vector units bring {LONGEST} sums up to date in {kept:.0f} ns, and add a window up "
        f"in {added:.0f} ns"
    )
    return Table("Fig 9: what 004 claims", header, tuple(rows), (note,))


def _plot_9(found: dict[str, list[float]]) -> Plot:
    x = [u / k for u, k in RATIOS]
    lines = {name: (x, y) for name, y in found.items()}
    return Plot("synopses-9.png", "1000 SUM operators", "updates per look-up", "inputs / s", lines)
