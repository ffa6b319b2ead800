"""What a persistent query answers right now, kept from its changes."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from dsms_client import Changes, Client
from dsms_client.sync import ChangesReader

Row = tuple[Any, ...]


@dataclass(slots=True)
class View:
    """A query's answer as a bag of rows; what came last, as (instant, + or -, row); all that ever
    entered: `news`.

    Of a periodic query the bag is the answer of the last boundary, and `answers` has those before
    it, by boundary."""

    reader: ChangesReader
    rows: Counter[Row] = field(default_factory=Counter)
    news: list[Row] = field(default_factory=list)
    latest: deque[tuple[int | None, str, Row]] = field(default_factory=lambda: deque(maxlen=10))
    answers: dict[int, list[Row]] = field(default_factory=dict)
    seen: int = 0  # result rows
    next_seq: int = 0  # the number of the row that follows them

    def apply(self, changes: Changes) -> None:
        """Take changes in.  Raises ValueError if they delete what is not there: that must never
        come."""
        at, rows = changes.at, changes.rows
        match changes.kind:
            case "snapshot":
                self.rows = Counter(rows)
            case "progress":
                assert at is not None
                self._answer(at, [])
            case "end":
                raise ValueError(f"{changes.query} ended: {changes.message}")
            case _:
                marks = zip(changes.sign.tolist(), changes.ats.to_pylist(), rows, strict=True)
                for sign, group in groupby(marks, key=itemgetter(0)):
                    self._take(changes.query, sign, [(at, row) for _, at, row in group])
                self.seen += len(changes)
        self.next_seq = changes.next_seq

    def _take(self, query: str, sign: int, rows: list[tuple[int, Row]]) -> None:
        """Rows of one sign."""
        if sign == 0:
            for at, group in groupby(rows, key=itemgetter(0)):
                self._answer(at, [row for _, row in group])
            return
        values = [row for _, row in rows]
        if sign > 0:
            self.rows.update(values)
            self.news += values
        else:
            self.rows.subtract(values)
            if any(n < 0 for n in self.rows.values()):
                raise ValueError(f"{query} took back rows that it never gave: {-self.rows}")
            self.rows = +self.rows
        self.latest.extend((at, "+" if sign > 0 else "-", row) for at, row in rows)

    def _answer(self, at: int, rows: list[Row]) -> None:
        """Rows of a boundary: of many they come in several parts."""
        answer = self.answers.setdefault(at, [])
        answer += rows
        self.rows = Counter(answer)

    def answer(self) -> list[Row]:
        """The rows in an order fit to be read."""
        return sorted(self.rows.elements(), key=repr)


def watch(client: Client, names: list[str]) -> dict[str, View]:
    """Subscribe to queries."""
    return {name: View(client.changes(name)) for name in names}


def catch_up(client: Client, views: dict[str, View], patience: float = 20.0) -> None:
    """Take changes until each view has all rows that its query has answered so far.  Raises
    TimeoutError."""
    status = client.query("SHOW QUERIES")
    name, count = status.columns.index("query"), status.columns.index("result_rows")
    for row in status.rows:
        view = views.get(row[name])
        while view is not None and view.next_seq < row[count]:
            changes = view.reader.next(timeout=patience)
            if changes is not None:
                view.apply(changes)
