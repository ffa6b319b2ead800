"""What comes back: answers of statements and pushes of persistent queries, as rows or as
DataFrames.

Rows hold wire values: TIMESTAMP and INTERVAL are integers in microseconds, DECIMAL is text, NULL is
None.  `table()`, `pandas()` and `polars()` have the rich types (timestamps, durations, decimals).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsms.tabular.tables import Tabular, own_names, to_edge

if TYPE_CHECKING:
    import pyarrow

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The answer of a statement that has no rows."""

    message: str
    warnings: tuple[str, ...] = ()


class Data(Tabular):
    """Rows with named, typed columns; held as they came (rows or an Arrow IPC stream) and converted
    when asked."""

    __slots__ = ("_arrow", "_rows", "_table", "columns", "types")

    def __init__(
        self,
        columns: tuple[str, ...],
        types: tuple[str, ...],
        rows: Any = None,
        arrow: bytes | None = None,
    ) -> None:
        self.columns = columns
        self.types = types
        self._rows: list[Row] | None = None if rows is None else list(rows)
        self._arrow = arrow
        self._table: pyarrow.Table | None = None

    @classmethod
    def of_table(
        cls, columns: tuple[str, ...], types: tuple[str, ...], table: pyarrow.Table
    ) -> Data:
        """Of a table that `table()` would make."""
        made = cls(columns, types)
        made._table = table
        return made

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes as it is held."""
        if self._table is not None:
            return int(self._table.nbytes)
        return len(self._arrow) if self._arrow is not None else 100 * len(self._rows or ())

    @property
    def rows(self) -> list[Row]:
        """All rows as tuples of wire values."""
        if self._rows is None:
            from dsms_client.columns import batch_to_rows

            self._rows = batch_to_rows(self.table())
        return self._rows

    def table(self) -> pyarrow.Table:
        """An Arrow table; TIMESTAMP as ``timestamp[us]`` (UTC, naive), INTERVAL as
        ``duration[us]``.

        Each column has a name of its own: of two called k the second is ``k_1`` here
        (`dsms_client.names.unique`)."""
        if self._table is None:
            from dsms_client import columns

            if self._arrow is not None:
                table = columns.from_ipc(self._arrow)
                own = table.select(range(len(self.columns)))  # without the instants of a push
            else:
                batch = columns.rows_to_batch(self._rows or [], self.columns, self.types)
                own = to_edge(batch, self.types)
            self._table = own_names(own.rename_columns(list(self.columns)))
        return self._table

    arrow = table

    def instants(self) -> list[int] | None:
        """Each row's own instant, where an Arrow push gives them: in a last column."""
        if self._arrow is None:
            return None
        from dsms_client.columns import from_ipc

        table = from_ipc(self._arrow)
        return (
            table.column(len(self.columns)).to_pylist()
            if table.num_columns > len(self.columns)
            else None
        )

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        return self.table().num_rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


class RowSet(Data):
    """The answer of a SELECT, SHOW, DESCRIBE or EXPLAIN.

    as_of    the instant (microseconds) it holds at, or None
    waiting  accepted rows of the streams it reads that wait behind their clock, and so are not in
             it; None: it reads no stream
    since    the instant (microseconds) from which on it lacks no row of these streams: its windows
             reach back to rows that the server does not keep any more; None: it lacks none
    approximate  groups may miss a threshold of HAVING by that share of it; None: none does
    share    of the rows that came which its streams and joins have kept, where they shed; None: all
    """

    __slots__ = ("approximate", "as_of", "share", "since", "waiting")

    def __init__(self, message: Mapping[str, Any]) -> None:
        super().__init__(
            tuple(message["columns"]),
            tuple(message["types"]),
            message.get("rows"),
            message.get("arrow"),
        )
        self.as_of: int | None = message.get("as_of")
        self.waiting: int | None = message.get("waiting")
        self.since: int | None = message.get("since")
        self.approximate: float | None = message.get("approximate")
        self.share: float | None = message.get("share")

    def __repr__(self) -> str:
        return f"RowSet({len(self)} rows of {', '.join(self.columns)})"


