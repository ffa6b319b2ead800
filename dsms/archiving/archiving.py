"""One archive as the engine sees it: what waits to be archived, what has landed, and the seam
between the two.

Every row with a mark <= `seam` is in the archive (its index, or a landed file), every other one is
here: in the ring of the stream, which lets nothing go that has not landed, or among the results
that wait.  Rows land in the order of their marks, in files that never straddle a step of the
archive's Δ: when a step is over, or when there are enough of them.

A write that fails leaves everything as it was and is tried again, at growing intervals.  What waits
meanwhile is bounded, and past the bound rows that would add to it are refused (DS570), so that
nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Protocol

from dsms.archiving.place import Index, Place, reopen_place
from dsms.archiving.waiting import Leaving, Waiting
from dsms.errors import DsmsError, UsageError
from dsms.settings import Settings
from dsms.sql.types import ALWAYS, Schema
from dsms.storage.archive.manifest import Archive

ROWS = 1 << 17  # that wait are enough for a file
BYTES = 32 << 20  # ... or these
PIECES = 512  # ... or so many sub-windows or pushes
LARGEST = 1 << 20  # rows of one file, about
PATIENCE = 6  # after 2 ** this many calls a failed write is tried again at the latest


class Writer(Protocol):
    """Does jobs one after the other, in a thread of its own or at once
    (`concurrent.futures.Executor`)."""

    def submit(self, job: Callable[[], Any], /) -> Future[Any]: ...


class AtOnce:
    """A writer that does a job at once, in the caller's thread."""

    def submit(self, job: Callable[[], Any], /) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(job())
        except Exception as error:
            done.set_exception(error)
        return done


@dataclass(frozen=True, slots=True)
class Flight:
    """Rows that are being written: those with marks <= `upto`."""

    upto: int
    rows: int
    future: Future[Any]


@dataclass(slots=True, eq=False)
class Hold:
    """A query reads both sides of the seam: what is live now stays readable until `release`."""

    seam: int
    of: Archiving

    def release(self) -> None:
        """The query is done.  Calling it twice does no harm."""
        self.of.holds = [h for h in self.of.holds if h is not self]


