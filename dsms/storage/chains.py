"""Which records of each stream are there, and whether those that are missing may be missing.

Every record names the one of its stream before it, so the records of a stream are a chain: one is
applied only if the one before it was.  Where the chain is broken, what is behind is lost with what
is missing.  That is as it must be where nothing of it was known to be on the disk (a power failure
takes the newest records, and pages in any order).  It is damage where a record is lost that some
other record, or a note (`dsms.storage.synced`), knows to have been there: a log was changed, cut
short or removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.errors import UsageError
from dsms.storage.log import LogScan, Record

GONE = (
    "they were not yet on the disk when the power failed, or their log was removed before they were"
)
WHY = "one before was not yet on the disk when the power failed"
HINT = (
    "restore the file and start again, or go on without: `dsms serve --accept-loss {stream}`, "
    "or DROP STREAM"
)


@dataclass(frozen=True, slots=True)
class Damage:
    """What a stream has lost for good unless files come back.

    known  the newest record that was there once, if records of the journal are missing: when it is
           found again the stream is whole; None: it is a sealed sub-window that is missing
    """

    code: str
    message: str
    known: int | None = None

    def error(self, stream: str) -> UsageError:
        return UsageError(self.code, self.message, hint=HINT.format(stream=stream))


@dataclass(slots=True)
class Chain:
    """The records of one stream as they are read back.

    start    up to that number they are part of the state
    tail     the last one that was applied (0: none)
    passed   the stream is whole up to that number
    known    the newest that is known to have been on the disk
    highest  the highest number that was seen or heard of
    begun    the number with which its newest log began
    lost     numbers of good records that could not be applied
    paths    logs that hold records which are not part of the state
    wrong    what is the matter with the first file that is not whole, and whether that can only be
             damage
    """

    start: int
    tail: int = 0
    passed: int = 0
    known: int = 0
    highest: int = 0
    begun: int = 0
    lost: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    wrong: str | None = None
    unreadable: bool = False

    def scanned(self, path: str, scan: LogScan) -> Iterator[Record]:
        """The records of one of its logs."""
        if scan.foreign:
            self.fault(f"{path} does not begin like a log of this version", unreadable=True)
        elif scan.torn:
            self.fault(f"{path}: what stands at byte {scan.end} is not what was written")
        for record in scan.records:
            self.highest = max(self.highest, record.lsn, record.before)
            self.known = max(self.known, record.known)
        behind = [r for r in scan.records if r.lsn > self.start]
        self.paths += [path] if behind else []
        yield from behind

    def fault(self, what: str, unreadable: bool = False) -> None:
        """A file is not whole."""
        if self.wrong is None or (unreadable and not self.unreadable):
            self.wrong = what
        self.unreadable = self.unreadable or unreadable

    def follows(self, number: int, before: int) -> bool:
        """Whether the record may be applied, and then it counts as that."""
        if before != self.tail:
            self.lost.append(number)
            return False
        self.tail = number
        self.passed = max(self.passed, number)
        return True

    def dropped(self, number: int) -> None:
        """The stream was dropped there: what is made under its name begins anew."""
        self.tail = 0
        self.passed = max(self.passed, number)
        self.lost.clear()

    def damage(self, folder: str) -> Damage | None:
        """What is lost that was known to be there."""
        if self.known <= self.passed and not self.unreadable:
            return None
        known = max(self.known, self.passed + 1)
        where = "" if self.wrong is None else f" ({self.wrong})"
        what = (
            f"a log in {folder} is damaged or gone: records are missing behind number "
            f"{self.passed}, up to {known}"
        )
        return Damage("DS555", what + where, known)

    def note(self, stream: str) -> str | None:
        """What else is lost."""
        if not self.lost and self.begun <= self.passed:
            return None
        if not self.lost:
            return (
                f"stream {stream}: its records behind number {self.passed}, from {self.begun} "
                f"on, are missing: {GONE}"
            )
        count = len(self.lost)
        what = "1 record is" if count == 1 else f"{count} records are"
        return f"stream {stream}: {what} lost behind number {self.passed}: {WHY}"
