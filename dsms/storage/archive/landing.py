"""Where rows land before an update takes them over into the index.

    landing/NNNNNNNNNNNN.parquet   rows in the order they came, of one step of Δ each
    landing/upto.json              every row with `__ts` up to that instant has landed

Results of a query whose death is not known when they are born land when they have left its answer: then the instants of
their leaving lie in one step, and up to `upto` everything that had left has landed.  They may have been born in any
step before, so an update goes by the sub-indices of the rows themselves, not only by those of its steps.

A file is written under a hidden name and renamed, so what stands there is whole; what a crash leaves is swept.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS
from dsms.storage.archive.manifest import LANDING, Archive, explained
from dsms.storage.archive.schema import EXP, TS

UPTO = "upto.json"
_NAME = re.compile(r"(\d{12})\.parquet")


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A landed file: its number, its path below the archive's folder, and what is in it."""

    number: int
    path: str
    rows: int
    bytes: int
    ts: tuple[int, int]
    exp: tuple[int, int]


@dataclass(slots=True)
class Landing:
    """The landing folder of an archive.  One process writes to it."""

    archive: Archive

    def upto(self) -> int:
        """Every row with `__ts` <= this has landed; ALWAYS if none has."""
        return self._noted()[0]

    def last(self) -> int:
        """The number of the last file that has landed, taken over or not."""
        return max([self._noted()[1], *self._numbers()])

    def _noted(self) -> tuple[int, int]:
        if not self.archive.exists(LANDING, UPTO):
            return ALWAYS, 0
        try:
            told = json.loads(self.archive.read(LANDING, UPTO))
            return int(told["upto"]), int(told["last"])
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError("DS951", f"{self.archive.path(LANDING, UPTO)} is damaged: {error!r}",
                             hint="restore it from a backup") from None  # fmt: skip

    def _numbers(self) -> list[int]:
        return [int(m[1]) for n in self.archive.names(LANDING) if (m := _NAME.fullmatch(n))]

    def write(self, table: pa.Table | None, upto: int) -> None:
        """Rows (columns as `schema.stored_schema` says) that lie in one step; with them everything up to `upto` has
        landed.  None: no rows, only the instant.  Raises DS955 with nothing changed, DS957 if `upto` goes back."""
        before, last = self._noted()
        if upto <= before:
            raise UsageError("DS957", f"rows up to {before} have landed at {self.archive.url} already, and now {upto}?",
                             hint="the clock of the source went back: these rows are archived")  # fmt: skip
        if table is not None and table.num_rows:
            last += 1  # a file that is there already was never noted: its rows come again
            self._file(table, last)
        self.archive.write(json.dumps({"upto": upto, "last": last}).encode(), LANDING, UPTO)

    def _file(self, table: pa.Table, number: int) -> None:
        manifest = self.archive.manifest()
        low, high = _range(table, TS)
        if manifest.kind == "stream" and manifest.layout.step(low) != manifest.layout.step(high):
            raise UsageError("DS957", f"rows from {low} to {high} lie in more than one step of the archive")
        name = f"{number:012d}.parquet"
        hidden = self.archive.path(LANDING, f".{name}.part")
        with explained(self.archive.path(LANDING, name)):
            self.archive.fs.create_dir(self.archive.path(LANDING), recursive=True)
            pq.write_table(table, hidden, filesystem=self.archive.fs, compression="zstd")
            self.archive.fs.move(hidden, self.archive.path(LANDING, name))

    def files(self, after: int = 0) -> tuple[LandedFile, ...]:
        """The landed files numbered above `after`, in order.  What landed after `upto` was noted last counts not yet.

        Raises DS958 naming a file that is damaged."""
        last = self._noted()[1]
        found = sorted(n for n in self._numbers() if after < n <= last)
        return tuple(self._told(n) for n in found)

    def _told(self, number: int) -> LandedFile:
        path = f"{LANDING}/{number:012d}.parquet"
        try:
            with self.archive.fs.open_input_file(self.archive.path(path)) as file:
                size = file.size()
                told = pq.read_metadata(file)
        except (pa.ArrowException, OSError) as error:
            raise UsageError("DS958", f"the landed file {self.archive.path(path)} is damaged: {error}",
                             hint="restore it from a backup; without it its rows are lost") from None  # fmt: skip
        return LandedFile(number, path, told.num_rows, size, _told_range(told, TS), _told_range(told, EXP))

    def waiting(self, after: int) -> int:
        """How many landed files are numbered above `after`."""
        last = self._noted()[1]
        return sum(after < n <= last for n in self._numbers())

    def remove(self, upto: int) -> None:
        """Files numbered up to there have been taken over; what crashes left goes, too."""
        for name in self.archive.names(LANDING):
            found = _NAME.fullmatch(name)
            if found and int(found[1]) <= upto:
                self.archive.remove(LANDING, name)

    def sweep(self) -> None:
        """Remove what writes that did not finish have left (call it where nobody is writing)."""
        for name in self.archive.names(LANDING):
            if name.startswith(".") and name.endswith(".part"):
                self.archive.remove(LANDING, name)


def _range(table: pa.Table, column: str) -> tuple[int, int]:
    found = pc.min_max(table.column(column)).as_py()
    return found["min"], found["max"]


def _told_range(told: pq.FileMetaData, column: str) -> tuple[int, int]:
    place = told.schema.names.index(column)
    stats = [told.row_group(g).column(place).statistics for g in range(told.num_row_groups)]
    return min(s.min for s in stats), max(s.max for s in stats)
