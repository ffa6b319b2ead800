"""FREQUENT, Algorithm 6 of Golab 2006, ch. 6: what it finds, and in how much space.

A count window of N items slides by b; each sub-window of b items keeps its k most frequent values.
For every b and k the window stands at starting points drawn at random, and the answer is held
against exact counts of all N items: each value listed must occur more than delta times, and no less
often than its count says (there are no false positives), and one that is in no summary at most
delta times, or the benchmark stops.  Figures are means over the starting points, as in Fig 6.3; the
share found, over windows in which some value exceeds the threshold.  Space is in counters: (value,
count) pairs of all summaries plus the global ones.

Traces: the synthetic one (1,647 sources, Zipf-like), and the hosts of the EPA-HTTP log where it is
at hand (`../shared/data`, or --trace), which has 47,748 requests, so its windows are shorter.  No
host sends much more than a hundredth of them: it takes longer lists than ten to find any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from dsms.aggregates.frequent import Counters, Frequent
from dsms.aggregates.parts.cells import CellRows
from dsms.sql.types import INT
from tests.benchmarks import trace, trace_file
from tests.benchmarks.harness import Options, Plot, Section, Table, WrongAnswer, took

EPA = Path(__file__).parents[3] / "shared" / "data" / "epa_http" / "epa_http.csv.gz"
B = (20, 100, 500)  # items of a sub-window
K = tuple(range(1, 11))
LONG = (20, 50, 100)  # more, where the trace is less skewed


@dataclass(frozen=True, slots=True)
class Found:
    """Of one window.  delta: in % of N;  over: values that occur more than delta times;  listed:
    those reported; share: listed / over (NaN: none is over);  space: counters;  error: mean of
    (true - count) / true of those listed (NaN: none is)."""

    delta: float
    over: float
    listed: float
    share: float
    space: float
    error: float


@dataclass(frozen=True, slots=True)
class Items:
    """A stream of item numbers, and the window over it."""

    name: str
    codes: np.ndarray
    n: int
    lists: tuple[int, ...]  # values of k


def section(options: Options) -> Section:
    """Tables and plots of all traces."""
    parts: list[Table | Plot] = []
    for items in streams(options):
        trials = options.pick(100, 10, 2)
        found = {(b, k): mean(windows(items, b, k, trials)) for b in B for k in items.lists}
        parts += [*_tables(items, found, trials), *_plots(items, found)]
    parts.append(_cost(options))
    return Section("Frequent items (Golab 2006, ch. 6)", __doc__ or "", parts)


def streams(options: Options) -> Iterator[Items]:
    """The traces, with the windows that fit them."""
    n = options.pick(100_000, 100_000, 5_000)
    made = trace.synthetic(4 * n, links=1)
    lists = options.pick(K, K, (1, 3, 10))
    yield Items("synthetic", made.links[0].column("src").to_numpy(), n, lists)
    file = options.trace or (str(EPA) if EPA.exists() else None)
    if file is not None:
        loaded = trace_file.load(file, options.columns, links=1)
        codes = loaded.links[0].column("src").to_numpy()
        yield Items(
            Path(file).name.split(".")[0],
            codes,
            min(n, len(codes) // 2 // B[-1] * B[-1]),
            lists + LONG,
        )


def windows(items: Items, b: int, k: int, trials: int) -> Iterator[Found]:
    """Windows at random places, judged."""
    rng = np.random.default_rng(6)
    for start in rng.integers(0, len(items.codes) - items.n, trials).tolist():
        yield judged(items.codes[start : start + items.n], b, k)


def judged(codes: np.ndarray, b: int, k: int) -> Found:
    """Algorithm 6 over one window against exact counts.  Raises WrongAnswer for a false
    positive."""
    summaries, whole = summarized(codes, b, k)
    delta = int(whole.delta[0])
    values, counts = whole.values.to_numpy(), whole.counts
    values, counts = values[counts > delta], counts[counts > delta]
    true = np.bincount(codes)
    if (true[values] < counts).any():
        raise WrongAnswer(f"b = {b}, k = {k}: a value is counted more often than it occurs")
    kept = np.bincount(summaries.values.to_numpy(), minlength=len(true)) > 0
    if true[~kept].max(initial=0) > delta:
        raise WrongAnswer(f"b = {b}, k = {k}: a value in no summary occurs more than delta times")
    over = int((true > delta).sum())
    share = len(values) / over if over else np.nan
    error = float(np.mean((true[values] - counts) / true[values])) if len(values) else np.nan
    space = len(summaries.counts) + len(whole.counts)
    return Found(100 * delta / len(codes), over, len(values), share, space, error)


def summarized(codes: np.ndarray, b: int, k: int) -> tuple[Counters, Counters]:
    """The summaries of all sub-windows, and of the whole window."""
    algebra, n = Frequent(k, INT), np.arange(len(codes))
    summaries = algebra.close(
        algebra.lift(CellRows(n // b, n, n, (pa.array(codes),)), -(-len(codes) // b))
    )
    whole = summaries
    while algebra.size(whole) > 1:
        size = algebra.size(whole)
        half = np.arange(size // 2)
        both = algebra.combine(algebra.take(whole, 2 * half), algebra.take(whole, 2 * half + 1))
        whole = algebra.concat([both, algebra.take(whole, np.arange(2 * (size // 2), size))])
    return summaries, whole


def mean(found: Iterator[Found]) -> Found:
    """The means, each over the windows in which it is defined."""
    all_ = list(found)
    columns = {f.name: np.array([getattr(w, f.name) for w in all_]) for f in fields(Found)}
    return Found(
        **{n: float(np.nanmean(c)) if np.isfinite(c).any() else np.nan for n, c in columns.items()}
    )


SHOWN = {
    "delta": ("threshold delta, % of N", "{:.2f}"),
    "over": ("values over the threshold", "{:.2f}"),
    "listed": ("values found", "{:.2f}"),
    "share": ("share found, %", "{:.1f}"),
    "space": ("counters", "{:,.0f}"),
    "error": ("error of their counts, %", "{:.2f}"),
}


def _number(found: Found, what: str) -> float:
    return getattr(found, what) * (100 if what in ("share", "error") else 1)


def _tables(items: Items, found: dict[tuple[int, int], Found], trials: int) -> Iterator[Table]:
    header = ("b", "k", *(title for title, _ in SHOWN.values()))
    rows = tuple(
        (
            str(b),
            str(k),
            *(
                "-" if np.isnan(_number(w, n)) else form.format(_number(w, n))
                for n, (_, form) in SHOWN.items()
            ),
        )
        for (b, k), w in found.items()
    )
    shares = [w.share for (_, k), w in found.items() if k >= 3 and not np.isnan(w.share)]
    least = (
        f"With k >= 3 at least {100 * min(shares):.0f} % of the values over the threshold are "
        "found."
        if shares
        else ""
    )
    notes = ("No false positive in any window.", least, f"All items would be {items.n:,} counters.")
    yield Table(f"{items.name}: N = {items.n:,}, {trials} windows", header, rows, notes)


def _plots(items: Items, found: dict[tuple[int, int], Found]) -> Iterator[Plot]:
    for what, (title, _) in SHOWN.items():
        lines = {}
        for b in B:
            points = [(float(k), _number(w, what)) for (of, k), w in found.items() if of == b]
            points = [(k, y) for k, y in points if not np.isnan(y)]
            if points:
                lines[f"b = {b}"] = ([k for k, _ in points], [y for _, y in points])
        if lines:
            name = f"{items.name}, N = {items.n:,}"
            yield Plot(
                f"frequent_{items.name}_{what}.png",
                name,
                "k",
                title,
                lines,
                (False, what == "space"),
            )


def _cost(options: Options) -> Table:
    """What an item costs, by b: the analysis says O(1), whatever k."""
    items = next(streams(options))
    codes, rows = items.codes[: items.n], []
    for b in B:
        for k in (1, 10):
            summarized(codes, b, k)
            cpu = min(
                took(lambda b=b, k=k: summarized(codes, b, k)).cpu for _ in range(options.repeats)
            )  # type: ignore[misc]
            rows.append((str(b), str(k), f"{1e9 * cpu / len(codes):.0f} ns"))
    return Table("CPU time an item, summaries and their sum", ("b", "k", "an item"), tuple(rows))
