"""One update of an archive at a time: a second one is refused, the lease of a dead one is taken over."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.errors import UsageError
from dsms.storage.archive.manifest import Archive, explained

LEASE = "lease.json"


@contextmanager
def leased(archive: Archive, job: str) -> Iterator[None]:
    """Hold the lease while working.  Raises DS959 naming who holds it."""
    _take(archive, job)
    try:
        yield
    finally:
        archive.remove(LEASE)


def _take(archive: Archive, job: str) -> None:
    told = json.dumps({"job": job, "host": socket.gethostname(), "pid": os.getpid(), "began": _birth(os.getpid())})
    for _ in range(2):
        if _exclusive(archive, told):
            return
        holder = _holder(archive)
        if holder is None or not _dead(holder):
            who = "somebody" if holder is None else f"process {holder.get('pid')} on {holder.get('host')}"
            job = (holder or {}).get("job", "an update")
            hint = f"wait until it is done; if it is not running, remove {archive.path(LEASE)}"
            raise UsageError("DS959", f"{who} is at work on {archive.url} ({job})", hint=hint)
        archive.remove(LEASE)
    raise UsageError("DS959", f"somebody else took over the work on {archive.url}", hint="wait until it is done")


def _exclusive(archive: Archive, told: str) -> bool:
    """Make the file, unless it is there.  (Object stores have no exclusive creation: there it is looked for first.)"""
    path = archive.path(LEASE)
    with explained(path):
        if archive.fs.type_name == "local":
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                return False
            with os.fdopen(fd, "w") as file:
                file.write(told)
            return True
        if archive.exists(LEASE):
            return False
        archive.write(told.encode(), LEASE)
        return True


def _holder(archive: Archive) -> dict | None:
    try:
        return json.loads(archive.read(LEASE))
    except (UsageError, ValueError):
        return None


def _dead(holder: dict) -> bool:
    """Whether it is a process of this machine that is no more."""
    if holder.get("host") != socket.gethostname() or not isinstance(holder.get("pid"), int):
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return holder.get("began") != _birth(holder["pid"])


def _birth(pid: int) -> str | None:
    """When a process began, as the system tells it: process numbers come again."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None
