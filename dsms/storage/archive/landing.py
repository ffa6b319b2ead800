"""Where rows land before an update takes them over into the index.

    landing/NNNNNNNNNNNN.parquet   rows in the order they came, of one step of Δ each
    landing/upto.json              up to which instant everything has landed, and with which file
    landing/damaged/               files that could not be read, set aside by an update

A stream's row comes with its `__ts`.  So does a result whose death is known when it is born; others
come when they have left the answer, and may have been born in any step before.  What counts for
them is when they come: an update puts all rows of a file into the partition of that step, and so
touches no sub-index beside those of its steps.

A file is written under a hidden name and renamed, so what stands there is whole; what a crash
leaves is written over or swept.  A file that is noted but missing or can't be read is reported as
damaged, and nothing else waits for it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, FOREVER
from dsms.storage.archive.manifest import LANDING, Archive, Manifest
from dsms.storage.archive.schema import EXP, TS, unlike
from dsms.storage.archive.store import HIDDEN

UPTO, DAMAGED = "upto.json", "damaged"
MARK = b"dsms.upto"  # in a file's metadata
_NAME = re.compile(r"(\d{12})\.parquet")


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A landed file: its number, its path below the archive's folder, and what is in it.

    mark     up to that instant everything has landed with it
    damaged  why it can't be read (it counts no rows then); None: it can
    """

    number: int
    path: str
    rows: int
    bytes: int
    ts: tuple[int, int]
    exp: tuple[int, int]
    mark: int = ALWAYS
    damaged: str | None = None

    def inserted(self, kind: str) -> int:
        """The instant at which its rows came."""
        return self.ts[1] if kind == "stream" else self.mark


@dataclass(slots=True)
class Landing:
    """The landing folder of an archive.  One process writes to it."""

    archive: Archive

    def upto(self) -> int:
        """Everything up to this instant has landed; ALWAYS if nothing has."""
        return self.noted()[0]

    def last(self) -> int:
        """The number of the last file that counts, taken over or not."""
        return self.noted()[1]

    def noted(self) -> tuple[int, int]:
        """`upto` and `last`.  If the note is lost it is made out from the files."""
        if self.archive.exists(LANDING, UPTO):
            try:
                marked = json.loads(self.archive.read(LANDING, UPTO))
                return int(marked["upto"]), int(marked["last"])
            except (ValueError, KeyError, TypeError):
                pass
        return self._made_out()

    def _made_out(self) -> tuple[int, int]:
        manifest, numbers = self.archive.manifest(), self._numbers()
        marks = [self._landed_file(n, manifest).mark for n in numbers]
        return max([manifest.upto, *marks]), max([manifest.landed, *numbers])

    def _numbers(self) -> list[int]:
        return [int(m[1]) for n in self.archive.names(LANDING) if (m := _NAME.fullmatch(n))]

    # -- writing -----------------------------------------------------------------------------------

    def write(self, table: pa.Table | None, upto: int) -> None:
        """Rows (columns as `schema.stored_schema` says) that came in one step; with them everything
        up to `upto` has landed.  None: no rows, only the instant.  Raises DS955, DS956, DS957 with
        nothing changed."""
        before, last = self.noted()
        if upto <= before:
            raise UsageError(
                "DS957",
                f"rows up to {before} have landed at {self.archive.url} already, and now {upto}?",
                hint="the clock of the source went back: these rows are archived",
            )
        if table is not None and table.num_rows:
            self._check(table, before, upto)
            last += 1  # a file that is there already was never noted: its rows come again
            self._file(table, last, upto)
        self.archive.write(json.dumps({"upto": upto, "last": last}).encode(), LANDING, UPTO)

    def _check(self, table: pa.Table, before: int, upto: int) -> None:
        manifest = self.archive.manifest()
        wrong = unlike(table.schema, manifest.schema)
        if wrong is not None:
            raise UsageError(
                "DS956",
                f"these rows do not fit the archive {self.archive.url}: {wrong}",
                hint="open it with the columns that it is to have",
            )
        low, high = _range(table, TS)
        step = manifest.layout.step
        if manifest.kind == "stream" and step(low) != step(high):
            raise UsageError(
                "DS957", f"rows from {low} to {high} lie in more than one step of the archive"
            )
        if high > upto or (manifest.kind == "stream" and low <= before):
            raise UsageError(
                "DS957", f"rows from {low} to {high} are not among those from {before} to {upto}"
            )

    def _file(self, table: pa.Table, number: int, upto: int) -> None:
        marked = table.replace_schema_metadata({MARK: str(upto).encode()})
        self.archive.write_parquet(
            lambda out: pq.write_table(marked, out, compression="zstd", write_page_checksum=True),
            LANDING,
            f"{number:012d}.parquet",
        )

    # -- reading -----------------------------------------------------------------------------------

    def files(self, after: int = 0, upto: int = FOREVER) -> tuple[LandedFile, ...]:
        """The landed files numbered above `after` with marks up to `upto`, in order.  What landed
        after the last note counts not yet.  Damaged files are reported as such."""
        last, there, aside = self.noted()[1], set(self._numbers()), {n for n, _ in self.damaged()}
        manifest = self.archive.manifest()
        missing = set(range(max(after, manifest.landed) + 1, last + 1)) - there - aside
        found = []
        for number in sorted(n for n in there | missing if after < n <= last):
            found.append(
                _broken(number, "it is missing")
                if number in missing
                else self._landed_file(number, manifest)
            )
        return tuple(f for f in found if f.mark <= upto)

    def _landed_file(self, number: int, manifest: Manifest) -> LandedFile:
        path = _path(number)
        try:
            with self.archive.open(path) as file:
                size, marked = file.size(), pq.read_metadata(file)
            mark = int((marked.metadata or {}).get(MARK, ALWAYS))
            wrong = unlike(marked.schema.to_arrow_schema(), manifest.schema)
            if wrong is not None:
                return _broken(number, wrong, mark)
            ts, exp = _told_range(marked, TS), _told_range(marked, EXP)
            return LandedFile(number, path, marked.num_rows, size, ts, exp, max(mark, ts[1]))
        except (pa.ArrowException, OSError, ValueError, AttributeError) as error:
            return _broken(number, str(error) or repr(error))

    def verified(self, file: LandedFile) -> str | None:
        """Why a file can't be read, which may show only when all of it is; None: it can."""
        return unreadable(self.archive, file.path)

    def waiting(self, after: int) -> int:
        """How many landed files are numbered above `after`."""
        last = self.noted()[1]
        return sum(after < n <= last for n in self._numbers())

    # -- clearing up -------------------------------------------------------------------------------

    def remove(self, upto: int) -> None:
        """Files numbered up to there have been taken over."""
        for number in self._numbers():
            if number <= upto:
                self.archive.remove(LANDING, f"{number:012d}.parquet")

    def set_aside(self, file: LandedFile) -> str:
        """Move a damaged file out of the way and keep it; answers where it is now."""
        target = f"{LANDING}/{DAMAGED}/{file.number:012d}.parquet"
        if self.archive.exists(*file.path.split("/")):
            self.archive.move(file.path, target)
        return target

    def damaged(self) -> list[tuple[int, str]]:
        """Number and path of the files that were set aside."""
        folder = f"{LANDING}/{DAMAGED}"
        return [
            (int(m[1]), f"{folder}/{n}")
            for n in self.archive.names(folder)
            if (m := _NAME.fullmatch(n))
        ]

    def sweep(self) -> None:
        """Remove what writes that did not finish have left (call it only while nothing is
        writing)."""
        for name in self.archive.names(LANDING):
            if name.startswith(".") and name.endswith(HIDDEN):
                self.archive.remove(LANDING, name)


