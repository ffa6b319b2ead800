"""Streams that registered queries feed: what enters their answers (Istream) or leaves them
(Dstream) are the rows, stamped with the instants at which it does (CREATE STREAM ... AS, CREATE
QUERY ... AS INSERT INTO).

Such a stream takes nothing from outside.  Its clock is that of its slowest feeder, so no row is
late and none waits for a SLACK; rows of one instant come in the order in which the queries were
registered, those of one query in the order of its results.  Hence its rows are a function of what
the queries read, and are not written down: after a crash they come about again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.columns import TICKS
from dsms.intake.defaults import filled
from dsms.intake.operations import REASON, operations
from dsms.intake.stream import StreamInput
from dsms.sql.catalog import INSTANT, NOTHING
from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT, Kind, Schema
from dsms.state.batch import Batch, concat


@dataclass(slots=True)
class Feed:
    """What a query has put into a stream that the stream has not handed on yet.

    query   its name
    places  what stands in each column of the stream: a column of the query, INSTANT or NOTHING
    floor   rows up to that instant are late: the stream's clock when the query began to feed it
    upto    all that the query puts in up to this instant is here
    ended   nothing follows
    """

    query: str
    schema: Schema
    unit: str
    places: tuple[int, ...]
    floor: int = ALWAYS
    upto: int = ALWAYS
    ended: bool = False
    late: int = 0
    beyond: int = 0
    rows: list[Batch] = field(default_factory=list)

    def take(self, at: np.ndarray, data: pa.RecordBatch) -> None:
        """Result rows with their instants (int64[n], ascending).

        What is in the answer before every instant has not entered it at one."""
        first, last = np.searchsorted(at, [self.floor, MAX_INSTANT], side="right").tolist()
        self.late += first - int(np.searchsorted(at, ALWAYS, side="right"))
        self.beyond += len(at) - last
        if first >= last:
            return
        ts, data = at[first:last], data.slice(first, last - first)
        self.rows.append(Batch(ts, None, None, (), self._columns(ts, data)))

    def _columns(self, ts: np.ndarray, data: pa.RecordBatch) -> tuple[pa.Array, ...]:
        found = []
        for column, place in zip(self.schema, self.places, strict=True):
            if place == NOTHING:
                found.append(filled(column, len(ts)))
            elif place == INSTANT and column.type.kind is Kind.INT:
                found.append(pa.array(_ticks(ts, self.unit)))
            elif place == INSTANT:
                found.append(pa.array(ts).view(column.type.arrow))
            else:
                found.append(data.column(place))
        return tuple(found)

    def release(self, upto: int) -> list[Batch]:
        """The rows of all instants up to there, which are handed on now."""
        out, rest = [], []
        for batch in self.rows:
            cut = int(np.searchsorted(batch.ts, upto, side="right"))
            if cut:
                out.append(batch.slice(0, cut))
            if cut < len(batch):
                rest.append(batch.slice(cut, len(batch)))
        self.rows = rest
        return out


def _ticks(ts: np.ndarray, unit: str) -> np.ndarray:
    per_second = TICKS[unit]
    return (
        ts * (per_second // 1_000_000)
        if per_second > 1_000_000
        else ts // (1_000_000 // per_second)
    )


class FedInput(StreamInput):
    """The entry of a stream that queries feed; `feeds` by the keys of the queries, in the order of
    their registration."""

    feeds: dict[str, Feed]

    @classmethod
    def of(cls, entry: StreamInput) -> FedInput:
        """The same stream, from now on fed by queries: all that has come from outside is
        complete."""
        fed = cls(entry.definition)
        fed.__dict__.update(entry.__dict__)
        fed.feeds = {}
        if entry.newest > entry.promised:
            fed.move(entry.newest)
        return fed

    def alone(self) -> StreamInput:
        """The same stream without queries that feed it: what they have put in is complete."""
        self._take_in(FOREVER)
        entry = StreamInput(self.definition)
        entry.__dict__.update(self.__dict__)
        del entry.__dict__["feeds"]
        entry.fed_by = ()
        entry.move(max(self.promised, self.newest))
        return entry

    def add(self, key: str, feed: Feed) -> None:
        """One more query feeds it."""
        feed.floor = max(feed.floor, self.completed)
        self.feeds[key] = feed
        self.fed_by = tuple(f.query for f in self.feeds.values())

    def rename(self, key: str, to: str, name: str) -> None:
        """The query that feeds it has another name."""
        self.feeds[key].query = name
        self.feeds = {to if k == key else k: feed for k, feed in self.feeds.items()}
        self.fed_by = tuple(f.query for f in self.feeds.values())

    def drop(self, key: str) -> None:
        """The query feeds it no more; what it has put in stands."""
        gone = self.feeds.pop(key)
        self.fed_by = tuple(f.query for f in self.feeds.values())
        if gone.rows and self.feeds:
            heir = next(iter(self.feeds.values()))
            merged = _in_order([*gone.rows, *heir.rows])
            heir.rows = [merged]
        elif gone.rows:
            self._number_all(gone.rows)

    @property
    def event_time(self) -> bool:
        return True

    @property
    def by_system_time(self) -> bool:
        return False

    @property
    def settled(self) -> int:
        return self.completed

    @property
    def completed(self) -> int:
        return FOREVER - 1 if self.ended else self.promised

    @property
    def slack(self) -> int:
        return 0

    @property
    def waiting(self) -> int:
        own = sum(len(b) for b in self._held)
        return own + sum(len(b) for f in self.feeds.values() for b in f.rows)

    def nbytes(self) -> int:
        waiting = (b for f in self.feeds.values() for b in f.rows)
        return StreamInput.nbytes(self) + sum(
            b.ts.nbytes + sum(c.nbytes for c in b.cols) for b in waiting
        )

    def follow(self, progress: Mapping[str, tuple[int, bool]]) -> bool:
        """Take in what its queries have put in, up to where all of them are; whether that was
        something.

        progress  by key, the instant up to which each has answered, and whether it has ended"""
        if not self.feeds:
            return False
        for key, feed in self.feeds.items():
            upto, feed.ended = progress[key]
            feed.upto = max(feed.upto, upto)
        upto = min(f.upto for f in self.feeds.values())
        ends = not self.ended and all(f.ended for f in self.feeds.values())
        if upto <= self.promised and not ends:
            return False
        self._take_in(FOREVER if ends else upto)
        self.promised = max(self.promised, upto)
        if ends:
            self.ended = True
        return True

    def _take_in(self, upto: int) -> None:
        parts = [b for f in self.feeds.values() for b in f.release(upto)]
        for feed in self.feeds.values():
            self.counts.late += feed.late
            if feed.beyond:
                self.counts.refused["outside the years 0001-9999"] += feed.beyond
            feed.late = feed.beyond = 0
        if parts:
            self._number_all(parts)

    def _number_all(self, parts: list[Batch]) -> None:
        rows = self._with_values(_in_order(parts))
        if len(rows):
            self.newest = max(self.newest, int(rows.ts[-1]))
            self.counts.accepted += len(rows)
            self._number(rows)

    def _with_values(self, rows: Batch) -> Batch:
        """The rows that have a value in each NOT NULL column; the others are counted."""
        if self.definition.key:
            rows = self._with_operations(rows)
        if (wrong := self.contradicting(rows.cols, rows.ts)) is not None:
            count = int(wrong.sum())
            self.counts.late += count
            self.counts.contradicting += count
            rows = rows.take(np.flatnonzero(~wrong))
        bad = np.zeros(len(rows), bool)
        for f, col in zip(self.definition.schema, rows.cols, strict=True):
            if not f.nullable and col.null_count:
                bad |= col.is_null().to_numpy(zero_copy_only=False)
        if not bad.any():
            return rows
        self.counts.refused["NULL in a NOT NULL column"] += int(bad.sum())
        return rows.take(np.flatnonzero(~bad))

    def _with_operations(self, rows: Batch) -> Batch:
        """The rows whose operation is known, as it is kept; the others are counted."""
        at = self.definition.operation
        found = operations(rows.cols[at])
        unknown = found.null_count - rows.cols[at].null_count
        rows = rows.with_cols((*rows.cols[:at], found, *rows.cols[at + 1 :]))
        if not unknown:
            return rows
        self.counts.refused[REASON] += unknown
        return rows.take(np.flatnonzero(found.is_valid()))

    def _refuse(self, what: str) -> None:
        name = self.definition.name
        raise UsageError(
            "DS513",
            f"stream {name} takes no {what} from outside: queries feed it",
            hint="its rows and its clock are theirs (SHOW STREAMS names them)",
        )

    def check_rows(self, now: int | None) -> None:
        self._refuse("rows")

    def check_heartbeat(self, ts: int) -> None:
        self._refuse("heartbeats")

    def check_punctuation(self) -> None:
        self._refuse("punctuations")

    def check_end(self) -> None:
        self._refuse("end of input")

    def advance(self, now: int) -> None:
        """Its clock is that of its queries."""


def _in_order(parts: list[Batch]) -> Batch:
    """All rows by their instants, those of one instant in the order of the parts."""
    rows = concat(parts)
    if len(parts) > 1 and np.any(np.diff(rows.ts) < 0):
        order = np.argsort(rows.ts, kind="stable")
        where = pa.array(order)
        rows = Batch(rows.ts[order], None, None, (), tuple(c.take(where) for c in rows.cols))
    return rows
