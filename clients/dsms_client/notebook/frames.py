"""What a live widget shows: the present of a query, cut to what a screen holds, and lines of its
numbers over time.  Plain values, for JSON."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from dsms.tabular.names import unique
from dsms.tabular.texts import cell, instant
from dsms_client.changes import Changes
from dsms_client.results import Data
from dsms_client.view import View

POINTS, LINES = 300, 12  # of a chart
CHARACTERS = 120  # of a cell
NUMBERS = ("INT", "FLOAT", "DECIMAL")


class Frames:
    """The state of a widget: `add` takes changes in, `frame` is what is to be shown now.

    rows    that the table shows at most
    keeps   the query has an answer that is kept up (an Rstream); else the newest rows are shown
    """

    def __init__(
        self, columns: Sequence[str], types: Sequence[str], rows: int, keeps: bool
    ) -> None:
        self.columns, self.types, self.rows = tuple(unique(columns)), tuple(types), rows
        self.at: int | None = None
        self.changes = 0
        self.message: str | None = None
        self._view = View(self.columns, self.types) if keeps else None
        self._newest: deque[tuple[Any, ...]] = deque(maxlen=rows)
        self._lines: dict[str, deque[tuple[int, float]]] = {}
        kinds = [sql.partition("(")[0] for sql in types]
        self._numbers = [k for k, kind in enumerate(kinds) if kind in NUMBERS]
        self._names = [k for k, kind in enumerate(kinds) if kind in ("STRING", "BOOL")]

    def add(self, changes: Changes) -> None:
        """Take changes in; of an answer its rows as they are then are points of the lines."""
        self.at = self.at if changes.at is None else changes.at
        if changes.kind == "end":
            self.message = changes.message or "the query has ended"
            return
        self.changes += len(changes)
        if self._view is not None:
            self._view.add(changes)
            if self.at is not None:
                self._points((row, self.at) for row in self._view.head(LINES))
            return
        self._newest.extend(changes.rows[-self.rows :])
        ats = changes.ats.to_pylist()[-POINTS:]
        self._points(zip(changes.rows[-POINTS:], ats, strict=True))

    def frame(self) -> dict[str, Any]:
        """What is to be shown."""
        rows = self._view.head(self.rows) if self._view is not None else list(self._newest)
        count = len(self._view) if self._view is not None else self.changes
        return {
            "columns": list(self.columns),
            "numbers": self._numbers,
            "rows": [list(map(_text, row, self.types)) for row in rows],
            "count": count,
            "kept": self._view is not None,
            "at": None if self.at is None else instant(self.at),
            "lines": [{"name": name, "points": list(p)} for name, p in self._lines.items()],
            "message": self.message,
        }

    def _points(self, rows: Any) -> None:
        """A point for each number of each row, in the line of its name."""
        for row, at in rows:
            who = " ".join(str(row[k]) for k in self._names)
            for k in self._numbers:
                value = None if row[k] is None else float(row[k])
                name = f"{who} {self.columns[k]}".strip()[:CHARACTERS]
                known = name in self._lines or len(self._lines) < LINES
                if at is not None and value is not None and math.isfinite(value) and known:
                    line = self._lines.setdefault(name, deque(maxlen=POINTS))
                    if line and line[-1][0] == at:
                        line.pop()
                    line.append((at, value))


def _text(value: Any, sql: str) -> str:
    text = cell(value, sql)
    return text if len(text) <= CHARACTERS else text[:CHARACTERS] + "…"


def of_engine(query: str, told: Any) -> Iterator[Changes]:
    """Changes of an engine in this process (`dsms.api.Changes`), as a client has them."""
    columns = tuple(c.name for c in told.columns)
    types = tuple(c.type for c in told.columns)
    whole = told.arrow()
    own = whole.select(range(len(columns)))
    sign = whole.column(len(columns)).to_numpy()
    ats = whole.column(len(columns) + 1).cast(pa.int64()).combine_chunks()

    def part(kind: str, start: int, stop: int, at: int | None) -> Changes:
        data = Data.of_table(columns, types, own.slice(start, stop - start))
        return Changes(query, -1, kind, at, data, sign[start:stop], ats.slice(start, stop - start))

    first, last = whole.num_rows - len(told), whole.num_rows
    if told.snapshot is not None:
        yield part("snapshot", 0, first, told.snapshot.at)
    if len(told):
        yield part("changes", first, last, told.rows.at[-1].item())
    periodic = not len(told) or not sign[-1]
    if periodic and told.upto is not None and (not len(told) or told.upto > told.rows.at[-1]):
        yield part("progress", last, last, told.upto)
    if told.end is not None:
        end = part("end", last, last, None)
        yield replace(end, message=told.end.message, code=told.end.code)
