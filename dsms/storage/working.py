"""The work in progress, for the case that the process dies of it: a page of the data folder,
written before each piece of work.

The page is mapped into memory, so a note costs no system call and outlives the process (not a power
failure, which no query causes).  A note is the number of the newest record and the query that has
its turn: a process that dies over the same query at the same record, or over the same record, TWICE
is in a loop; one that is killed from outside has got further the next time.
"""

from __future__ import annotations

import base64
import json
import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dsms.storage.encryption import NotAuthentic, Secret

PAGE = 4096
HALF = PAGE // 2
TWICE = 2
KNOWN = 4096  # names that are kept as they are written
LONGEST = 1024  # bytes of a name in an encrypted folder


@dataclass(slots=True)
class AtWork:
    """folder  the data folder;  deaths: how often the engine has died over what, "record 12" or
            "record 12, query q";
    before: what the last one died over
    cover   encrypts names of queries, in a folder that is encrypted"""

    folder: str
    deaths: dict[str, int] = field(default_factory=dict)
    before: str = ""
    # over which it has died twice at the same record
    queries: set[str] = field(default_factory=set)
    records: set[int] = field(default_factory=set)  # ... before any query had to do with them
    cover: Secret | None = None
    _names: dict[str, bytes] = field(default_factory=dict)  # as they are written
    _page: mmap.mmap | None = None

    def open(self) -> None:
        """Read what the last process was at, count it if it died, and begin anew."""
        path, counts = Path(self.folder) / "at-work", Path(self.folder) / "deaths.json"
        was = path.read_bytes() if path.exists() else b""
        self.before = self._shown(was)
        self.deaths = self._read(counts)
        if self.before:
            self.deaths[self.before] = self.deaths.get(self.before, 0) + 1
            temporary = counts.with_suffix(".new")
            temporary.write_bytes(self._covered(json.dumps(self.deaths).encode()))
            os.replace(temporary, counts)
        for what in self.twice:
            record, _, query = what.partition(", query ")
            if query:
                self.queries.add(query)
            else:
                self.records.add(int(record.removeprefix("record ")))
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.truncate(fd, PAGE)
            self._page = mmap.mmap(fd, PAGE)
        finally:
            os.close(fd)
        self.done()

    def record(self, lsn: int) -> None:
        """The record of that number is about to be applied."""
        self._note(0, b"record %d" % lsn)

    def query(self, name: str) -> None:
        """That query is about to move."""
        if name not in self._names:
            if len(self._names) >= KNOWN:
                self._names.clear()  # most of them may be gone
            most = HALF - 1 if self.cover is None else LONGEST
            self._names[name] = self._covered(name.encode()[:most])
        self._note(HALF, self._names[name])

    def rest(self) -> None:
        """No query moves."""
        if self._page is not None:
            self._page[HALF] = 0

    def done(self) -> None:
        """Nothing is under way."""
        if self._page is not None:
            self._page[0] = self._page[HALF] = 0

    def _note(self, at: int, text: bytes) -> None:
        if self._page is not None:
            self._page[at : at + len(text) + 1] = text + b"\0"

    def _covered(self, text: bytes) -> bytes:
        return text if self.cover is None else base64.b64encode(self.cover.sealed(text))

    def _uncovered(self, written: bytes) -> bytes:
        """The text again.  Raises ValueError if it is none."""
        if self.cover is None:
            return written
        try:
            return self.cover.opened(base64.b64decode(written, validate=True))
        except NotAuthentic:
            raise ValueError("it was not written with this key") from None

    def _shown(self, page: bytes) -> str:
        record, query = (page[at : at + HALF].partition(b"\0")[0] for at in (0, HALF))
        if not record:
            return ""
        with suppress(ValueError):
            query = self._uncovered(query) if query else query
            name = query.decode(errors="replace")
            return ", query ".join([record.decode(errors="replace"), *([name] if name else [])])
        return record.decode(errors="replace")

    def _read(self, path: Path) -> dict[str, int]:
        try:
            found = json.loads(self._uncovered(path.read_bytes()))
            return {
                what: count
                for what, count in found.items()
                if what.startswith("record ") and isinstance(count, int)
            }
        except (OSError, ValueError, AttributeError):
            return {}

    def close(self) -> None:
        """The engine stops in good order."""
        self.done()
        if self._page is not None:
            self._page.close()
            self._page = None
        (Path(self.folder) / "deaths.json").unlink(missing_ok=True)

    @property
    def twice(self) -> Mapping[str, int]:
        """What the engine has died over often enough."""
        return {what: count for what, count in self.deaths.items() if count >= TWICE}
