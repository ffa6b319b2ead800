"""Jobs on an archive that die at any of their operations on files, and nothing is tidied up then:
the archive is as it was, or as it is when the job is done, and the next job finishes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsms.storage.archive.landing import snapshot
from dsms.storage.archive.lease import LEASE
from dsms.storage.archive.manifest import Archive
from dsms_spark.compact import compact
from dsms_spark.migrate import migrate
from tests.archive_index import (
    Killed,
    dying,
    held,
    land,
    layout,
    made,
    on_disk,
    updated,
    without_spark,
)

KINDS = ("rebuild", "no rebuild", "migration", "compaction")


class Deaths:
    """One kind of job on one archive; `count`: how many operations on files it has."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._start = started(folder / "start", kind)
        self._old, whole = held(self._start), copied(self._start, folder / "whole")
        with dying(0) as counted:
            carried_out(kind, whole)
        self._want, self.count = held(whole), counted.count

    def suffer(self, at: int, after: bool) -> None:
        """Die at that operation (from 1), before it or when it is done.  Raises AssertionError."""
        archive = copied(self._start, self._folder / f"{at}{after}")
        manifest, files = snapshot(archive)
        with dying(at, after), pytest.raises(Killed):
            carried_out(self._kind, archive)
        assert held(archive) in (self._old, self._want)
        assert held(archive, manifest) == self._old
        assert all(archive.exists(*f.path.split("/")) for f in files)
        carried_out(self._kind, archive)
        assert held(archive) == self._want and not archive.exists(LEASE)
        kept = {f.path for n in archive.numbers() for f in archive.manifest(n).files}
        assert on_disk(archive) == kept
        shutil.rmtree(archive.root)


def started(folder: Path, kind: str) -> Archive:
    """An archive that has an index, and rows that have landed since."""
    archive = made(folder, layout(strategy="no rebuild" if kind == "no rebuild" else "rebuild"))
    for step in range(4):
        land(archive, step, 15, start=step * 15)
        if step < 2:
            updated(archive)
    return archive


def carried_out(kind: str, archive: Archive) -> None:
    """The job, without Spark."""
    with without_spark():
        match kind:
            case "migration":
                migrate(None, archive, layout(3, 3), "v")  # type: ignore[arg-type]
            case "compaction":
                compact(None, archive)  # type: ignore[arg-type]
            case _:
                updated(archive)


def copied(archive: Archive, folder: Path) -> Archive:
    """The same in another folder."""
    shutil.copytree(archive.root, folder)
    return Archive(str(folder))
