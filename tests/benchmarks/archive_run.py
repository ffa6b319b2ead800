"""One index technique at work: it is built, then updated step by step, and read after each update."""

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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import LANDING, Archive, create
from dsms.storage.archive.prune import KeyRange, plan
from dsms.storage.archive.schema import EXP
from dsms_spark.session import get_session
from dsms_spark.update import update
from tests.benchmarks.archive_work import SCHEMA, STEP, STEPS, Data
from tests.benchmarks.harness import Took, same

PROBES = 3  # after each update


@dataclass(slots=True)
class Read:
    """What probes or scans cost: seconds of CPU, bytes of row groups and footers."""

    seconds: list[float] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """What one technique cost, update by update: seconds (wall, CPU of Python and Java), bytes written and their
    share of the index, sub-indices that were touched, the largest sub-index against the mean one."""

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
    """A session, and the CPU time of this process and of Spark's Java, which does the work.  (Where the system does not
    tell it, the wall clock has to do.)"""

    def __init__(self, session: Any) -> None:
        self.session = session
        java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self._stat = Path(f"/proc/{java}/stat")

    @classmethod
    def start(cls) -> Spark:
        """Raises DS650, DS651, DS652 where there is none."""
        return cls(get_session("local[2]", "2g", {"spark.sql.shuffle.partitions": "2"}))

    def took(self, run: Callable[[], Any]) -> tuple[Took, Any]:
        """What a call costs, and what it gives."""
        wall, cpu = time.perf_counter(), self._cpu()
        out = run()
        return Took(time.perf_counter() - wall, self._cpu() - cpu), out

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
        archive = create(self._folder.name, "data", "stream", SCHEMA, "k", Layout(1, 1, STEP, self.data.span), None)
        for step in range(self._steps):
            Landing(archive).write(self.data.table(step), (step + 1) * STEP - 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def archive(self, folder: str, layout: Layout) -> Archive:
        """An archive with that layout, where everything has landed and nothing was taken over."""
        shutil.copytree(Path(self._folder.name, LANDING), Path(folder, LANDING), copy_function=os.link)
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
            _read(out, archive, data, report.upto)
    return out


def fixed_cost(spark: Spark, updates: int) -> Took:
    """An update of next to nothing: what Spark, manifests and leases cost by themselves."""
    nothing = Data(4, 2)
    with Landed(nothing, STEPS + updates) as landed:
        made = run(spark, landed, Layout(4, 4, STEP, nothing.span), updates)
    return Took(made.seconds("wall"), made.seconds("cpu"))


def _evenness(archive: Archive) -> float:
    """The largest sub-index against the mean one."""
    manifest = archive.manifest()
    sizes = np.zeros(manifest.layout.count)
    for f in manifest.files:
        sizes[f.sub] += f.rows
    return float(sizes.max() / sizes.mean())


def _read(out: Run, archive: Archive, data: Data, upto: int) -> None:
    keys = data.alive(upto)
    for key in np.random.default_rng(upto).integers(0, data.keys, PROBES).tolist():
        begun = time.process_time()
        found, nbytes = _probe(archive, key, upto)
        out.probes.seconds.append(time.process_time() - begun)
        out.probes.nbytes.append(nbytes)
        same(f"rows with key {key}", found, int((keys == key).sum()))
    begun = time.process_time()
    found, nbytes = _probe(archive, None, upto)
    out.scans.seconds.append(time.process_time() - begun)
    out.scans.nbytes.append(nbytes)
    same("rows of the index", found, len(keys))


def _probe(archive: Archive, key: int | None, upto: int) -> tuple[int, int]:
    """Rows with that key (None: all), and bytes that had to be read: by ranges of files, then of row groups."""
    manifest, found, nbytes = archive.manifest(), 0, 0
    wanted = plan(manifest, (), as_of=upto, key=None if key is None else KeyRange(values=(key,)))
    for file in wanted.files:
        with archive.open(file.path) as source:
            parquet = pq.ParquetFile(source)
            groups = [g for g in range(parquet.num_row_groups) if key is None or _meets(parquet.metadata, g, key)]
            nbytes += parquet.metadata.serialized_size + sum(_size(parquet.metadata, g) for g in groups)
            table = parquet.read_row_groups(groups)
        alive = pc.greater(table.column(EXP), upto)
        chosen = alive if key is None else pc.and_(alive, pc.equal(table.column("k"), key))
        found += pc.sum(chosen).as_py() or 0
    return found, nbytes


def _meets(told: pq.FileMetaData, group: int, key: int) -> bool:
    stats = told.row_group(group).column(0).statistics
    return stats is None or not stats.has_min_max or stats.min <= key <= stats.max


def _size(told: pq.FileMetaData, group: int) -> int:
    columns = told.row_group(group)
    return sum(columns.column(c).total_compressed_size for c in range(columns.num_columns))
