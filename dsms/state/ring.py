"""The ring: the newest part of a stream as a row of immutable columnar sub-windows (Golab 2006,
§2.3.4, Fig 2.4).

Sub-window k holds the rows with timestamps in [k * span, (k + 1) * span).  Rows come in (ts,
arrival) order; those of the newest sub-window gather in a buffer until a row or the clock gets past
its end: then it is closed, and the oldest ones that are not needed leave at the same time.
Sub-windows without rows are not stored.  Readers take slices of the arrays, so what they hold stays
as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise

import numpy as np

from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, concat, stamped_before
from dsms.state.joining import Joining

SECOND = 1_000_000
MOST = 4096  # sub-windows that a ring is cut into


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SubWindow:
    """A closed sub-window: its number, its rows, and the file that they are mapped from, if any."""

    number: int
    rows: Batch
    segment: str | None = None

    def nbytes(self) -> int:
        return batch_bytes(self.rows)


@dataclass(frozen=True, slots=True)
class Need:
    """What a reader wants kept: the rows of the last `length` µs, and at least the last `rows`
    rows; all of it cut every `span` µs.  `reached`: the instant up to which it has read, where it
    may lag behind the stream.  `ago`: it reads rows when they are so many µs old, and all of this
    is meant as of then."""

    length: int = 0
    rows: int = 0
    span: int = 0
    reached: Callable[[], int] | None = None
    ago: int = 0


@dataclass(slots=True)
class Ring:
    """span   µs of a sub-window (0: not settled yet: one hundredth of what is kept)
    reach  every row with ts > reach that the stream has completed is here
    seal   makes a closed sub-window of its number and rows, and how many rows come, about, before
           it leaves (None: it stays in memory)
    """

    declared: int | None = None  # SUBWINDOW
    reach: int = ALWAYS
    needs: dict[str, Need] = field(default_factory=dict)
    span: int = 1
    closed: deque[SubWindow] = field(default_factory=deque)
    buffer: list[Batch] = field(default_factory=list)
    newest: int = ALWAYS
    updates: int = 0  # window updates so far
    count: int = 0  # rows held
    seal: Callable[[int, Batch, int], SubWindow] | None = None
    joining: Joining = field(default_factory=Joining)  # of the buffer

    # -- what each reader needs --------------------------------------------------------------------

    def keep(self, who: str, need: Need) -> None:
        """`who` needs that much from now on."""
        self.needs[who] = need
        self._settle_span()

    def release(self, who: str) -> None:
        """`who` needs nothing any more."""
        if self.needs.pop(who, None) is not None and self.needs:
            self._settle_span()

    @property
    def length(self) -> int:
        """µs kept."""
        return max((n.length + n.ago for n in self.needs.values()), default=0)

    @property
    def size(self) -> int:
        """Sub-windows that the kept length spans."""
        return max(1, -(-self.length // self.span))

    def _settle_span(self) -> None:
        if self.declared is not None:
            span = self.declared
        else:
            spans = [n.span for n in self.needs.values() if n.span]
            span = int(np.gcd.reduce(spans)) if spans else self.length // 100 or SECOND
        span = max(span, -(-self.length // MOST), 1)
        if span != self.span:
            self.span = span
            self._cut_again()

    def _cut_again(self) -> None:
        rows = [s.rows for s in self.closed] + self._emptied()
        self.closed.clear()
        for batch in rows:
            self._take(batch)

    # -- rows and time -----------------------------------------------------------------------------

    def add(self, rows: Batch) -> None:
        """The next rows of the stream."""
        if len(rows):
            self.count += len(rows)
            self._take(rows)
            self.newest = max(self.newest, int(rows.ts[-1]))

    def move(self, clock: int) -> None:
        """The stream is complete up to `clock`: sub-windows that ended are closed, old ones
        leave."""
        if ALWAYS < clock < FOREVER - 1 and clock > self.newest:
            self.newest = clock
            if self.buffer and self._number(clock + 1) > self._number(int(self.buffer[0].ts[0])):
                self._close()

    def _number(self, ts: int) -> int:
        return ts // self.span

    def _take(self, rows: Batch) -> None:
        if self.buffer and self._number(int(rows.ts[0])) > self._number(int(self.buffer[0].ts[0])):
            self._close()
        first, last = self._number(int(rows.ts[0])), self._number(int(rows.ts[-1]))
        if first == last:
            self._gather(rows)
            return
        numbers = rows.ts // self.span
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        for start, stop in pairwise(cuts):
            if self.buffer and self._number(int(self.buffer[0].ts[0])) != int(numbers[start]):
                self._close()
            self._gather(rows.slice(start, stop))

    def _gather(self, rows: Batch) -> None:
        self.buffer.append(rows)
        self.buffer = self.joining.gathered(self.buffer)

    def _emptied(self) -> list[Batch]:
        """The rows of the sub-window that is open, which it has no more."""
        rows, self.buffer = self.buffer, []
        self.joining.forget()
        return rows

    def _open(self) -> Batch:
        """The rows of the sub-window that is open, of which there is one at least."""
        rows = self.joining.joined(self.buffer)
        self.buffer = [rows]
        return rows

    def _close(self) -> None:
        rows = self._open()
        self.joining.over(len(rows))
        self.closed.append(self._sealed(self._number(int(rows.ts[0])), rows))
        self.buffer = []
        self.updates += 1

    def _sealed(self, number: int, rows: Batch) -> SubWindow:
        if self.seal is None:
            return SubWindow(number, rows)
        most = max([n.rows for n in self.needs.values()], default=0)
        return self.seal(number, rows, max(self.size * len(rows), most))

    def replace(self, old: SubWindow, new: SubWindow) -> None:
        """Put `new`, with the same rows, in the place of `old`, if that is here."""
        place = bisect_left(self.closed, old.number, key=lambda s: s.number)
        if place < len(self.closed) and self.closed[place] is old:
            self.closed[place] = new

    def drop(self, upto: int = FOREVER) -> None:
        """Drop the sub-windows that will not be read any more and that have no row after `upto`."""
        while (
            self.closed
            and self.closed[0].rows.ts[-1] <= upto
            and not self._needed(self.closed[0].rows, 0)
        ):
            gone = self.closed.popleft()
            self.count -= len(gone.rows)
            self.reach = max(self.reach, int(gone.rows.ts[-1]))

    def change(self, to: Callable[[Batch], Batch]) -> None:
        """All rows become others, as many, of the same instants; sub-windows are sealed anew."""
        self.buffer = [to(b) for b in self._emptied()]
        self.closed = deque(self._sealed(s.number, to(s.rows)) for s in self.closed)

    def set_back(self, to: int) -> None:
        """As if no row had come at `to` or later: those that did are stamped before it."""
        last = self._number(to - 1)
        rows = [s.rows for s in self.closed if s.number >= last] + self._emptied()
        self.closed = deque(s for s in self.closed if s.number < last)
        self.reach, self.newest = min(self.reach, to - 1), min(self.newest, to - 1)
        for batch in rows:
            self._take(stamped_before(batch, to))

    def let_go(self, upto: int) -> None:
        """As if all sub-windows without a row after `upto` were gone: they will not be read any
        more."""
        self.drop(upto)
        self.reach = max(self.reach, upto)

    def leaving(self, since: int, ended: bool = False) -> tuple[list[Batch], int]:
        """The rows with ts > `since` of sub-windows that are not needed any more, oldest first, and
        the instant up to which these are all there are.  `ended`: the open sub-window will not
        grow."""
        out: list[Batch] = []
        place = bisect_right(self.closed, since, key=lambda s: int(s.rows.ts[-1]))
        counts = any(n.rows for n in self.needs.values())
        older = sum(len(s.rows) for s in islice(self.closed, place)) if counts else 0
        for sub in islice(self.closed, place, None):
            if self._needed(sub.rows, older):
                return out, max(since, int(sub.rows.ts[0]) - 1)
            out.append(between(sub.rows, since, FOREVER))
            older += len(sub.rows)
        if self.buffer:
            rows = self._open() if ended else self.buffer[0]
            if not ended or self._needed(rows, older):
                return out, max(since, int(rows.ts[0]) - 1)
            out.append(between(rows, since, FOREVER))
        return [b for b in out if len(b)], max(since, self.newest)

    def _needed(self, rows: Batch, older: int) -> bool:
        """Whether a reader needs that sub-window, before which `older` rows are held."""
        return any(self._wanted(n, rows, older) for n in self.needs.values())

    def _wanted(self, need: Need, oldest: Batch, older: int) -> bool:
        at = self.newest if need.reached is None else min(self.newest, need.reached())
        at = max(at - need.ago, ALWAYS)
        if need.length and oldest.ts[-1] > at - need.length:
            return True
        if not need.rows:
            return False
        younger = self.count - older - len(oldest)
        if at < self.newest:
            younger -= sum(len(b) for b in self.rows(at))
        return younger < need.rows

    # -- what is there -----------------------------------------------------------------------------

    @property
    def front(self) -> int:
        """The number of the youngest sub-window that has ended: rows to come belong to later
        ones."""
        return self._number(int(self.buffer[0].ts[0]) if self.buffer else self.newest + 1) - 1

    def number(self, ts: int) -> int:
        """The number of the sub-window of an instant."""
        return self._number(max(ts, ALWAYS + 1))

    def find(self, number: int) -> SubWindow | None:
        """A closed sub-window; None if it has no rows, or is not here."""
        place = bisect_left(self.closed, number, key=lambda s: s.number)
        found = self.closed[place] if place < len(self.closed) else None
        return found if found is not None and found.number == number else None

    def subwindows(self, since: int = ALWAYS, upto: int = FOREVER) -> Iterator[SubWindow]:
        """Those with rows in (since, upto], oldest first, whole; the open one last."""
        first = bisect_right(self.closed, since, key=_last)
        yield from islice(self.closed, first, bisect_right(self.closed, upto, key=_first))
        if self.buffer and self.buffer[0].ts[0] <= upto and self.buffer[-1].ts[-1] > since:
            rows = self._open()
            yield SubWindow(self._number(int(rows.ts[0])), rows)

    def rows(self, since: int, upto: int = FOREVER) -> list[Batch]:
        """The rows with ts in (since, upto], oldest first; none is copied."""
        held = chain((s.rows for s in self.closed if s.rows.ts[-1] > since), self.buffer)
        return [b for rows in held if len(b := between(rows, since, upto))]

    def last(self, n: int, upto: int = FOREVER) -> list[Batch]:
        """The last n rows by (ts, arrival) with ts <= upto, oldest first; fewer if there are fewer
        here."""
        out: list[Batch] = []
        for sub in reversed(list(self.subwindows(ALWAYS, upto))):
            rows = between(sub.rows, ALWAYS, upto)
            out.append(rows.slice(max(0, len(rows) - n), len(rows)))
            n -= len(out[-1])
            if not n:
                break
        return out[::-1]

    def holds(self, since: int) -> bool:
        """Whether every completed row with ts > `since` is here."""
        return self.reach <= since

    @property
    def oldest(self) -> int:
        """The timestamp of the oldest row here; FOREVER if there is none."""
        first = self.closed[0].rows if self.closed else self.buffer[0] if self.buffer else None
        return FOREVER if first is None else int(first.ts[0])

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes() for s in self.closed) + sum(batch_bytes(b) for b in self.buffer)


def _first(sub: SubWindow) -> int:
    return int(sub.rows.ts[0])


def _last(sub: SubWindow) -> int:
    return int(sub.rows.ts[-1])


def between(rows: Batch, since: int, upto: int) -> Batch:
    """The rows with ts in (since, upto], without copying."""
    start = int(np.searchsorted(rows.ts, since, side="right"))
    stop = int(np.searchsorted(rows.ts, upto, side="right"))
    return rows if start == 0 and stop == len(rows) else rows.slice(start, max(start, stop))


def batch_bytes(rows: Batch) -> int:
    """Bytes of a batch's arrays, about."""
    return int(rows.ts.nbytes) * (1 + len(rows.ids)) + sum(c.nbytes for c in rows.cols)


def joined(parts: Sequence[Batch], nothing: Batch) -> Batch:
    """The parts as one batch; `nothing` if there are none."""
    return concat(parts) if parts else nothing
