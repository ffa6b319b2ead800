"""The part of the engine that takes rows and time: what comes is written down, then applied, and
queries move as far as it lets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dsms.api import Cancel, IngestReport
from dsms.archiving import check as check_archives
from dsms.commands.replanning import Replanner
from dsms.commands.stops import Stops
from dsms.commands.store import Write
from dsms.commands.table_rows import check_upsert, take_rows
from dsms.errors import DsmsError, UsageError
from dsms.forms.moments import Moment, moment
from dsms.frames import Frame, take_frames
from dsms.intake.convert import Converted, to_batch
from dsms.intake.defaults import filled
from dsms.intake.handed_on import not_too_far
from dsms.intake.named_values import named_values
from dsms.intake.outcome import Accepted
from dsms.intake.shedding import Shed, Waited, noted, remember, shed_of, thinned
from dsms.intake.stream import StreamInput
from dsms.listening import Listening, telling
from dsms.running.computing import completed
from dsms.running.runtime import Runtime
from dsms.running.turns import Turns
from dsms.running.writers import FramePart, Writers
from dsms.sql.catalog import Catalog
from dsms.sql.suggest import hint
from dsms.sql.types import FOREVER

if TYPE_CHECKING:
    from dsms.recovering.durability import Durability


class Taking(Listening):
    """See `dsms.engine.Engine`."""

    runtime: Runtime
    now: int | None  # system time, µs
    writers: Writers
    turns: Turns
    saver: Durability | None  # None: there is no data folder
    replanner: Replanner
    stops: Stops

    def store(self, write: Write, kind: str, body: bytes) -> None:
        """Write to the catalog file, if there is one, and with it what the journal says of it."""
        self._whole()
        if self.saver is not None:
            self.saver.store(write, kind, body)

    # A `cancel` here ends the call (DS610), not the work: what was handed over stands, a function
    # in Python that a query has called goes on to its end, and queries that have not got to it go
    # on with the next call that moves them.

    @telling
    def ingest(
        self,
        stream: str,
        data: Any,
        *,
        client: str | None = None,
        seq: int | None = None,
        first: int = 0,
        last: bool = True,
        cancel: Cancel | None = None,
        upsert: bool = False,
        waited: Waited | None = None,
        position: str | None = None,
    ) -> IngestReport:
        """Rows for a stream or table: Arrow, pandas, polars, a dict of columns or a list of rows.

        Rows of a table are inserted; those with a key that is there are refused, or with `upsert`
        take the place of the rows that have it (DS440: there are no keys).
        `client` and `seq`: a frame with a `seq` not above the client's last one on this stream is a
        repeat and changes nothing.  A frame may come in parts: these are its rows from number
        `first` on, and `last` says that none follow; what of it has been applied is not applied
        again; `position` is kept with them (`writer`).  With a data folder rows are written
        down first, as the `durability` of the stream says.  `waited`: how long they have waited for
        this call, by which a stream sheds.  Raises UsageError DS401 (no such stream), DS5xx (data
        that can't be taken as a whole, or written down)."""
        key = self._taker(stream)
        part: FramePart | None = None
        done = 0
        if client is not None and seq is not None:
            known = self.writers.applied(client, key, seq)
            if known is None:
                return IngestReport(0, repeated=1)
            done = known
        table = self.runtime.tables.get(key)
        if upsert:
            check_upsert(f"stream {stream}" if table is None else f"table {stream}", table)
        rows = data if isinstance(data, Converted) else self._converted(key, data)
        if client is not None and seq is not None:
            part = FramePart(client, seq, max(done, first + len(rows)), last, position)
            if done > first:
                rows = rows.after(done - first)
        if table is not None:
            self._whole()
            return take_rows(
                self.runtime, self.store, self.writers, key, rows, upsert, part, cancel
            )
        entry = self.runtime.inputs[key]
        kept = thinned(entry, rows, waited)
        shed = len(rows) - len(kept)
        columns = not_too_far(entry, rows.columns) if shed and not len(kept) else rows.columns
        told = shed_of(entry, columns, len(kept))
        report = self.take(key, kept, part=part, cancel=cancel, shed=told)
        return replace(report, shed=shed) if shed else report

    def _converted(self, key: str, data: Any) -> Converted:
        """Rows as the stream or table of that key takes them."""
        if key in self.runtime.tables:
            table = self.runtime.tables[key].definition
            return to_batch(data, table.schema, f"table {table.name}")
        stream = self.runtime.inputs[key].definition
        return to_batch(data, stream.brought, f"stream {stream.name}", stream.made)

    def take(
        self,
        key: str,
        rows: Converted,
        now: int | None = None,
        part: FramePart | None = None,
        cancel: Cancel | None = None,
        shed: Shed | None = None,
    ) -> IngestReport:
        """Converted rows for a stream, by its key: written down, then applied.

        now   the system time at which they came; None: the engine's
        part  which rows of which frame of which writer they are
        shed  what the stream has shed with this frame"""
        entry, now = self._open(key, now)
        if self.saver is not None:
            self.saver.rows(key, rows, now, part, shed)
        if part is not None:
            self.writers.note(part, key)
        rows = self._completed(entry, rows)
        taken = self._apply(key, entry, rows, now, cancel)
        if shed is not None:
            remember(entry, shed)
        return taken.report(rows)

    def _completed(self, entry: StreamInput, rows: Converted) -> Converted:
        return completed(rows, entry.definition, self.runtime.settings.statement_bytes)

    @telling
    def ingest_group(self, stream: str, frames: Sequence[Frame]) -> list[IngestReport | DsmsError]:
        """Frames of one stream, one after the other as `ingest` takes them, applied as one where
        that makes no difference: what became of each, its report or why it was not taken.

        With a data folder they are written down as one record.  Raises UsageError DS401."""
        return take_frames(self, self._stream(stream), frames)

    def take_group(
        self,
        key: str,
        rows: Converted,
        now: int | None = None,
        parts: Sequence[FramePart] = (),
        cancel: Cancel | None = None,
    ) -> None:
        """`take` for the rows of several whole frames, `parts` those that have numbers, of which no
        row is refused."""
        entry, now = self._open(key, now)
        if self.saver is not None:
            self.saver.group(key, rows, now, parts)
        for part in parts:
            self.writers.note(part, key)
        self._apply(key, entry, self._completed(entry, rows), now, cancel)

    def _open(self, key: str, now: int | None) -> tuple[StreamInput, int | None]:
        """The stream, which takes rows, and the system time at which they come."""
        self._whole()
        entry, now = self.runtime.inputs[key], self.now if now is None else now
        check_archives(self.runtime, key, now)
        if self.saver is not None:
            entry.check_rows(now)
        return entry, now

    def _apply(
        self, key: str, entry: StreamInput, rows: Converted, now: int | None, cancel: Cancel | None
    ) -> Accepted:
        entry.count_refused(rows.refusals)
        taken = entry.accept(rows.columns, now, rows.kept)
        noted(entry, rows.columns)
        if taken.accepted:
            self.runtime.clocks.active(key)
        if taken.late_columns is not None and entry.definition.late_into is not None:
            self._take_late(key, entry.definition.late_into, taken.late_columns, cancel)
        self._moved(key, cancel)
        self._settled()
        return taken

    def _take_late(self, source: str, name: str, columns: Any, cancel: Cancel | None) -> None:
        key = Catalog.key(name)
        columns = self._handed_on(source, key, columns)
        added = self.runtime.inputs[key].definition.schema[len(columns) :]
        columns = (*columns, *(filled(f, len(columns[0])) for f in added))
        if not len(columns[0]):
            return
        if self.saver is not None:
            self.saver.late(source, key, columns, self.now)
        self.take_late(key, columns, self.now, cancel)

    def _handed_on(self, source: str, key: str, columns: Any) -> Any:
        """The late rows of a stream that its owner may write to that of LATE INTO, as things are
        now: none without INSERT, none beyond its MAX FUTURE without ADMIN."""
        owner = self.runtime.rights.owners.get(source)
        if owner is None or self.runtime.rights.owns(owner, key):
            return columns
        if not self.runtime.rights.may(owner, "INSERT", key):
            return tuple(c.slice(0, 0) for c in columns)
        return not_too_far(self.runtime.inputs[key], columns)

    def take_late(
        self, key: str, columns: Any, now: int | None, cancel: Cancel | None = None
    ) -> None:
        """Late rows of another stream go to this one, as they come."""
        entry = self.runtime.inputs[key]
        if entry.accept_late(columns, now).accepted:
            noted(entry, columns)
            self.runtime.clocks.active(key)
        self._moved(key, cancel)

    def _settled(self) -> None:
        """What was taken is applied: it may be time for other plans, and for a checkpoint."""
        self.stops.write(self.runtime, self.store)
        if self.turns.behind:
            return
        self.replanner.look(self.runtime)
        if self.saver is not None and self.replanner.going is None:
            self.saver.settled()

    def _moved(self, key: str, cancel: Cancel | None = None) -> None:
        """A stream may have released rows; idle streams move with it."""
        if any(s.definition.idle_timeout is not None for s in self.runtime.inputs.values()):
            self._turn(self.runtime.pump_all, cancel)
        else:
            self._turn(lambda turn: self.runtime.pump(key, turn), cancel)

    def _turn(self, move: Callable[[Cancel | None], None], cancel: Cancel | None) -> None:
        """Let queries move, until `Settings.pause` says that the rest is for `work`."""
        self.turns.take(move, self.runtime.settings.pause, cancel)

    def _stream(self, name: str) -> str:
        key = self.key_of(name)
        if key not in self.runtime.inputs:
            names = [s.name for s in self.runtime.catalog.streams.values()]
            raise UsageError("DS401", f"there is no stream {name}", hint=hint(name, names))
        return key

    def key_of(self, name: str) -> str:
        """The key of the stream, table or query of that name; any thread may ask."""
        return self.runtime.catalog.key_of(name)

    def _taker(self, name: str) -> str:
        """The key of the stream or table that rows of that name are for."""
        key = self.key_of(name)
        return key if key in self.runtime.tables else self._stream(name)

    @telling
    def heartbeat(
        self,
        stream: str,
        ts: Moment | None,
        cancel: Cancel | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> None:
        """The source promises that no row with a timestamp <= `ts` follows: µs since the epoch, a
        datetime, or an instant of NumPy or pandas.  Raises UsageError DS508 for one outside the
        years 0001-9999.

        where  no such row of these values: {"k": 5}, {"k": [5, 6], "j": "a"}; `ts` None: none at
               all (`PUNCTUATE`).  UsageError DS501 an unknown column, DS335 values that can't be,
               DS336 too many of them"""
        key = self._stream(stream)
        if where is None:
            self.heartbeat_of(key, moment(ts, "a heartbeat"), cancel)
            return
        upto = FOREVER if ts is None else moment(ts, "a heartbeat")
        named = named_values(where, self.runtime.inputs[key].definition)
        self.punctuate_of(key, *named, upto)

    def punctuate_of(
        self,
        key: str,
        columns: tuple[int, ...],
        values: tuple[pa.Array, ...],
        upto: int,
    ) -> None:
        """No row of the stream of that key follows whose `columns` have one of the combinations of
        `values` and whose instant is <= `upto` (FOREVER: none at all)."""
        self._whole()
        entry = self.runtime.inputs[key]
        entry.check_punctuation()
        if self.saver is not None:
            self.saver.punctuation(key, columns, values, upto)
        entry.punctuate(columns, values, upto)
        self.runtime.promising.made(key)
        self.runtime.promising.follow(self.runtime.inputs, self.runtime.dispatch)
        self._settled()

    def check_heartbeat(self, stream: str, ts: int) -> None:
        """Raise what `heartbeat` would raise, and DS508 for one beyond MAX FUTURE.

        The program that this engine runs in may move a clock as far as it likes; its users may
        not."""
        source = self.runtime.inputs[self._stream(stream)]
        source.check_heartbeat(ts)
        source.check_future(ts)

    def heartbeat_of(self, key: str, ts: int, cancel: Cancel | None = None) -> None:
        """`heartbeat`, by the stream's key."""
        self._whole()
        self.runtime.inputs[key].check_heartbeat(ts)
        if self.saver is not None:
            self.saver.heartbeat(key, ts)
        self.runtime.inputs[key].heartbeat(ts)
        self.runtime.clocks.active(key)
        self._moved(key, cancel)
        self._settled()

    @telling
    def end(self, stream: str, cancel: Cancel | None = None) -> None:
        """The stream has ended: all its rows are complete, and it holds no clock back.

        A query with SLIDE, all of whose streams have ended, answers at boundaries until the last
        row has left its windows."""
        self.end_of(self._stream(stream), cancel)

    def end_of(self, key: str, cancel: Cancel | None = None) -> None:
        """`end`, by the stream's key."""
        self._whole()
        self.runtime.inputs[key].check_end()
        if self.saver is not None:
            self.saver.ended(key)
        self.runtime.inputs[key].end()
        self.runtime.clocks.follow()
        self._turn(self.runtime.pump_all, cancel)
        self._settled()

    @telling
    def advance(self, now: Moment, cancel: Cancel | None = None) -> None:
        """System time is `now`: drives system-time streams and IDLE TIMEOUT.  Instants as for
        `heartbeat`.

        It may go back: streams whose rows bear later stamps stand still meanwhile, others do not
        know of it."""
        now = moment(now, "the engine's time")
        self._whole()
        if self.saver is not None and not self.saver.advanced(now):
            return
        self.now = now
        self.runtime.clocks.advance(now)
        self._turn(self.runtime.pump_all, cancel)

    @telling
    def work(self) -> bool:
        """Go on with what a call has left (`Settings.pause`), else evaluate elastic queries whose
        deadline is nearest (`Settings.deferred`); False if nothing is due."""
        return self.catch_up() or self.runtime.work()

    def catch_up(self) -> bool:
        """Go on with what a call has left; False if that is nothing."""
        if self.copy_on():
            return True
        if not self.turns.behind:
            return False
        self.turns.behind = False
        self.turns.take(self.runtime.go_on, self.runtime.settings.pause, None)
        self._settled()
        return True

    def has_work(self) -> bool:
        """Whether `work` would find anything."""
        copying = self.saver is not None and self.saver.checkpointer.copying is not None
        going = copying or self.replanner.going is not None
        return going or self.turns.behind or self.runtime.backlog.pending()

    def copy_on(self) -> bool:
        """Where the state is being copied, for a checkpoint or into joins that take the place of
        others, copy on for a while; False if it is not, or not any more.

        What would change the state in between copies what is left of it first, in one go: whoever
        has others to think of calls this until it is False."""
        if self.saver is not None and self.saver.checkpointer.copy_on():
            return True
        return self.replanner.go_on(self.runtime)

    def _whole(self) -> None:
        if self.saver is not None:
            self.saver.checkpointer.whole()
        self.replanner.whole(self.runtime)