@dataclass(slots=True)
class Archiving:
    """name      of the stream or query
    kind      stream | query
    url       of the archive's folder
    lifetime  FOR: µs for which rows are kept there; None: for good
    place     where rows land
    taken     every row with a mark <= it has come here
    edge      ... and no other row with a mark <= it will come
    repeated  rows at or before the seam that came again, and are not archived twice
    """

    name: str
    kind: str
    url: str
    schema: Schema
    lifetime: int | None
    settings: Settings
    place: Place | None
    seam: int = ALWAYS
    taken: int = ALWAYS
    edge: int = ALWAYS
    waiting: Waiting = field(default_factory=Waiting)
    holds: list[Hold] = field(default_factory=list)
    flying: Flight | None = None
    landed_rows: int = 0
    repeated: int = 0
    failures: int = 0  # in a row
    pause: int = 0  # calls until a failed write is tried again
    error: str | None = None
    told: int = ALWAYS  # the step for which an update of the index was asked for
    note: str = ""  # what is not as it was asked for
    address: str = ""  # of the stream or query, if that is not its name (`dsms.sql.catalog.Placed`)

    @property
    def home(self) -> str:
        """The key of the stream or query."""
        return (self.address or self.name).casefold()

    def __post_init__(self) -> None:
        if self.place is None:
            self.opened()
        else:
            self._attached()

    # -- what comes --------------------------------------------------------------------------------

    def take(self, rows: Leaving) -> None:
        """The next rows, in the order of their marks."""
        fresh = rows.after(self.seam)
        self.repeated += len(rows) - len(fresh)
        if len(fresh):
            self.waiting.add(fresh)
            self.taken = max(self.taken, int(fresh.mark[-1]))

    def settle(self, edge: int, last: bool = False) -> None:
        """All rows with marks <= `edge` are here: land what is ripe, or everything, if these are
        the last ones."""
        self.edge = max(self.edge, edge)
        self._collect()
        if self.flying is None and not self._pausing() and self.opened():
            self._land(last)

    def flush(self) -> bool:
        """Land whatever is here, and wait for it; False: it can't be written (`error` says why)."""
        self._arrived()
        if self.opened():
            self._land(True)
        while self.flying is not None:
            self._arrived()
            if self.error is None:
                self._land(True)
        return self.error is None

    def check(self) -> None:
        """Raise DS570 if too much waits already; a writer that is merely behind is waited for."""
        while self.full and self.opened():
            before = self.waiting.nbytes
            self._arrived()
            if self.flying is None and self.full:
                self._land(True)
                self._arrived()
            if self.error is not None or self.waiting.nbytes >= before:
                break
        if self.full and self.error is not None:
            waits, most = self.waiting.nbytes >> 20, self.settings.archive_waiting_bytes >> 20
            raise UsageError(
                "DS570",
                f"{waits} MiB of {self.kind} {self.name} wait to be archived, which is more than "
                f"{most} MiB, and {self.url} can't be written: {self.error}",
                hint="rows are taken again as soon as that folder can be written",
            )

    @property
    def full(self) -> bool:
        """Whether more waits than may."""
        return self.waiting.nbytes > self.settings.archive_waiting_bytes

    # -- for readers -------------------------------------------------------------------------------

    def archive(self) -> Archive:
        """The archive's files.  Raises UsageError DS576 where they can't be had."""
        if not self.opened():
            raise UsageError(
                "DS576",
                f"the archive of {self.kind} {self.name} can't be read: {self.error}",
                hint=f"make {self.url} readable again",
            )
        return self._there().archive

    def hold(self) -> Hold:
        """From now until its release, all rows with marks > its `seam` can be read here, and those
        up to it in the archive (where more may have landed by then)."""
        self._collect()
        held = Hold(self.seam, self)
        self.holds.append(held)
        return held

    @property
    def free(self) -> int:
        """Rows with marks up to here may go."""
        return min([self.seam, *(h.seam for h in self.holds)])

    def _there(self) -> Place:
        assert self.place is not None
        return self.place

    def landed_upto(self) -> int:
        """Every row with a mark <= it is in the archive, once the file that is being written is."""
        self._arrived()
        return self.seam

    def set_back(self) -> None:
        """What has not landed is handed on once more."""
        self._arrived()
        self.taken = self.edge = self.seam
        self.waiting = Waiting()

    def call(self, old: str, new: str) -> None:
        """A column is to have another name.  Raises DS439, DS576, DS95x."""
        self.archive()
        self._arrived()
        self._there().call(self.schema, old, new)

    def widen(self, schema: Schema) -> None:
        """Rows are to have these columns, one more than they have.  Raises DS574, DS576, DS95x."""
        self.archive()
        self._arrived()
        self._there().widen(schema, self.seam)

    # -- coming back -------------------------------------------------------------------------------

    def opened(self) -> bool:
        """Open the archive, if that has not been done (after a restart); False: it can't be
        (`error` says why)."""
        if self.place is None:
            try:
                self.place = reopen_place(self.url)
            except DsmsError as problem:
                self._failed(problem)
                return False
            self._attached()
        return True

    def begin(self, place: Place) -> None:
        """Go on in another archive."""
        self.place, self.failures, self.pause, self.error = place, 0, 0, None
        self._attached()

    def _attached(self) -> None:
        """What has landed is not archived again.  Its columns are called as they were when the
        state was kept that is there; RENAME comes once more."""
        with suppress(DsmsError):  # it says so itself when it is tried again
            self._there().call(self.schema)
        self.seam = max(self.seam, self._there().upto)
        self.taken = max(self.taken, self.seam)
        self.waiting.drop(self.seam)
        self.told = self._there().layout.start(self._there().applied + 1)
        self._tell()

    def __getstate__(self) -> dict[str, Any]:
        """What a checkpoint keeps: not what belongs to the process, nor what is in the stream's
        ring anyway."""
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        state |= {
            "place": None,
            "flying": None,
            "holds": [],
            "failures": 0,
            "pause": 0,
            "error": None,
        }
        # what the ring hands on once more
        again = {"waiting": Waiting(), "taken": self.seam, "edge": self.seam}
        return state | (again if self.kind == "stream" else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {"address": "", **state}.items():  # of one that never had another name
            setattr(self, name, value)

    # -- what is asked -----------------------------------------------------------------------------

    def index(self) -> Index | None:
        """What the archive's index holds now; None: that can't be read (`error` says why)."""
        try:
            return self._there().index() if self.opened() else None
        except DsmsError as problem:
            self.error = self.error or _message(problem)
            return None

    # -- landing -----------------------------------------------------------------------------------

    def _pausing(self) -> bool:
        if self.pause and self.flying is None:
            self.pause -= 1
            return True
        return False

    def _land(self, everything: bool) -> None:
        """Hand files to the writer until nothing is ripe or the writer is at work."""
        while self.flying is None and (cut := self._ripe(everything)) is not None:
            rows = self.waiting.queue.upto(cut)
            job = partial(self._there().land, rows, self.schema, cut)
            writer: Writer = self.settings.archive_writer or AtOnce()
            try:
                self.flying = Flight(cut, sum(map(len, rows)), writer.submit(job))
            except RuntimeError as problem:  # an executor that has been shut down
                self._failed(problem)
            self._collect()
            if self.error is not None:
                return

    def _ripe(self, everything: bool) -> int | None:
        """The mark up to which rows are to land now; None: nothing is."""
        first, edge = self.waiting.queue.first, self.edge
        if edge <= self.seam or edge == ALWAYS:
            return None
        if not self.waiting.queue or first > edge:
            begun = self._there().layout.start(edge + 1)  # of the step that is not over
            return edge if everything else begun - 1 if begun - 1 > self.seam else None
        end = self._there().layout.start(first + self._there().layout.every) - 1
        w = self.waiting
        much = min(BYTES, self.settings.archive_waiting_bytes // 4)
        if (
            edge >= end
            or everything
            or w.queue.rows >= ROWS
            or w.nbytes >= much
            or len(w.queue.batches) >= PIECES
        ):
            return w.queue.cut(min(edge, end), LARGEST)
        return None

    def _arrived(self) -> None:
        """Wait for the writer."""
        if self.flying is not None:
            self.flying.future.exception()
            self._collect()

    def _collect(self) -> None:
        """What has become of the file that was being written."""
        flight = self.flying
        if flight is None or not flight.future.done():
            return
        self.flying = None
        problem = flight.future.exception()
        if problem is not None:
            self._failed(problem)
            with suppress(DsmsError):
                self._there().refresh()  # perhaps its layout has changed
            return
        self.failures, self.pause, self.error = 0, 0, None
        self.seam = flight.upto
        self.waiting.drop(flight.upto)
        self.landed_rows += flight.rows
        self._tell()

    def _failed(self, problem: BaseException) -> None:
        self.failures += 1
        self.pause = (1 << min(self.failures, PATIENCE)) - 1
        self.error = _message(problem)

    def _tell(self) -> None:
        """A step is over: the index may be updated."""
        if self.seam == ALWAYS:
            return
        begun = self._there().layout.start(self.seam + 1)
        if begun > self.told:
            self.told = begun
            self.settings.archive_due(self.name, self.url)


def _message(problem: BaseException) -> str:
    return (
        f"{problem.code} {problem.message}"
        if isinstance(problem, DsmsError)
        else str(problem) or repr(problem)
    )