def _path(number: int) -> str:
    return f"{LANDING}/{number:012d}.parquet"


def _broken(number: int, why: str, mark: int = ALWAYS) -> LandedFile:
    return LandedFile(number, _path(number), 0, 0, (FOREVER, ALWAYS), (FOREVER, ALWAYS), mark, why)


def _range(table: pa.Table, column: str) -> tuple[int, int]:
    found = pc.min_max(table.column(column)).as_py()
    return found["min"], found["max"]


def _told_range(metadata: pq.FileMetaData, column: str) -> tuple[int, int]:
    place = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(column)
    stats = [metadata.row_group(g).column(place).statistics for g in range(metadata.num_row_groups)]
    return min(s.min for s in stats), max(s.max for s in stats)


def snapshot(archive: Archive, seam: int | None = None) -> tuple[Manifest, tuple[LandedFile, ...]]:
    """The index and the landed files that belong together; `seam`: as they were when just that had
    landed.

    For a query that reads rows up to a seam here and the others live: what lands or is taken over
    meanwhile does not disturb it.  Raises DS954 if the index has been updated twice since."""
    landing = Landing(archive)
    if seam is None:
        upto = landing.upto()
        manifest = archive.manifest()
        return manifest, landing.files(manifest.landed, max(upto, manifest.upto))
    for manifest in archive.states():
        if manifest.upto <= seam:
            return manifest, landing.files(manifest.landed, seam)
    raise UsageError("DS954", f"{archive.url} has been updated since {seam}", hint="ask again")


def unreadable(archive: Archive, path: str) -> str | None:
    """Read all of a Parquet file and check its pages: why it can't be; None: it can."""
    try:
        with archive.open(path) as source:
            for _ in pq.ParquetFile(source, page_checksum_verification=True).iter_batches():
                pass
    except (pa.ArrowException, OSError, ValueError) as error:
        return str(error) or repr(error)
    return None
