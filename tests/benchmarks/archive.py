"""The archive's index after Golab 2006, §4.4: doubly partitioned indices (G x E sub-indices;
rebuild and no rebuild; round-robin and chronological) against wave indices by insertion time
(REINDEX, DEL), on its data: records of a thousand bytes, keys and lifetimes from uniform
distributions, a lifetime of 36 updates at most.

An update is one Spark job; its time is CPU time of Python and Java.  What a job costs that has
nothing to do is measured by itself, and subtracted where it says "net": on data of gigabytes it
does not show, on these it would hide the rest.  Probes and scans are Spark jobs that read whole
rows; bytes are what Spark says it has read (in buffers of four kilobytes).  Each answer is
checked."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from dsms.storage.archive.choose import square, wave
from dsms.storage.archive.layout import Layout, Strategy
from tests.benchmarks.archive_run import Fixed, Landed, Read, Run, Spark, fixed_cost, run
from tests.benchmarks.archive_work import STEP, STEPS, Data
from tests.benchmarks.harness import Options, Plot, Section, Table, Took, ratio, shown

ALL = (4, 9, 16, 25)
REBUILD: Strategy = "rebuild"
NO_REBUILD: Strategy = "no rebuild"


@dataclass(frozen=True, slots=True)
class Technique:
    """One line of the thesis' figures: how the layout with n sub-indices is made."""

    name: str
    make: Callable[[int, int], Layout]


def _squared(strategy: Strategy, order: str = "round-robin") -> Callable[[int, int], Layout]:
    def make(n: int, span: int) -> Layout:
        made = square(n, STEP, span, strategy)
        return Layout(
            made.generations, made.expirations, STEP, span, order=order, strategy=strategy
        )  # type: ignore[arg-type]

    return make


R = Technique("Rebuild", _squared(REBUILD))
NOR = Technique("NoRebuild", _squared(NO_REBUILD))
R_CHR = Technique("Rebuild (chr)", _squared(REBUILD, "chronological"))
NOR_CHR = Technique("NoRebuild (chr)", _squared(NO_REBUILD, "chronological"))
REINDEX = Technique("REINDEX", lambda n, span: wave(n, STEP, span))
DEL = Technique("DEL", lambda n, span: wave(n, STEP, span, strategy=NO_REBUILD))
LAZY = Technique(
    "DEL, lazy", lambda n, span: replace(wave(n, STEP, span, strategy=NO_REBUILD), eager=False)
)


@dataclass(frozen=True, slots=True)
class Series:
    """Techniques on one data set: name -> the counts of sub-indices that are measured."""

    title: str
    data: Data
    updates: int
    shapes: tuple[tuple[Technique, tuple[int, ...]], ...]


Found = dict[tuple[str, int], Run]


def section(options: Options) -> Section:
    """Small, large and fluctuating data."""
    spark = Spark.start()
    fixed = _warm(spark, options.pick(3, 2, 0), options.pick(4, 2, 1))
    parts: list[Table | Plot] = []
    results: list[tuple[Series, Found]] = []
    for series in _series(options):
        found = _measure(spark, series)
        results.append((series, found))
        parts += [_table(series, found, fixed), *_plots(series, found, fixed, len(results))]
    return Section(
        "The archive's index (Golab 2006, §4.4)", __doc__ or "", [_claims(results, fixed), *parts]
    )


def _series(options: Options) -> list[Series]:
    small = options.pick(6_000, 1_500, 30)
    keys = options.pick(1_000, 1_000, 10)
    ends = (4, 16)
    if options.mode != "full":
        few = tuple((t, (16,)) for t in options.pick((), (R, NOR, REINDEX, DEL), (R, REINDEX)))
        return [Series("Steady rate", Data(small, keys), options.pick(0, 2, 1), few)]
    first = (
        (R, ALL),
        (NOR, ALL),
        (R_CHR, ends),
        (NOR_CHR, ends),
        (REINDEX, ALL),
        (DEL, ALL),
        (LAZY, (16,)),
    )
    large = ((R, ALL), (NOR, ALL), (REINDEX, ends), (DEL, ends))
    swing = tuple((t, ends) for t in (R, NOR, REINDEX, DEL))
    return [
        Series("Small data, steady rate", Data(small, keys), 6, first),
        Series("Large data, steady rate", Data(4 * small, keys), 4, large),
        Series(
            "Small data, rates that differ by a factor of up to four",
            Data(small, keys, 4.0),
            6,
            swing,
        ),
    ]


def _warm(spark: Spark, times: int, updates: int) -> Fixed:
    """The last of some runs counts, when Java has compiled what it runs often."""
    return (
        [fixed_cost(spark, updates) for _ in range(times)][-1]
        if times
        else Fixed(Took(0.0, 0.0), 0.0, 0.0)
    )


def _measure(spark: Spark, series: Series) -> Found:
    found: Found = {}
    with Landed(series.data, STEPS + series.updates) as landed:
        if series.updates > 1:
            # Java compiles what it runs often
            run(spark, landed, REINDEX.make(16, series.data.span), 1)
        for technique, counts in series.shapes:
            for n in counts:
                found[technique.name, n] = run(
                    spark, landed, technique.make(n, series.data.span), series.updates
                )
    return found


# -- what came out


def _net(made: Run, fixed: Fixed) -> float:
    return max(0.0, made.seconds() - fixed.update.cpu)


