"""One index technique at work: it is built, then updated step by step, and read after each
update."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import LANDING, Archive, Manifest, create
from dsms.storage.archive.prune import KeyRange, plan
from dsms.storage.archive.schema import EXP, ID, TS
from dsms_spark.frames import spark_schema
from dsms_spark.session import get_session
from dsms_spark.update import update
from tests.benchmarks.archive_work import SCHEMA, STEP, STEPS, Data
from tests.benchmarks.harness import Took, same

PROBES = 3  # after each update


@dataclass(slots=True)
class Read:
    """What probes or scans cost: seconds of CPU, bytes that Spark read."""

    seconds: list[float] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """What one technique cost, update by update: seconds (wall, CPU of Python and Java), bytes
    written and their share of the index, sub-indices that were touched, the largest sub-index
    against the mean one."""

    layout: Layout
    updates: list[Took] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    probes: Read = field(default_factory=Read)
    scans: Read = field(default_factory=Read)

    def seconds(self, what: str = "cpu") -> float:
        """Of an update, on average."""
        return statistics.fmean(getattr(t, what) for t in self.updates)


class Spark:
    """A session, and the CPU time of this process and of Spark's Java, which does the work.  (Where
    the system does not tell it, the wall clock has to do.)"""

    def __init__(self, session: Any) -> None:
        self.session = session
        java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self._stat = Path(f"/proc/{java}/stat")
        self.read = 0  # bytes, by the last `counted`

    @classmethod
    def start(cls) -> Spark:
        """Raises DS650, DS651, DS652 where there is none."""
        return cls(
            get_session(
                "local[2]", "2g", {"spark.sql.shuffle.partitions": "2", "spark.buffer.size": "4096"}
            )
        )

    def took(self, run: Callable[[], Any]) -> tuple[Took, Any]:
        """What a call costs, and what it gives."""
        wall, cpu = time.perf_counter(), self._cpu()
        out = run()
        return Took(time.perf_counter() - wall, self._cpu() - cpu), out

    def rows(self, archive: Archive, manifest: Manifest, paths: list[str]) -> Any:
        """The rows of files, read by one thread after the other, which is how Spark counts
        bytes."""
        reader = self.session.read.schema(spark_schema(manifest.schema))
        reader = reader.option("parquet.hadoop.vectored.io.enabled", "false")
        return reader.parquet(*(archive.location(p) for p in paths))

    def counted(self, run: Callable[[], Any]) -> Any:
        """A Spark job, and the bytes that it reads."""
        context = self.session.sparkContext
        group = f"bench-{time.monotonic_ns()}"
        context.setJobGroup(group, "a benchmark")
        try:
            out = run()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        stages = [
            s for job in tracker.getJobIdsForGroup(group) for s in tracker.getJobInfo(job).stageIds
        ]
        self.read = sum(
            store.lastStageAttempt(s).inputBytes()
            for s in stages
            if tracker.getStageInfo(s) is not None
        )
        return out

    def _cpu(self) -> float:
        if not self._stat.exists():
            return time.perf_counter()
        user, system = self._stat.read_text().rsplit(")", 1)[1].split()[11:13]
        return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Landed:
    """All steps of a data set, landed once: every technique starts from links to the same files."""

    def __init__(self, data: Data, steps: int) -> None:
        self.data, self._steps = data, steps

    def __enter__(self) -> Landed:
        self._folder = tempfile.TemporaryDirectory(prefix="dsms-archive-")
        archive = create(
            self._folder.name,
            "data",
            "stream",
            SCHEMA,
            "k",
            Layout(1, 1, STEP, self.data.span),
            None,
        )
        for step in range(self._steps):
            Landing(archive).write(self.data.table(step), (step + 1) * STEP - 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def archive(self, folder: str, layout: Layout) -> Archive:
        """An archive with that layout, where everything has landed and nothing was taken over."""
        shutil.copytree(
            Path(self._folder.name, LANDING), Path(folder, LANDING), copy_function=os.link
        )
        return create(folder, "data", "stream", SCHEMA, "k", layout, self.data.span)


def run(spark: Spark, landed: Landed, layout: Layout, updates: int) -> Run:
    """Build the index from a whole lifetime's steps, then update it that often."""
    out, data = Run(layout), landed.data
    with tempfile.TemporaryDirectory(prefix="dsms-archive-") as folder:
        archive = landed.archive(folder, layout)
        update(spark.session, archive, STEPS * STEP - 1)
        for step in range(STEPS, STEPS + updates):
            end = (step + 1) * STEP - 1
            took, report = spark.took(lambda end=end: update(spark.session, archive, end))
            out.updates.append(took)
            out.written.append(report.bytes_written)
            out.index.append(report.bytes)
            out.share.append(report.bytes_written / max(report.total, report.bytes, 1))
            out.touched.append(len(report.touched))
            out.sizes.append(_evenness(archive))
            _read(spark, out, archive, data, report.upto)
    return out


@dataclass(frozen=True, slots=True)
class Fixed:
    """What an update, a probe and a scan cost on next to nothing in one sub-index: Spark,
    manifests, leases.  (Seconds; those of probe and scan are CPU time.)"""

    update: Took
    probe: float
    scan: float


def fixed_cost(spark: Spark, updates: int) -> Fixed:
    """Measured."""
    nothing = Data(4, 2)
    with Landed(nothing, STEPS + updates) as landed:
        made = run(spark, landed, Layout(1, 1, STEP, nothing.span), updates)
    took = Took(made.seconds("wall"), made.seconds("cpu"))
    return Fixed(took, statistics.fmean(made.probes.seconds), statistics.fmean(made.scans.seconds))


def _evenness(archive: Archive) -> float:
    """The largest sub-index against the mean one."""
    manifest = archive.manifest()
    sizes = np.zeros(manifest.layout.count)
    for f in manifest.files:
        sizes[f.sub] += f.rows
    return float(sizes.max() / sizes.mean())


def _read(spark: Spark, out: Run, archive: Archive, data: Data, upto: int) -> None:
    keys = data.alive(upto)
    for key in np.random.default_rng(upto).integers(0, data.keys, PROBES).tolist():
        same(
            f"rows with key {key}",
            _one(spark, out.probes, archive, upto, key),
            int((keys == key).sum()),
        )
    same("rows of the index", _one(spark, out.scans, archive, upto, None), len(keys))


def _one(spark: Spark, seen: Read, archive: Archive, upto: int, key: int | None) -> int:
    """Read whole rows with that key (None: all) that have not expired; how many there are."""
    from pyspark.sql import functions as f

    manifest = archive.manifest()
    wanted = plan(manifest, (), as_of=upto, key=None if key is None else KeyRange(values=(key,)))
    rows = spark.rows(archive, manifest, wanted.paths).where(f.col(EXP) > upto)
    if key is not None:
        rows = rows.where(f.col("k") == key)
    found = rows.agg(f.count(f.lit(1)), f.max(f.xxhash64("data")), f.max(TS), f.max(ID))
    took, (line,) = spark.took(lambda: spark.counted(found.collect))
    seen.seconds.append(took.cpu)
    seen.nbytes.append(spark.read)
    return line[0]
