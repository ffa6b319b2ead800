"""Spark jobs on an archive that are killed at work: the whole job, its Java or its Python alone.
The archive is as it was, or the job is done, and the next job does the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from dsms.storage.archive.manifest import Archive
from dsms_spark.update import update
from tests.archive_index import end_of, held, land, made, updated

ROOT = Path(__file__).resolve().parents[2]
WAYS = ("all", "java", "python")
LATEST = 14  # files or folders that a job has made when it is killed, at most
JOB = """
import sys
from dsms.storage.archive.manifest import Archive
from dsms_spark.session import get_session
from dsms_spark.update import update
spark = get_session("local[1]", "1g")
print("there", flush=True)
update(spark, Archive(sys.argv[1]))
"""


def killed_at_work(number: int, seed: int, folder: Path, spark: Any = None) -> str:
    """The job of that number, killed when it has made some files; what happened, in words.

    spark  what the next job runs on; None: the writer of tests/archive_index.py
    Raises AssertionError where the archive is neither as it was nor as it should be."""
    random = Random(f"{seed} {number}")
    files, way = random.randint(1, LATEST), WAYS[number % len(WAYS)]
    archive = made(folder / "a")
    land(archive, 0, 500)
    updated(archive)
    for step in range(1, 4):
        land(archive, step, 200_000, start=step * 200_000, span=10**15)
    before, seen, there = archive.manifest(), held(archive), _inside(folder)
    job = _begun(archive)
    while job.poll() is None and len(_inside(folder) - there) < files:
        os.sched_yield()
    late = job.poll() is not None
    _kill(job, way)
    kept = archive.manifest() == before
    if kept:
        assert held(archive) == seen
        updated(archive) if spark is None else update(spark, archive)
    assert archive.manifest().upto == end_of(3)
    assert {i for i, _ in held(archive)} >= set(range(200_000, 800_000))
    when = "when it was done" if late else f"after {files} files"
    return f"{way} killed {when}: {'as it was, and done again' if kept else 'done'}"


def _begun(archive: Archive) -> subprocess.Popen[bytes]:
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, archive.url],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'clients'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert job.stdout is not None and job.stdout.readline() == b"there\n"
    return job


def _kill(job: subprocess.Popen[bytes], way: str) -> None:
    """What is left of it then ends by itself."""
    group = os.getpgid(job.pid) if job.poll() is None else None
    try:
        if way == "python":
            job.kill()
        elif group is not None:
            for pid in _of_group(group):
                if way == "all" or _is_java(pid):
                    os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended meanwhile
    job.wait()
    while group is not None and _of_group(group):
        os.sched_yield()
    assert job.stdout is not None
    job.stdout.close()


def _of_group(group: int) -> list[int]:
    """Its processes, but for those that are dead and not yet buried."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, pgrp = rest.split()[:3]
        if int(pgrp) == group and state != "Z":
            found.append(int(name.split()[0]))
    return found


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return False


def _inside(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))
