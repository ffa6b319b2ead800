"""What a format is, and what becomes of a batch of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from dsms.api import IngestReport
from dsms.intake.convert import Converted, to_batch
from dsms_server.connectors.protocol import Messages, Option, Told
from dsms_server.decode import StreamShape

BESIDE = "_column"  # behind a word that the other side says beside messages: where it goes


@dataclass(slots=True)
class Decoded:
    """Rows of messages, for a stream of that shape; how many messages and rows were none, and what
    was wrong with one of them."""

    rows: Converted
    shape: StreamShape
    rejected: int = 0
    why: str | None = None

    @classmethod
    def of(
        cls, rows: Converted, shape: StreamShape, rejected: int = 0, why: str | None = None
    ) -> Decoded:
        """`why` of messages, or of the first row that does not fit."""
        if rows.refusals and why is None:
            why = str(rows.refusals[0])
        return cls(rows, shape, rejected + sum(r.count for r in rows.refusals), why)

    def refused(self, report: IngestReport) -> None:
        """What the stream has refused besides."""
        more = report.refused - sum(r.count for r in self.rows.refusals)
        if more > 0:
            self.rejected += more
            self.why = self.why or next(iter(report.reasons), None)


class Reading(ABC):
    """Messages -> rows.  `said`: what WITH says.  Any thread may use it, one at a time."""

    options: ClassVar[tuple[Option, ...]] = ()

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = said

    def decode(self, messages: Messages, shape: StreamShape) -> Decoded:
        """The rows in the physical types of the stream.  The same messages give the same number of
        rows, however they are put together."""
        if messages.rows is not None:
            columns = {field.name.casefold() for field in shape.schema}
            known = [name for name in messages.rows.column_names if name.casefold() in columns]
            return Decoded.of(to_batch(messages.rows.select(known), *target(shape)), shape)
        return self.rows_of(messages, shape)

    @abstractmethod
    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        """As `decode`, of `messages.bodies`."""

    def beside(self, messages: Messages) -> dict[str, Sequence[Any]]:
        """By column, what is said beside each message and wanted as a column of its row."""
        found = ((self.said.get(word + BESIDE), values) for word, values in messages.beside.items())
        return {column: values for column, values in found if column}


def target(shape: StreamShape) -> tuple[Any, str, tuple[str, ...]]:
    """What `to_batch` is told of a stream."""
    return shape.schema, shape.what, shape.computed


class Writing(ABC):
    """Result rows -> messages.  `said`: what WITH says; `changes`: rows also leave, so that each
    says whether it does, and when."""

    options: ClassVar[tuple[Option, ...]] = ()
    media: ClassVar[str] = "application/octet-stream"

    def __init__(self, said: Mapping[str, Any], changes: bool) -> None:
        self.said = said
        self.changes = changes

    def head(self, told: Told) -> bytes:
        """What stands before all rows of a file."""
        return b""

    @abstractmethod
    def lines(self, told: Told) -> list[bytes]:
        """A message for each row, without an end of line (or for all, of a format without rows)."""

    @abstractmethod
    def whole(self, told: Told) -> bytes:
        """All rows as one message."""

    def table(self, told: Told) -> pa.Table:
        """The rows, with `$sign` and `$at` behind them if they also leave."""
        if not self.changes:
            return told.rows
        ats = pa.array(told.ats, pa.int64()).cast(pa.timestamp("us"))
        table = told.rows.append_column("$sign", pa.array(told.signs, pa.int8()))
        return table.append_column("$at", ats)
