"""What goes in and out of the engine: results, pushes, reports.  Plain data, shared by engine,
server and tests.

Instants are int64 microseconds since the epoch, UTC.  Row data is Arrow with physical types
(`dsms.sql.types`): TIMESTAMP and INTERVAL are int64 microseconds here and become Arrow timestamps
only at the outermost edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from dsms.errors import DsmsError, UsageError
from dsms.sql.types import MIN_INSTANT
from dsms.tabular.kinds import no_rows
from dsms.tabular.tables import Tabular, own_names, signed, to_edge

PushKind = Literal["snapshot", "insert", "delete", "result", "progress", "end"]


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that answers with a sentence; `warnings` are things the user should know (state
    that grows...)."""

    message: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows(Tabular):
    """A statement that answers with rows.

    types    SQL type names
    as_of    the instant it holds at; None: nothing that was read has a clock yet
    waiting  accepted rows of the streams it reads that wait behind their clock; None: it reads
             none, or one whose rows the user sees late
    since    the instant from which on it lacks no row of these streams: its windows reach back to
             rows that are not kept any more; None: it lacks none
    approximate  groups may miss a threshold of HAVING by that share of it; None: none does
    share    of the rows that came which its streams and joins have kept, where they shed; None: all
    """

    data: pa.RecordBatch
    types: tuple[str, ...]
    as_of: int | None = None
    waiting: int | None = None
    since: int | None = None
    approximate: float | None = None
    share: float | None = None

    def arrow(self) -> pa.Table:
        return own_names(to_edge(self.data, self.types))


Result = Done | Rows


@dataclass(frozen=True, slots=True)
class Push(Tabular):
    """A run of result rows of one kind of a persistent query.

    `seq` numbers the first row; the rows are numbered on without gaps.  `at` is the instant of the
    last row; `ats` gives each row's own instant (int64 array, non-decreasing) where they differ,
    else None.  A snapshot's rows are not numbered: its `seq` is the number of the next delta row.
    `types`, `approximate` and `share` are those of `Rows`, where a subscription has handed it out.
    `more` is for programs that read clients' pushes as well: a server cuts what is longer than its
    frames, the engine cuts no instant.
    """

    query: str
    seq: int
    kind: PushKind
    at: int | None
    data: pa.RecordBatch | None = None
    ats: pa.Array | None = None
    message: str | None = None  # for `end`: why
    code: str | None = None
    more: bool = False
    types: tuple[str, ...] = ()
    approximate: float | None = None
    share: float | None = None

    def arrow(self) -> pa.Table:
        return pa.table({}) if self.data is None else own_names(to_edge(self.data, self.types))


@dataclass(slots=True)
class Chunk:
    """Result rows `seq`, `seq` + 1, ...: sign int8[n] (+1 insert, -1 delete, 0 periodic), at
    int64[n] instants, values.

    `pushes` gives them as pushes; until it is called, rows stay columnar whatever their kinds."""

    seq: int
    sign: np.ndarray
    at: np.ndarray
    data: pa.RecordBatch
    nbytes: int = -1  # about; measured if not given

    def __post_init__(self) -> None:
        if self.nbytes < 0:
            self.nbytes = int(self.data.nbytes + self.sign.nbytes + self.at.nbytes)

    def __len__(self) -> int:
        return len(self.at)

    def after(self, seq: int) -> Chunk:
        """The rows numbered `seq` and above."""
        skip = max(0, seq - self.seq)
        return Chunk(self.seq + skip, self.sign[skip:], self.at[skip:], self.data.slice(skip))

    def pushes(
        self, query: str, types: tuple[str, ...] = (), approximate: float | None = None
    ) -> Iterator[Push]:
        """One push per run of rows of one kind; of periodic results one per boundary."""
        if not len(self):
            return
        changes = self.sign[1:] != self.sign[:-1]
        if (self.sign == 0).any():
            changes = changes | ((self.sign[1:] == 0) & (self.at[1:] != self.at[:-1]))
        cuts = (np.flatnonzero(changes) + 1).tolist()
        for start, stop in pairwise([0, *cuts, len(self)]):
            kind = kind_of(int(self.sign[start]))
            at = self.at[start:stop]
            ats = None if at[0] == at[-1] else pa.array(at)
            rows = self.data.slice(start, stop - start)
            last = shown_instant(int(at[-1]))
            start += self.seq
            yield Push(query, start, kind, last, rows, ats, types=types, approximate=approximate)