Result = Done | RowSet


def result_of(message: Mapping[str, Any]) -> Result:
    """One entry of an `execute` reply."""
    if message["kind"] == "done":
        return Done(message["message"], tuple(message.get("warnings", ())))
    return RowSet(message)


@dataclass(frozen=True, slots=True)
class Push(Tabular):
    """Result rows of a persistent query.

    `seq` numbers the first row, the others follow without gaps (a snapshot's rows are not numbered:
    its `seq` is that of the next row).  `at` is the instant of the rows, in microseconds since the
    epoch; where they differ it is the last row's, and `instants` has each one's.  A boundary of a
    periodic query, and what one instant inserts or deletes, is one push; one that is too long for a
    frame comes in parts, all of which but the last have `more`.
    """

    query: str
    seq: int
    kind: str  # snapshot | insert | delete | result | progress | end
    at: int | None
    data: Data | None = None
    message: str | None = None
    code: str | None = None
    more: bool = False  # the next push has more rows of this kind and (last) instant
    approximate: float | None = None  # groups may miss a threshold of HAVING by that share of it
    share: float | None = None  # of the rows that came which its streams have kept; None: all

    @property
    def rows(self) -> list[Row]:
        return self.data.rows if self.data is not None else []

    @property
    def columns(self) -> tuple[str, ...]:
        return self.data.columns if self.data is not None else ()

    @property
    def instants(self) -> list[int | None]:
        """The instant of each row."""
        own = self.data.instants() if self.data is not None else None
        return list(own) if own is not None else [self.at] * len(self)

    @property
    def next_seq(self) -> int:
        """The number of the row that follows."""
        return self.seq + (len(self) if self.kind in ("insert", "delete", "result") else 0)

    def table(self) -> pyarrow.Table:
        return self._data().table()

    arrow = table

    def _data(self) -> Data:
        return self.data if self.data is not None else Data((), (), [])

    def __len__(self) -> int:
        return len(self.data) if self.data is not None else 0


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of the rows sent: accepted + late + refused + shed = rows sent, unless a frame,
    or its first part, was taken before a connection was lost."""

    accepted: int = 0
    late: int = 0
    refused: int = 0
    repeated: int = 0  # frames that a reconnect sent again and the server had applied before
    reasons: tuple[str, ...] = ()
    # of rows that were not taken, if they were asked for: reason (`late` among them) -> their
    # numbers, from 0
    positions: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    shed: int = 0  # dropped by the server, as rows came faster than they could be taken

    def __add__(self, other: IngestReport) -> IngestReport:
        reasons = tuple(dict.fromkeys((*self.reasons, *other.reasons)))
        return IngestReport(
            self.accepted + other.accepted,
            self.late + other.late,
            self.refused + other.refused,
            self.repeated + other.repeated,
            reasons,
            {
                reason: self.positions.get(reason, ()) + other.positions.get(reason, ())
                for reason in {**self.positions, **other.positions}
            },
            self.shed + other.shed,
        )


_PLACE = re.compile(r"(?<=: row )\d+(?=: )")


def report_of(message: Mapping[str, Any], first: int = 0) -> IngestReport:
    """The report in an `ingest` reply; `first`: number of the frame's first row in the data, to say
    which rows."""
    reasons = (
        _PLACE.sub(lambda n: str(int(n[0]) + first), reason, count=1)
        for reason in message.get("reasons", ())
    )
    return IngestReport(
        message.get("accepted", 0),
        message.get("late", 0),
        message.get("refused", 0),
        int(message.get("repeated", False)),
        tuple(reasons),
        {
            reason: tuple(first + row for row in rows)
            for reason, rows in message.get("positions", {}).items()
        },
        message.get("shed", 0),
    )
