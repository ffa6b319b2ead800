"""One stream's way in: event time, lateness, slack, and the instant up to which the stream is
complete.

Terms (all instants µs):
  newest      the largest accepted timestamp
  promised    heartbeats, and moves with others when idle: nothing at or before it follows
  settled     max(newest - slack, promised): rows up to here stand in their final order; more rows
              *of* that instant may come and take their place behind
  completed   max(newest - slack - 1, promised): no row at or before it will be accepted any more.
              ALWAYS at first, FOREVER - 1 after `end()`; system time: one µs before the clock.

A row is late if its timestamp is <= completed when it comes, judged row by row, so how rows are cut
into frames changes nothing; and if a punctuation has said that no such row comes (`promises`).
Arrival numbers are given when rows settle, in (timestamp, order of arrival) order, so with slack
they are those of the sorted input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.convert import Refusal
from dsms.intake.judge import LATE, TOO_FAR, judge, open_at
from dsms.intake.outcome import CONTRADICTING, Accepted, Counts, Released, no_late_rows
from dsms.intake.promises import Promises
from dsms.intake.reorder import ReorderBuffer
from dsms.intake.shedding import Shedder
from dsms.intake.usable import places, take, timestamps, too_far, without_nulls
from dsms.intake.values import duration_text, instant_text
from dsms.sql.catalog import StreamDef
from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT, MIN_INSTANT
from dsms.state.batch import Batch, stamped_before


class StreamInput:
    """The entry of one stream.  Not thread-safe: the engine's thread calls it.

    moved_up  whether some row of LATE INTO has a later instant than its timestamp column says
    fed_by    the queries that give it its rows (`dsms.intake.fed`); empty: rows come from outside
    lacking   of queries that fed it what streams that shed had left: until when, which share
    unknown   with KEY: before that instant it is not known what it held (SET SINCE); ALWAYS: it is
    """

    moved_up = False
    fed_by: tuple[str, ...] = ()
    lacking: tuple[tuple[int, float], ...] = ()
    shedder: Shedder | None = None
    promises: Promises | None = None
    unknown = ALWAYS

    def __init__(self, definition: StreamDef, first_arrival: int = 0) -> None:
        self.definition = definition
        self.counts = Counts()
        self.newest = ALWAYS
        self.promised = ALWAYS
        self.ended = False
        self.next_arrival = first_arrival
        self.now: int | None = None  # system time: the last stamp or advance
        self._waiting = ReorderBuffer()
        self._held: list[Batch] = []  # settled, not yet released as complete
        self._fresh: list[Batch] = []  # settled since the last release

    # -- what is known -----------------------------------------------------------------------------

    @property
    def event_time(self) -> bool:
        return self.definition.timestamp is not None

    @property
    def by_system_time(self) -> bool:
        """Whether the system time moves it."""
        return not self.event_time or self.definition.idle_timeout is not None

    @property
    def settled(self) -> int:
        if self.ended:
            return FOREVER - 1
        return max(self.promised, ALWAYS if self.newest == ALWAYS else self.newest - self.slack)

    @property
    def completed(self) -> int:
        if self.ended:
            return FOREVER - 1
        if not self.event_time:
            return ALWAYS if self.now is None else self.now - 1
        return max(self.promised, ALWAYS if self.newest == ALWAYS else self.newest - self.slack - 1)

    @property
    def waiting(self) -> int:
        """Rows accepted but not yet handed on as complete."""
        return len(self._waiting) + sum(len(b) for b in self._held)

    @property
    def early(self) -> tuple[Batch, ...]:
        """Between two releases: rows that were handed on as fresh, and not yet as complete."""
        return tuple(self._held)

    @property
    def next_complete(self) -> int:
        """The arrival number of the next row that is handed on as complete."""
        return self.next_arrival - sum(len(b) for b in self._held)

    @property
    def slack(self) -> int:
        return self.definition.slack if self.event_time else 0

    def nbytes(self) -> int:
        """Bytes of waiting rows, about."""
        promised = 0 if self.promises is None else self.promises.nbytes
        return (
            promised
            + self._waiting.nbytes()
            + sum(b.ts.nbytes + sum(c.nbytes for c in b.cols) for b in self._held)
        )

    # -- rows --------------------------------------------------------------------------------------

    def accept(
        self, columns: Sequence[pa.Array], now: int | None = None, kept: np.ndarray | None = None
    ) -> Accepted:
        """Take rows in arrival order: physical columns of equal length in schema order (see
        `convert.to_batch`).

        `now`: the engine's system time (µs), needed for system-time streams.  `kept`: the rows'
        positions in what the writer sent, for messages.  Raises UsageError DS507 after `end`, DS509
        if the time is not known.
        """
        self.check_rows(now)
        cols = tuple(columns)
        if not len(cols[0]):
            return Accepted(0)
        done = self._by_event(cols, kept) if self.event_time else self._by_arrival(cols, now, kept)
        self.counts.accepted += done.accepted
        self.counts.late += done.late
        self.counts.contradicting += done.contradicting
        self.count_refused(done.refusals)
        return done

    def accept_late(self, columns: Sequence[pa.Array], now: int | None = None) -> Accepted:
        """Late rows of another stream (LATE INTO), in arrival order: taken as they come, whatever
        the clock here says.

        What would be late here, too, is stamped with the earliest instant that is still open.
        Nothing is raised, as that is no fault of the writer; what can't be taken at all is counted
        as refused.
        """
        cols, refusals = without_nulls(self.definition.schema, tuple(columns))
        if (wrong := self.would_contradict(cols, now)) is not None:
            refusals += (no_late_rows(take(cols, np.flatnonzero(wrong)), CONTRADICTING),)
            cols = take(cols, np.flatnonzero(~wrong))
        if not len(cols[0]):
            done = Accepted(0)
        elif self.ended:
            done = Accepted(0, refusals=(no_late_rows(cols, "after the end"),))
        elif not self.event_time and now is None and self.now is None:
            done = Accepted(0, refusals=(no_late_rows(cols, "before the engine's time is known"),))
        else:
            done = self._moved_up(cols) if self.event_time else self._by_arrival(cols, now)
        self.counts.accepted += done.accepted
        self.count_refused(refusals + done.refusals)
        return done

    def count_refused(self, refusals: Sequence[Refusal]) -> None:
        """Count rows refused; for those refused on conversion, before `accept`."""
        for refusal in refusals:
            self.counts.refused[refusal.reason] += refusal.count

    def heartbeat(self, ts: int) -> None:
        """The source promises that no row with a timestamp <= `ts` (µs) follows.  An earlier
        promise stands.

        Raises UsageError DS507 after `end`, DS508 for a system-time stream or a year that can't be.
        """
        self.check_heartbeat(ts)
        self.move(ts)

    def punctuate(self, columns: tuple[int, ...], values: Sequence[pa.Array], upto: int) -> None:
        """The source promises that no row follows whose `columns` have one of these combinations of
        `values` and whose instant is <= `upto` (FOREVER: none at all).  Raises UsageError DS507."""
        self.check_punctuation()
        if self.promises is None:
            self.promises = Promises()
        after = max(self.newest, self.promised + 1) if self.moved_up else self.newest
        self.promises.add(columns, values, upto, after, self.completed)

    def check_punctuation(self) -> None:
        """Raise what `punctuate` would raise."""
        self._check_open("punctuations")

    def contradicting(self, cols: Sequence[pa.Array], ts: np.ndarray | int) -> np.ndarray | None:
        """Of rows of those instants which contradict a promise; None: none of them."""
        none = self.promises is None or not len(cols[0])
        return None if none or self.promises is None else self.promises.broken(cols, ts)

    def would_contradict(self, cols: Sequence[pa.Array], now: int | None = None) -> Any:
        """`contradicting`, of rows that may come next, if need be at `now`."""
        if self.event_time:
            at = self.definition.timestamp or 0
            return self.contradicting(cols, self.timestamps(cols[at], None)[0])
        known = [t for t in (now, self.now) if t is not None]
        return self.contradicting(cols, max(known)) if known else None

    def check_end(self) -> None:
        """Raise why nobody outside may end the stream."""

    def check_rows(self, now: int | None) -> None:
        """Raise what `accept` would raise of rows that come at `now`."""
        self._check_open("rows")
        if not self.event_time and now is None and self.now is None:
            what = f"rows of {self.definition.name} are stamped on arrival"
            helps = "call advance(now) first, or declare the stream TIMESTAMP BY"
            raise UsageError("DS509", f"{what}, and the engine's time is not known yet", hint=helps)

    def check_heartbeat(self, ts: int) -> None:
        """Raise what `heartbeat` would raise."""
        self._check_open("heartbeats")
        if not self.event_time:
            what = f"stream {self.definition.name} is stamped on arrival"
            helps = "heartbeats are for streams declared with TIMESTAMP BY"
            raise UsageError("DS508", f"{what}: its clock is the engine's", hint=helps)
        if not MIN_INSTANT <= ts <= MAX_INSTANT:
            hint = "a heartbeat is in microseconds since 1970, UTC"
            raise UsageError("DS508", f"heartbeat {ts} lies outside the years 0001-9999", hint=hint)

    def check_future(self, ts: int) -> None:
        """Raise DS508 if a heartbeat at `ts` moves the clock on by more than MAX FUTURE; the first
        input is free."""
        future, known = self.definition.max_future, max(self.newest, self.promised)
        if future is None or known == ALWAYS or ts - known <= future:
            return
        message = (
            f"heartbeat {instant_text(ts)} is more than MAX FUTURE {duration_text(future)} after "
            f"{instant_text(known)}, the newest instant so far"
        )
        raise UsageError(
            "DS508",
            message,
            hint="if time really went on, send heartbeats in steps no longer than that",
        )

    def move(self, upto: int) -> None:
        """No row with a timestamp <= `upto` will be accepted (a heartbeat, or an idle stream moved
        with the others)."""
        if upto > self.promised:
            self.promised = upto
            self._settle()

    def advance(self, now: int) -> None:
        """The engine's system time is `now` (µs): what arrives from here on is stamped no
        earlier."""
        self.now = now if self.now is None else max(self.now, now)

    def set_back(self, to: int) -> StreamInput:
        """Another entry, as if the clock had never passed `to`: rows stamped `to` or later on
        arrival are stamped before it; of event time, promises are taken back (no row may be as late
        as `to`), and so are all punctuations."""
        entry = copy(self)
        entry.newest, entry.now, entry.promises = min(self.newest, to - 1), to, None
        if self.event_time:
            entry.promised, entry.now = to - 1, self.now
            entry._settle()
        entry._held, entry._fresh = [stamped_before(b, to) for b in entry._held], []
        return entry

    def end(self) -> None:
        """The input has ended: every instant is complete, nothing can follow."""
        self.ended = True
        self._settle()

    def change(self, to: Callable[[Batch], Batch]) -> None:
        """All rows that wait here become others, as many, of the same instants."""
        self._waiting.change(to)
        self._held, self._fresh = [to(b) for b in self._held], [to(b) for b in self._fresh]

    def release(self) -> Released:
        """Hand on what is complete and what has settled since the last time."""
        upto = self.completed
        fresh, self._fresh = tuple(self._fresh), []
        complete: list[Batch] = []
        rest: list[Batch] = []
        for batch in self._held:
            cut = int(np.searchsorted(batch.ts, upto, side="right"))
            if cut:
                complete.append(batch.slice(0, cut) if cut < len(batch) else batch)
            if cut < len(batch):
                rest.append(batch.slice(cut, len(batch)) if cut else batch)
        self._held = rest
        return Released(tuple(complete), fresh, upto)

    # -- inside ------------------------------------------------------------------------------------

    def _check_open(self, what: str) -> None:
        if self.ended:
            name = self.definition.name
            hint = f"ALTER STREAM {name} REOPEN takes that back"
            raise UsageError("DS507", f"stream {name} was ended: no {what} can follow", hint=hint)

    def _by_arrival(
        self, cols: tuple[pa.Array, ...], now: int | None, kept: np.ndarray | None = None
    ) -> Accepted:
        if now is not None:
            self.advance(now)
        assert self.now is not None
        bad = self.contradicting(cols, self.now)
        late = np.empty(0, np.int64) if bad is None else np.flatnonzero(bad)
        aside = take(cols, late) if len(late) and self.definition.late_into else None
        if bad is not None:
            cols = take(cols, np.flatnonzero(~bad))
        if len(cols[0]):
            self.newest = self.now
            self._queue(np.full(len(cols[0]), self.now, np.int64), cols)
        return Accepted(len(cols[0]), len(late), (), aside, places(late, kept), len(late))

    def _moved_up(self, cols: tuple[pa.Array, ...]) -> Accepted:
        ts, usable, refusals = self.timestamps(cols[self.definition.timestamp or 0], None)
        if usable is not None:
            cols, ts = take(cols, usable), ts[usable]
        if len(ts):
            at = open_at(ts, self.newest, self.promised, self.slack)
            if int(at.max()) > MAX_INSTANT:
                over = no_late_rows(
                    take(cols, np.flatnonzero(at > MAX_INSTANT)), "after the last instant"
                )
                refusals, inside = (*refusals, over), np.flatnonzero(at <= MAX_INSTANT)
                ts, at, cols = ts[inside], at[inside], take(cols, inside)
        if len(ts):
            self.newest = max(self.newest, int(ts.max()))
            self.moved_up = self.moved_up or bool((at > ts).any())
            self._queue(at, cols)
        return Accepted(len(ts), refusals=refusals)

    def _by_event(self, cols: tuple[pa.Array, ...], kept: np.ndarray | None) -> Accepted:
        ts, usable, refusals = self.timestamps(cols[self.definition.timestamp or 0], kept)
        if usable is not None:
            cols, ts, kept = (
                take(cols, usable),
                ts[usable],
                usable if kept is None else kept[usable],
            )
        if not len(ts):
            return Accepted(0, refusals=refusals)
        known, bad = max(self.newest, self.promised), self.contradicting(cols, ts)
        verdict, self.newest = self._judged(ts, bad)
        if verdict is None:
            self._queue(ts, cols)
            return Accepted(len(ts), refusals=refusals)
        good, late = np.flatnonzero(verdict == 0), np.flatnonzero(verdict == LATE)
        if len(good):
            self._queue(ts[good], take(cols, good))
        far = np.flatnonzero(verdict == TOO_FAR)
        if len(far):
            before = int(ts[good[good < far[0]]].max(initial=known))
            refusals += (too_far(self.definition, places(far, kept), int(ts[far[0]]), before),)
        aside = take(cols, late) if len(late) and self.definition.late_into else None
        broken = 0 if bad is None else int(bad.sum())
        return Accepted(len(good), len(late), refusals, aside, places(late, kept), broken)

    def _judged(self, ts: np.ndarray, bad: np.ndarray | None) -> tuple[np.ndarray | None, int]:
        """`judge`; the `bad` rows are late, and move nothing."""
        how = (self.newest, self.promised, self.slack, self.definition.max_future)
        if bad is None:
            return judge(ts, *how)
        verdict, good = np.full(len(ts), LATE, np.int8), np.flatnonzero(~bad)
        if not len(good):
            return verdict, self.newest
        found, newest = judge(ts[good], *how)
        verdict[good] = 0 if found is None else found
        return verdict, newest

    def timestamps(
        self, column: pa.Array, kept: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, tuple[Refusal, ...]]:
        """See `usable.timestamps`."""
        return timestamps(self.definition, column, kept)

    def _queue(self, ts: np.ndarray, cols: tuple[pa.Array, ...]) -> None:
        """Accepted rows in arrival order.  Without slack they are in timestamp order already."""
        rows = Batch(ts, None, None, (), cols)
        if self.slack:
            self._waiting.add(rows)
            self._settle()
        else:
            self._number(rows)

    def _settle(self) -> None:
        rows = self._waiting.take(self.settled) if self.slack else None
        if rows is not None:
            self._number(rows)

    def _number(self, rows: Batch) -> None:
        rows.ids = (np.arange(self.next_arrival, self.next_arrival + len(rows), dtype=np.int64),)
        self.next_arrival += len(rows)
        self._held.append(rows)
        self._fresh.append(rows)