@dataclass
class NetChange(Chunk):
    """What result rows come to, for a reader that only wants the present: rows that have left
    (sign -1), then rows that have come (+1), or an answer (0), all of the instant `upto`.

    They have no numbers; `seq` is the number of the result row that follows."""

    upto: int = 0


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Chunks of one query that follow each other, as one."""
    if len(chunks) == 1:
        return chunks[0]
    schema = chunks[0].data.schema
    columns = [pa.concat_arrays([c.data.column(k) for c in chunks]) for k in range(len(schema))]
    return Chunk(
        chunks[0].seq,
        np.concatenate([c.sign for c in chunks]),
        np.concatenate([c.at for c in chunks]),
        pa.RecordBatch.from_arrays(columns, schema=schema),
        sum(c.nbytes for c in chunks),
    )


@dataclass(frozen=True, slots=True)
class Changes(Tabular):
    """What a subscription was told since it was last asked, in columns.

    rows      the result rows of all kinds, in order: numbers, signs, instants, values; None: none
    snapshot  the answer as the subscription began, where it begins with one
    upto      all instants up to here are told, those without rows among them; None: not said
    end       nothing more will come; its `code` and `message` say why
    columns   of the query
    approximate  by which share groups may miss a threshold (`Rows`)
    share     of the rows that came which was kept (`Rows`)
    """

    rows: Chunk | None = None
    snapshot: Push | None = None
    upto: int | None = None
    end: Push | None = None
    columns: tuple[Column, ...] = ()
    approximate: float | None = None
    share: float | None = None

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    def arrow(self) -> pa.Table:
        """The rows of the snapshot and those that came, with two more columns: `$sign` (1 enters,
        -1 leaves, 0 is part of a periodic answer) and `$at`, the instant (NULL
        before any clock)."""
        types = [c.type for c in self.columns]
        parts = []
        if self.snapshot is not None and self.snapshot.data is not None:
            n, at = self.snapshot.data.num_rows, self.snapshot.at
            ats = pa.array([at] * n, pa.int64())
            parts.append(signed(own_names(to_edge(self.snapshot.data, types)), [1] * n, ats))
        if self.rows is not None:
            table = own_names(to_edge(self.rows.data, types))
            own = pa.array(self.rows.at, mask=self.rows.at < MIN_INSTANT)
            parts.append(signed(table, self.rows.sign, own))
        if not parts:
            none = no_rows([c.name for c in self.columns], types)
            parts.append(signed(own_names(to_edge(none, types)), [], []))
        return pa.concat_tables(parts)

    @classmethod
    def of(
        cls,
        items: Sequence[Push | Chunk],
        columns: tuple[Column, ...] = (),
        approximate: float | None = None,
        share: float | None = None,
    ) -> Changes:
        """Of what `take_chunks` gave."""
        told = {item.kind: item for item in items if isinstance(item, Push)}
        chunks = [item for item in items if isinstance(item, Chunk) and len(item)]
        ats = [item.at for item in told.values() if item.at is not None]
        ats += [int(chunk.at[-1]) for chunk in chunks[-1:]]
        ats += [item.upto for item in items if isinstance(item, NetChange)]
        upto = shown_instant(max(ats)) if ats else None
        rows = joined(chunks) if chunks else None
        return cls(rows, told.get("snapshot"), upto, told.get("end"), columns, approximate, share)


def kind_of(sign: int) -> PushKind:
    """What rows of that sign are pushed as."""
    return "result" if sign == 0 else "insert" if sign > 0 else "delete"


def shown_instant(at: int) -> int | None:
    """An instant as the outside sees it: None before any clock."""
    return None if at < MIN_INSTANT else at


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of a frame of rows: accepted + late + refused + shed = rows sent (all 0 and
    `repeated` for a repeat)."""

    accepted: int
    late: int = 0
    refused: int = 0
    repeated: int = 0  # frames that had been applied before: 0 or 1
    reasons: tuple[str, ...] = ()  # a sentence per reason for refusal, with the first offending row
    # of rows that were not taken: a short reason (`late` among them) and their positions in the
    # frame (int64[n]), which is left out where frames were applied together
    positions: tuple[tuple[str, np.ndarray], ...] = field(default=(), compare=False, repr=False)
    shed: int = 0  # dropped, as rows came faster than they could be taken


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the outside sees it: name as declared and SQL type name, e.g.
    ``DECIMAL(10,2)``."""

    name: str
    type: str


class Cancel:
    """A request to stop, shared by the thread that asks and the engine, which looks between slices
    of work."""

    __slots__ = ("_asked", "why")

    def __init__(self) -> None:
        self._asked = False
        self.why: DsmsError | None = None  # what to tell the user instead of DS610

    def set(self, why: DsmsError | None = None) -> None:
        """Ask it to stop.  The first who asks says why."""
        if not self._asked:
            self.why = why
        self._asked = True

    @property
    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._asked

    def check(self) -> None:
        """Raise DS610 if the statement was cancelled, whoever asked and why."""
        if self._asked:
            raise UsageError("DS610", "the statement was cancelled")

    def told(self, problem: DsmsError) -> DsmsError:
        """What to tell of a problem that ended the statement: for DS610 the reason, if one was
        given."""
        if problem.code != "DS610" or self.why is None:
            return problem
        why = replace(
            self.why, line=problem.line, column=problem.column, statement=problem.statement
        )
        why.done = getattr(problem, "done", [])  # type: ignore[attr-defined]
        return why

    def between(self) -> None:
        """As `check`, where a step is done and what follows it may as well be done by a later
        call."""
        self.check()


@dataclass
class Subscription:
    """A reader of one query's result rows.  The engine appends; the owner takes, in the engine's
    thread.

    `limit_bytes` bounds what may wait; past it the engine drops what waits, leaves one `end` push
    (DS620) and closes.  `told_bytes` is what messages call that limit, where it is only a part of
    the limit that the user has set.  `on_ready` is called (in the engine's thread) when something
    waits again after `take`.
    """

    query: str
    columns: tuple[Column, ...]
    limit_bytes: int = 64 << 20
    on_ready: Callable[[], None] | None = None
    waiting: list[Push | Chunk] = field(default_factory=list)
    pending_bytes: int = 0
    closed: bool = False
    reported_limit: int | None = None
    renamed: str | None = None  # what the query is called now, if no more `query`
    approximate: float | None = None  # groups may miss a threshold by that share
    share: Callable[[str], float | None] | None = None  # gives that of `Rows`, by query

    @property
    def source(self) -> str:
        """What the query is called now.  Its pushes bear the name that it was asked for by."""
        return self.renamed or self.query

    @property
    def pending(self) -> bool:
        """Whether anything waits."""
        return bool(self.waiting)

    def give(self, item: Push | Chunk) -> None:
        """The engine's side: queue a push or a chunk of result rows."""
        if self.closed:
            return
        if isinstance(item, Push) and item.kind == "progress" and self._at_progress():
            self.waiting[-1] = item
            return
        quiet = not self.waiting
        size = (
            item.nbytes
            if isinstance(item, Chunk)
            else (item.data.nbytes if item.data is not None else 0)
        )
        if self.pending_bytes and self.pending_bytes + size > self.limit_bytes:
            at = (
                "results wait unread, more than the limit of "
                f"{self.reported_limit or self.limit_bytes} bytes"
            )
            item, self.waiting, self.closed = (
                Push(self.query, -1, "end", None, None, None, at, "DS620"),
                [],
                True,
            )
            self.pending_bytes = 0
        self.waiting.append(item)
        self.pending_bytes += size
        if quiet and self.on_ready is not None:
            self.on_ready()

    def _at_progress(self) -> bool:
        last = self.waiting[-1] if self.waiting else None
        return isinstance(last, Push) and last.kind == "progress"

    def finish(self, code: str | None, message: str) -> None:
        """The engine's side: no more results will come."""
        self.give(Push(self.query, -1, "end", None, None, None, message, code))
        self.closed = True

    def take(self) -> list[Push]:
        """All that waits, as pushes, oldest first."""
        out: list[Push] = []
        types, share = tuple(c.type for c in self.columns), self.share_kept()
        for item in self.take_chunks():
            if isinstance(item, Chunk):
                pushes = item.pushes(self.query, types, self.approximate)
                out.extend(pushes if share is None else (replace(p, share=share) for p in pushes))
            elif item.data is not None:
                out.append(replace(item, types=types, approximate=self.approximate, share=share))
            else:
                out.append(item)
        return out

    def share_kept(self) -> float | None:
        """Which share of the rows that came its streams have kept by now; None: all."""
        return None if self.share is None else self.share(self.source)

    def take_changes(self) -> Changes:
        """All that waits, in columns."""
        return Changes.of(self.take_chunks(), self.columns, self.approximate, self.share_kept())

    def take_chunks(self) -> list[Push | Chunk]:
        """All that waits, result rows left columnar."""
        out, self.waiting, self.pending_bytes = self.waiting, [], 0
        return out
