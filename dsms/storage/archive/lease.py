"""One job on an archive at a time: a second one is refused, the lease of a dead one is taken over.

Whether a job on the same machine lives, the system tells.  One elsewhere says now and then that it
does (`renew`), and is taken for dead when it has been silent for long.
"""

from __future__ import annotations

import json
import os
import platform
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dsms.errors import UsageError
from dsms.storage.archive.manifest import Archive
from dsms.storage.archive.store import operation

LEASE = "lease.json"
SILENCE = 15 * 60 * 1_000_000  # µs after which a job on another machine is taken for dead
_here: set[str] = set()  # tokens of the leases that this process holds


@dataclass(frozen=True, slots=True)
class Lease:
    """The job at work: what it does, on which machine, as which process (which began when the
    system says), last seen at (µs)."""

    token: str
    job: str
    host: str
    pid: int
    began: str | None
    seen: int | None

    def serialized(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()


@contextmanager
def leased(archive: Archive, job: str, now: int | None = None) -> Iterator[Lease]:
    """Hold the lease while working.  now: µs since the epoch, if a job may be at work on another
    machine.

    Raises DS959 naming its holder."""
    lease = Lease(uuid.uuid4().hex, job, platform.node(), os.getpid(), _birth(os.getpid()), now)
    _here.add(lease.token)
    try:
        _take(archive, lease, now)
        try:
            yield lease
        finally:
            _give_back(archive, lease)
    finally:
        _here.discard(lease.token)


def renew(archive: Archive, lease: Lease, now: int) -> None:
    """Say that the job is alive.  Raises DS954 if it was taken for dead."""
    holder = holder_of(archive)
    if holder is None or holder.token != lease.token:
        raise UsageError(
            "DS954", f"somebody else has taken over the work on {archive.url}", hint="do it again"
        )
    archive.write(replace(lease, seen=now).serialized(), LEASE)


def holder_of(archive: Archive) -> Lease | None:
    """The lease as it is written; None: it is free."""
    if not archive.exists(LEASE):
        return None
    try:
        return Lease(**json.loads(archive.read(LEASE)))
    except (UsageError, ValueError, TypeError):
        return Lease("", "a job", "", 0, None, None)


def _take(archive: Archive, lease: Lease, now: int | None) -> None:
    with _alone(archive):
        holder = holder_of(archive)
        if holder is not None:
            if not _dead(holder, now):
                raise _refused(archive, holder)
            archive.remove(LEASE)
        if not archive.write(lease.serialized(), LEASE, new=True):
            raise _refused(archive, holder_of(archive) or lease)
    written = holder_of(archive)  # where nothing is exclusive, the last writer has it
    if written is None or written.token != lease.token:
        raise _refused(archive, written or lease)


def _give_back(archive: Archive, lease: Lease) -> None:
    with _alone(archive):
        holder = holder_of(archive)
        if holder is not None and holder.token == lease.token:
            archive.remove(LEASE)


@contextmanager
def _alone(archive: Archive) -> Iterator[None]:
    """No other process of this machine takes or gives back this lease meanwhile."""
    if not archive.local or os.name == "nt":
        yield
        return
    import fcntl

    archive.make_folder()
    with operation(archive.path(LEASE)), open(archive.path(f".{LEASE}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refused(archive: Archive, holder: Lease) -> UsageError:
    who = f"process {holder.pid} on {holder.host}" if holder.pid else "somebody"
    hint = f"wait until it is done; if it is not running, remove {archive.path(LEASE)}"
    return UsageError("DS959", f"{who} is at work on {archive.url} ({holder.job})", hint=hint)


def _dead(holder: Lease, now: int | None) -> bool:
    if holder.host != platform.node():
        return now is not None and holder.seen is not None and now - holder.seen > SILENCE
    if holder.pid == os.getpid():
        return holder.token not in _here
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return holder.began != _birth(holder.pid)


def _birth(pid: int) -> str | None:
    """When a process began, as the system tells it: process numbers come again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None
