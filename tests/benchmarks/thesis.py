"""Golab 2006, §3.6: Queries 1-4 under the negative tuple approach (NT), the direct approach
(DIRECT) and update-pattern aware processing (UPA, with calendar queues of 10, 50, or as many
partitions as fit), windows of 2,000 to 200,000 time units with one tuple per link and unit.  Every
pair of strategies must report the same changes in the same order."""

from __future__ import annotations

import statistics

from tests.benchmarks import trace_file
from tests.benchmarks.harness import Options, Plot, Section, Table, WrongAnswer, ratio, shown
from tests.benchmarks.thesis_cases import CASES, DIRECT, OPTIONS, UPA, Case, Claim
from tests.benchmarks.thesis_run import Effort, Measured, run
from tests.benchmarks.trace import Trace, synthetic

WINDOWS = (2_000, 5_000, 20_000, 50_000, 100_000, 200_000)
Results = dict[str, dict[int, Measured]]  # contender -> window -> what was measured


def section(options: Options) -> Section:
    """All figures."""
    trace, windows = _input(options)
    effort = options.pick(Effort(), Effort(seconds=0.3), Effort(step=300, seconds=0.05, repeats=1))
    out = Section(
        "The thesis's experiments (Golab 2006, §3.6)", f"{__doc__}\n\nInput: {trace.about}."
    )
    claims: list[tuple[str, ...]] = []
    notes: list[str] = []
    for case in CASES:
        results = _compete(case, windows, trace, effort)
        out.parts += _tables(case, results)
        for claim in case.claims:
            row, note = _judged(case, claim, results)
            claims.append(row)
            notes += note
    out.parts.insert(0, _summary(claims, notes))
    return out


def _input(options: Options) -> tuple[Trace, tuple[int, ...]]:
    """The trace and the windows that it can fill twice."""
    wanted = options.pick(WINDOWS, WINDOWS[:3], (200,))
    if options.trace is None:
        return synthetic(round(2.2 * wanted[-1]) + 12_000 * (wanted[-1] > 1000) + 4000), wanted
    trace = trace_file.load(options.trace, options.columns)
    units = trace.span // trace.unit
    fitting = tuple(w for w in (*WINDOWS[:2], 10_000, *WINDOWS[2:]) if 1.3 * w <= units)
    return trace, fitting or (max(10, units // 3),)


def _compete(case: Case, windows: tuple[int, ...], trace: Trace, effort: Effort) -> Results:
    results: Results = {c: {} for c in case.contenders}
    for contender in case.contenders:
        run(case, contender, windows[0], trace, Effort(effort.step, 0.0, repeats=1))  # compiles
    for window in windows:
        for contender in case.contenders:
            results[contender][window] = run(case, contender, window, trace, effort)
        agree(case, window, {c: results[c][window] for c in case.contenders})
    return results


def agree(case: Case, window: int, measured: dict[str, Measured]) -> None:
    """Raises WrongAnswer unless all reported the same up to every instant at which two of them
    stopped."""
    first, *others = measured.items()
    for name, other in others:
        common = other.digests.keys() & first[1].digests.keys()
        if len(common) < 2:
            raise WrongAnswer(
                f"{case.name}, window {window}: {name} and {first[0]} can't be compared"
            )
        for at in sorted(common):
            if other.digests[at] != first[1].digests[at]:
                raise WrongAnswer(
                    f"{case.name}, window {window}: up to {at} µs {name} reported "
                    f"{other.digests[at]}, {first[0]} {first[1].digests[at]} (insertions, "
                    "deletions, next seq, checksum)"
                )


def _tables(case: Case, results: Results) -> list[Table | Plot]:
    title = f"Figure {case.time}: {case.title}"
    windows = list(next(iter(results.values())))
    about = f"`{case.sql}`; time per 1000 tuples, ms of CPU"
    header = ("window", *results, "rows in the answer")
    parts: list[Table | Plot] = [
        Table(title, header, _rows(results, windows, "ms"), (about, *_early(case, results))),
        _plot(case.time, title, "ms of CPU per 1000 tuples", results, "ms"),
    ]
    if case.space is not None:
        title = f"Figure {case.space}: space of {case.title}"
        rows = _rows(results, windows, "state_bytes")
        parts.append(Table(title, header, rows, ("bytes of state",)))
        parts.append(_plot(case.space, title, "bytes of state", results, "state_bytes"))
    return parts


def _early(case: Case, results: Results) -> tuple[str, ...]:
    """How many results of Query 3 ended before their time."""
    if case.name != "query3":
        return ()
    shares = {w: m.premature for w, m in results[UPA].items()}
    said = ", ".join(f"{w:,}: {100 * s:.0f} %" for w, s in shares.items())
    return (f"results that ended before their time, by window: {said} (the thesis counts 40 %)",)


def _rows(results: Results, windows: list[int], what: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            f"{w:,}",
            *(shown(getattr(by[w], what)) for by in results.values()),
            shown(results[UPA][w].live),
        )
        for w in windows
    )


def _plot(figure: str, title: str, unit: str, results: Results, what: str) -> Plot:
    lines = {
        name: ([float(w) for w in by], [float(getattr(m, what)) for m in by.values()])
        for name, by in results.items()
    }
    return Plot(f"fig-{figure.replace('.', '-')}.png", title, "window, time units", unit, lines)


def _judged(case: Case, claim: Claim, results: Results) -> tuple[tuple[str, ...], list[str]]:
    """The row of a claim in the summary, and a sentence where the factor is smaller than
    printed."""
    slow, fast = results[claim.slow], results[claim.fast]
    what = "ms" if claim.of == "time" else "state_bytes"
    factors = [getattr(slow[w], what) / getattr(fast[w], what) for w in slow]
    here = {"small": factors[0], "large": factors[-1], "all": statistics.geometric_mean(factors)}[
        claim.where
    ]
    windows = list(slow)
    where = {"small": f"{windows[0]:,}", "large": f"{windows[-1]:,}", "all": "mean of all"}[
        claim.where
    ]
    figure = case.time if claim.of == "time" else str(case.space)
    pair = f"{claim.slow} : {claim.fast}"
    own = getattr(slow[windows[-1]], what) / getattr(results[UPA][windows[-1]], what)
    row = (
        figure,
        claim.of,
        pair,
        where,
        f"~{claim.printed:g} ×",
        ratio(here),
        ratio(own),
        claim.words,
    )
    if here >= claim.printed or not claim.why:
        return row, []
    return row, [
        f"Fig {figure}, {pair}: {ratio(here)} instead of about {claim.printed:g}: {claim.why}."
    ]


def _summary(claims: list[tuple[str, ...]], notes: list[str]) -> Table:
    header = (
        "figure",
        "of",
        "ratio",
        "at window",
        "printed",
        "here",
        "against UPA, largest window",
        "the thesis says",
    )
    about = (
        f"UPA(10), UPA(50): calendar queues of that many partitions; {UPA}: as many as fit, "
        "what a user gets."
    )
    direct = (
        f"{DIRECT} reads lists that hold nothing but live rows (to a sixteenth), NT has "
        "hashed state."
    )
    return Table("Ratios of the thesis and here", header, tuple(claims), (about, direct, *notes))


__all__ = ["OPTIONS", "agree", "section"]
