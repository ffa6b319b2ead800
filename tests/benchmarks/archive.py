"""The archive's index (Golab 2006, §4.4): doubly partitioned, G x E of 2x2 to 5x5, with and without rebuilding,
round-robin and chronological, against wave indices by insertion time (REINDEX and DEL) of as many sub-indices.

Rows live for a time drawn evenly up to S; the index is built from what lives at one instant and then updated every
Δ = S / 36, and after each update probed for one key and scanned.  Every update is one Spark job on this machine; what a
job costs that changes nothing is measured apart and taken off in the column `net`.  Bytes are those of files, as the
update itself reports them; answers of probes and scans are checked against the rows that were made."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.sql.types import INT, STRING, Field
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.prune import KeyRange, plan
from dsms.storage.archive.schema import EXP, stored_schema
from tests.benchmarks.harness import Options, Plot, Section, Table, same

STEPS = 36  # Δ in S
EVERY = 1_000_000
SPAN = STEPS * EVERY
KEYS = 100
SCHEMA = (Field("k", INT), Field("v", INT), Field("text", STRING))
SIDES = (2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Case:
    """An index to be measured."""

    name: str
    layout: Layout


@dataclass(slots=True)
class Seen:
    """Medians over the updates: seconds, and bytes of files."""

    update: list[float] = field(default_factory=list)
    probe: list[float] = field(default_factory=list)
    scan: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)  # share of the index
    touched: list[int] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)  # bytes of row groups that may hold the key
    scanned: list[int] = field(default_factory=list)


def cases(sides: tuple[int, ...]) -> Iterator[Case]:
    for side in sides:
        for strategy in ("rebuild", "no rebuild"):
            for order in ("round-robin", "chronological"):
                if (strategy, order) != ("no rebuild", "chronological"):
                    name = {"rebuild": "Rebuild", "no rebuild": "NoRebuild"}[strategy]
                    mark = " chr" if order == "chronological" else ""
                    yield Case(f"{name} {side}x{side}{mark}", _layout(side, side, order, strategy))
        for strategy, name in (("rebuild", "R-ins"), ("no rebuild", "D-ins")):
            yield Case(f"{name} {side * side}", _layout(side * side, 1, "chronological", strategy))


def _layout(g: int, e: int, order: Any, strategy: Any) -> Layout:
    return Layout(g, e, EVERY, SPAN, 0, order, strategy)


def section(options: Options) -> Section:
    """All indices at one size with steady rates; the ones with n = 16 larger, and with rates that fluctuate."""
    from dsms_spark.session import get_session

    spark = get_session("local[2]", "3g", {"spark.sql.shuffle.partitions": "2"})
    rows, large, updates = options.pick((400_000, 1_600_000, 4), (60_000, 120_000, 2), (2_000, 4_000, 1))
    fixed = _fixed(spark, options)
    small = {c.name: run(spark, c, rows, updates) for c in cases(SIDES if options.mode != "toy" else (2,))}
    chosen = list(cases((4,) if options.mode != "toy" else (2,)))
    big = {c.name: run(spark, c, large, updates) for c in chosen}
    uneven = {c.name: run(spark, c, rows, updates, fluctuating=True) for c in chosen}
    parts: list[Table | Plot] = [
        _table(f"{rows:,} living rows, steady", small, fixed),
        _table(f"{large:,} living rows, steady", big, fixed),
        _table(f"{rows:,} living rows, rates that vary by a factor of up to four", uneven, fixed),
        _plot("archive-update.png", "Update times", "s, without a job's fixed cost", small,
              lambda s: statistics.median(s.update) - fixed),
        _plot("archive-written.png", "What an update writes", "share of the index", small,
              lambda s: statistics.median(s.written)),
    ]  # fmt: skip
    return Section("Archive", __doc__ or "", parts)


def run(spark: Any, case: Case, living: int, updates: int, fluctuating: bool = False) -> Seen:
    """Build an index and update it; what that took."""
    from dsms_spark.update import update

    rng, seen = np.random.default_rng(1), Seen()
    rate = 2 * living // STEPS  # rows a step: half of those of the last S live, on average
    with tempfile.TemporaryDirectory() as folder:
        archive = create(f"{folder}/a", "a", "stream", SCHEMA, "k", case.layout, SPAN)
        landing, made = Landing(archive), []
        for step in range(-STEPS, updates):
            count = int(rate * rng.uniform(0.4, 1.6)) if fluctuating and step >= 0 else rate
            table = _rows(rng, step, count)
            made.append(table.select(["k", "v", EXP]))
            landing.write(table, (step + 1) * EVERY - 1)
            if step == -1:
                update(spark, archive)
            if step >= 0:
                _measure(spark, archive, seen, pa.concat_tables(made), (step + 1) * EVERY - 1, int(rng.integers(KEYS)))
    return seen


def _rows(rng: np.random.Generator, step: int, count: int) -> pa.Table:
    """The rows of one step: a key, a value, 64 characters that do not compress, a lifetime up to S."""
    ts = np.sort(step * EVERY + rng.integers(0, EVERY, count))
    exp = ts + rng.integers(1, SPAN + 1, count)
    raw = rng.integers(33, 127, count * 64, dtype=np.uint8)
    text = pa.StringArray.from_buffers(
        count, pa.py_buffer(np.arange(0, 64 * (count + 1), 64, dtype=np.int32)), pa.py_buffer(raw)
    )
    columns = [rng.integers(0, KEYS, count), rng.integers(0, 1000, count), text, ts, exp, np.arange(count)]
    return pa.table(columns, schema=stored_schema(SCHEMA))


def _measure(spark: Any, archive: Archive, seen: Seen, made: pa.Table, upto: int, key: int) -> None:
    from dsms_spark.update import update

    began = time.perf_counter()
    report = update(spark, archive)
    seen.update.append(time.perf_counter() - began)
    seen.written.append(report.bytes_written / max(report.total, 1))
    seen.touched.append(len(report.touched))
    living = made.column(EXP).to_numpy() > upto
    values, keys = made.column("v").to_numpy(), made.column("k").to_numpy()
    took, size, total = _read(spark, archive, upto, key)
    same("a probe", total, int(values[living & (keys == key)].sum()))
    seen.probe.append(took)
    seen.probed.append(size)
    took, size, total = _read(spark, archive, upto, None)
    same("a scan", total, int(values[living].sum()))
    seen.scan.append(took)
    seen.scanned.append(size)


def _read(spark: Any, archive: Archive, upto: int, key: int | None) -> tuple[float, int, int]:
    """SUM(v) of one key, or of all: seconds, bytes of the row groups that must be read, the sum."""
    from pyspark.sql import functions as f

    from dsms_spark.frames import read_files

    manifest = archive.manifest()
    found = plan(manifest, as_of=upto, key=None if key is None else KeyRange(values=(key,)))
    began = time.perf_counter()
    rows = read_files(spark, archive, manifest.schema, found.paths).where(f.col(EXP) > upto)
    if key is not None:
        rows = rows.where(f.col("k") == key)
    total = rows.agg(f.sum("v"), f.max(f.length("text"))).collect()[0][0]
    took = time.perf_counter() - began
    return took, _bytes(archive, found.paths, key), int(total or 0)


def _bytes(archive: Archive, paths: list[str], key: int | None) -> int:
    """Bytes of the row groups whose statistics allow the key."""
    import pyarrow.parquet as pq

    total = 0
    for path in paths:
        told = pq.read_metadata(archive.path(path))
        for g in range(told.num_row_groups):
            group = told.row_group(g)
            stats = group.column(0).statistics
            if key is None or stats is None or not stats.has_min_max or stats.min <= key <= stats.max:
                total += (
                    group.total_compressed_size if hasattr(group, "total_compressed_size") else group.total_byte_size
                )
    return total


def _fixed(spark: Any, options: Options) -> float:
    """What an update costs that has next to nothing to do."""
    tiny = run(spark, Case("tiny", _layout(2, 2, "round-robin", "rebuild")), 80, 1 if options.mode == "toy" else 5)
    return min(tiny.update)


def _table(title: str, seen: dict[str, Seen], fixed: float) -> Table:
    header = (
        "index",
        "touched",
        "written",
        "update s",
        "net s",
        "probe s",
        "scan s",
        "probe reads",
        "of a scan's bytes",
    )
    note = f"A job's fixed cost is {fixed:.2f} s.  `written`: bytes that an update writes over bytes of the index."
    return Table(title, header, tuple(_line(name, s, fixed) for name, s in seen.items()), (note,))


def _line(name: str, s: Seen, fixed: float) -> tuple[str, ...]:
    middle = statistics.median
    share = middle(s.probed) / max(middle(s.scanned), 1)
    return (name, str(max(s.touched)), f"{middle(s.written):.2f}", f"{middle(s.update):.2f}",
            f"{middle(s.update) - fixed:.2f}", f"{middle(s.probe):.2f}", f"{middle(s.scan):.2f}",
            f"{middle(s.probed) / 1e6:.1f} MB", f"{share:.3f}")  # fmt: skip


def _plot(file: str, title: str, y: str, seen: dict[str, Seen], value: Any) -> Plot:
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for name, s in seen.items():
        kind, size, *rest = name.split()
        n = float(int(size.split("x")[0]) ** 2) if "x" in size else float(size)
        line = lines.setdefault(" ".join([kind, *rest]), ([], []))
        line[0].append(n)
        line[1].append(float(value(s)))
    return Plot(file, title, "sub-indices", y, lines, (False, False))