def _read(seen: Read, fixed: float) -> tuple[str, str, str]:
    seconds = statistics.fmean(seen.seconds)
    return (
        f"{seconds:.2f}",
        f"{max(0.0, seconds - fixed):.2f}",
        shown(statistics.fmean(seen.nbytes)) + "B",
    )


def _share(made: Run) -> float:
    return statistics.fmean(made.share)


def _table(series: Series, found: Found, fixed: Fixed) -> Table:
    rows = []
    for (name, n), made in found.items():
        rows.append((
            name, str(n), f"{statistics.fmean(made.touched):.0f}", f"{made.seconds():.2f}",
            f"{_net(made, fixed):.2f}",
            f"{made.seconds('wall'):.2f}", shown(statistics.fmean(made.written)) + "B",
            f"{100 * _share(made):.0f} %",
            *_read(made.probes, fixed.probe), *_read(made.scans, fixed.scan),
            f"{max(made.sizes):.2f}",
        ))  # a row of a report  # fmt: skip
    header = ("technique", "n", "touched", "update, CPU s", "net", "wall s", "written",
              "of the index", "probe, CPU s",
              "net", "read", "scan, CPU s", "net", "read",
              "largest / mean")  # a row of a report  # fmt: skip
    size = statistics.fmean(r.index[-1] for r in found.values())
    notes = (
        f"{series.data.rows:,} rows a step on average, {shown(size)}B in the index, "
        f"{series.data.keys:,} keys; {series.updates} updates after the index was built from "
        f"{STEPS} steps",
        f"with next to nothing in one sub-index: an update {fixed.update.cpu:.2f} s of CPU "
        f"({fixed.update.wall:.2f} s), a probe {fixed.probe:.2f}, a scan {fixed.scan:.2f}",
    )
    return Table(series.title, header, tuple(rows), notes)


MEASURES: tuple[tuple[str, str, Callable[[Run, Took], float]], ...] = (
    ("update", "CPU seconds of an update, net", _net),
    ("written", "part of the index that an update writes", lambda r, _: _share(r)),
    ("probe", "bytes that a probe reads", lambda r, _: statistics.fmean(r.probes.nbytes)),
    (
        "scan",
        "CPU seconds of a scan, net",
        lambda r, f: max(0.0, statistics.fmean(r.scans.seconds) - f.scan),
    ),
)


def _plots(series: Series, found: Found, fixed: Fixed, number: int) -> list[Plot]:
    out = []
    names = list(dict.fromkeys(name for name, _ in found))
    for what, axis, measure in MEASURES:
        lines = {}
        for name in names:
            points = [
                (float(n), measure(made, fixed)) for (who, n), made in found.items() if who == name
            ]
            lines[name] = ([x for x, _ in points], [y for _, y in points])
        out.append(
            Plot(
                f"archive-{what}-{number}.png",
                f"{series.title}: {axis}",
                "sub-indices",
                axis,
                lines,
                (False, False),
            )
        )
    return out


NOTES = (
    "The part of the index's bytes that an update writes can exceed (G+E-1)/(G*E) by the rows "
    "that are new and by what sub-indices differ in size; a hundredth is allowed for that.",
    "DEL and NoRebuild of the thesis delete in place; files of an archive are never changed, so "
    "deleting means writing anew. DEL does that at every update, which is the only way to delete "
    "what has expired; NoRebuild leaves expired rows in a file until they are half of it, which a "
    "wave index can do as well (`DEL, lazy`): then both write little, and readers pass the "
    "expired rows over.",
    "What a probe reads of each sub-index is the footer, the index of one row group and some "
    "pages, in buffers: that hardly grows with the data, which is why small data do not reach two "
    "orders. Each key is one of a thousand.",
)


def _claims(results: list[tuple[Series, Found]], fixed: Fixed) -> Table:
    rows: list[tuple[str, ...]] = []
    for series, found in results:
        rows += [
            (claim, series.title, here, "yes" if holds else "no")
            for claim, here, holds in _judged(found, fixed)
        ]
    header = ("claim", "data", "here", "holds")
    return Table("What the thesis claims, and what comes out here", header, tuple(rows), NOTES)


def _judged(found: Found, fixed: Fixed) -> list[tuple[str, str, bool]]:
    doubly = [
        (made, (2 * root - 1) / (root * root))
        for (name, n), made in found.items()
        if name in (R.name, NOR.name)
        for root in (round(n**0.5),)
    ]
    worst = max(_share(made) / bound for made, bound in doubly)
    out = [
        (
            "updates write at most (G+E-1)/(G*E) of the data",
            f"{worst:.2f} of that at most",
            all(_share(made) <= bound + 0.01 for made, bound in doubly),
        )
    ]
    for ours, theirs in ((R, REINDEX), (NOR, DEL)):
        if (theirs.name, 16) not in found:
            continue
        a, b = found[ours.name, 16], found[theirs.name, 16]
        gain = _net(b, fixed) / max(0.01, 0.05 * fixed.update.cpu, _net(a, fixed))
        whole = b.seconds() / a.seconds()
        claim = f"{ours.name} 4x4 is updated at least twice as fast as {theirs.name} with n = 16"
        out.append((claim, f"{ratio(gain)} net, {ratio(whole)} with all", gain >= 2))
    less = [statistics.fmean(m.scans.nbytes) / statistics.fmean(m.probes.nbytes) for m, _ in doubly]
    out.append(
        (
            "a probe reads two orders less than a scan",
            f"{ratio(min(less))} to {ratio(max(less))}",
            min(less) >= 100,
        )
    )
    return out
