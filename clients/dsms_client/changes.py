"""Changes of a query's answer in columns: rows that enter, leave or are part of a periodic answer,
in order, each with its sign and instant.

They come so from a server that knows pushes of the kind `changes`; those of others are put into the
same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.tabular.names import unique
from dsms.tabular.tables import AT, SIGN, Tabular, signed
from dsms_client import columns as arrow
from dsms_client.results import Data, Row

SIGNS = {"snapshot": 1, "insert": 1, "delete": -1, "result": 0}


@dataclass(frozen=True, slots=True)
class Changes(Tabular):
    """Rows that a query was told to have: `seq` numbers the first one.

    kind  changes   numbered rows of all kinds
          snapshot  the answer as it was when the subscription began: not numbered
          progress  no rows: all up to the instant `at` has been told
          end       no rows: nothing more will come
    at    the instant (µs) of the last row; None: before any clock
    data  the rows, without sign and instant
    sign  int8[n]: 1 enters, -1 leaves, 0 is part of a periodic answer
    ats   int64 array of each row's instant, null before any clock
    more  the next push goes on with the last instant
    conflated  it is the net change since the last one; its rows have no numbers, `seq` is that of
          the row that follows
    approximate  groups may miss a threshold of HAVING by that share of it
    share  of the rows that came which its streams have kept; None: all
    """

    query: str
    seq: int
    kind: str
    at: int | None
    data: Data
    sign: np.ndarray
    ats: pa.Array
    message: str | None = None
    code: str | None = None
    more: bool = False
    conflated: bool = False
    approximate: float | None = None
    share: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.data.columns

    @property
    def types(self) -> tuple[str, ...]:
        return self.data.types

    @property
    def rows(self) -> list[Row]:
        """The values of each row."""
        return self.data.rows

    @property
    def next_seq(self) -> int:
        """The number of the row that follows."""
        numbered = self.kind == "changes" and not self.conflated
        return self.seq + (len(self) if numbered else 0)

    def head(self, count: int) -> Changes:
        """The first `count` rows."""
        if count >= len(self):
            return self
        data = Data.of_table(self.columns, self.types, self.data.table().slice(0, count))
        ats = self.ats.slice(0, count)
        at = ats[-1].as_py() if count else self.at
        return replace(self, at=at, data=data, sign=self.sign[:count], ats=ats)

    def table(self) -> pa.Table:
        """The rows with two more columns, `$sign` and `$at`, as an Arrow table."""
        return signed(self.data.table(), self.sign, self.ats)

    arrow = table

    def __len__(self) -> int:
        return len(self.sign)


def changes_of(
    message: Mapping[str, Any],
    query: str,
    columns: tuple[str, ...],
    types: tuple[str, ...],
    approximate: float | None = None,
) -> Changes:
    """The changes in a push, whatever its kind.  Raises DS510 for one that isn't whole."""
    raw, kind = message["data"], message["kind"]
    if isinstance(raw, bytes | memoryview):
        data, sign, ats = _of_arrow(raw, columns, types)
    else:
        data = Data(columns, types, raw or [])
        sign, ats = message.get("signs"), message.get("ats")
    n = len(data)
    if sign is None:
        sign = np.full(n, SIGNS.get(kind, 0), np.int8)
    if ats is None:
        ats = pa.array([message["at"]], pa.int64()).take(pa.array(np.zeros(n, np.int64)))
    sign, ats = np.asarray(sign, np.int8), pa.array(ats, pa.int64()) if n else _NONE
    if not n == len(sign) == len(ats):
        raise UsageError("DS510", f"{n} rows came with {len(sign)} signs and {len(ats)} instants")
    return Changes(
        query,
        message["seq"],
        "changes" if kind in ("insert", "delete", "result") else kind,
        message["at"],
        data,
        sign,
        ats,
        message.get("message"),
        message.get("code"),
        message.get("more", False),
        message.get("conflated", False),
        approximate,
        message.get("share"),
    )


_NONE = pa.array([], pa.int64())


def _of_arrow(
    raw: bytes | memoryview, columns: tuple[str, ...], types: tuple[str, ...]
) -> tuple[Data, np.ndarray | None, pa.Array | None]:
    table = arrow.from_ipc(raw).combine_chunks()
    beside = {table.field(k).name: table.column(k) for k in range(len(columns), table.num_columns)}
    sign = beside[SIGN].to_numpy() if SIGN in beside else None
    ats = beside[AT].combine_chunks() if AT in beside else None
    own = table.select(range(len(columns))).rename_columns(list(unique(columns)))
    return Data.of_table(columns, types, own), sign, ats
