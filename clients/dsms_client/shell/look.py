"""How somebody looks at the live view: sorted by a column, only rows with a text, and with the
course of its numbers over the last pushes.

    > < (or arrows)  sort by the next column, or the one before; behind the last one: not at all
    r                the other direction
    /text Enter      only rows that have the text in some column, in any case; / Enter: all
    s                the course of the numeric columns, or none
    q                leave
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dsms_client.shell import show

KEYS = "> < sort, r reverse, / filter, s course, q leave"
MOST = 10_000  # rows that are looked at for sorting, filters and courses
PUSHES = 24  # that a course is drawn of
BARS = "▁▂▃▄▅▆▇█"
ARROWS = {"\x1b[C": ">", "\x1b[D": "<", "\x1b[A": "r", "\x1b[B": "r"}
Rows = Sequence[Sequence[Any]]


@dataclass(slots=True)
class Look:
    """`column` (its number) is sorted by, or None; `courses` are means of the numeric columns, a
    line a push, None while they are not shown."""

    types: Sequence[str]
    column: int | None = None
    down: bool = False
    text: str = ""
    typing: bool = False
    left: bool = False
    courses: deque[list[float | None]] | None = None

    @property
    def is_plain(self) -> bool:
        """Rows are shown as they are."""
        return self.column is None and not self.text and self.courses is None

    def keys(self, typed: str) -> None:
        """Take in what was typed."""
        for arrow, key in ARROWS.items():
            typed = typed.replace(arrow, key)
        for key in typed:
            self._type(key) if self.typing else self._key(key)

    def _type(self, key: str) -> None:
        if key in "\r\n":
            self.typing = False
        elif key in "\x7f\b":
            self.text = self.text[:-1]
        elif key == "\x1b":
            self.text, self.typing = "", False
        elif key.isprintable():
            self.text += key

    def _key(self, key: str) -> None:
        match key:
            case ">" | "<":
                places: list[int | None] = [None, *range(len(self.types))]
                step = 1 if key == ">" else -1
                self.column = places[(places.index(self.column) + step) % len(places)]
            case "r":
                self.down = not self.down
            case "/":
                self.text, self.typing = "", True
            case "s":
                self.courses = deque(maxlen=PUSHES) if self.courses is None else None
            case "q":
                self.left = True

    def chosen(self, rows: Rows) -> Rows:
        """The rows with the text, in order; NULL stands last.  Equal ones stay as they came."""
        if self.text:
            sought = self.text.casefold()
            rows = [row for row in rows if self._has(row, sought)]
        if self.column is None:
            return rows
        at, number = self.column, self.types[self.column].startswith("DECIMAL")
        value: Callable[[Any], Any] = Decimal if number else lambda found: found
        there = [row for row in rows if row[at] is not None]
        there.sort(key=lambda row: _ordered(value(row[at])), reverse=self.down)
        return [*there, *(row for row in rows if row[at] is None)]

    def _has(self, row: Sequence[Any], sought: str) -> bool:
        return any(
            sought in show.shown(value, sql).casefold()
            for value, sql in zip(row, self.types, strict=True)
        )

    def note(self, rows: Rows) -> None:
        """A push has come, and these rows are chosen: their means go on the courses."""
        if self.courses is not None:
            columns = zip(*rows, strict=True) if rows else [()] * len(self.types)
            means = [
                _mean(values) if show.is_number(sql) else None
                for values, sql in zip(columns, self.types, strict=True)
            ]
            self.courses.append(means)

    def course(self, column: int) -> str:
        """The last means of a column as bars, the lowest and the highest of them at the ends."""
        means = [line[column] for line in self.courses or ()]
        there = [mean for mean in means if mean is not None]
        if not there:
            return ""
        low, span = min(there), max(there) - min(there)
        heights = [
            None if mean is None else int((mean - low) / span * (len(BARS) - 1)) if span else 0
            for mean in means
        ]
        return "".join(" " if height is None else BARS[height] for height in heights)

    def mark(self, column: int) -> str:
        """What stands behind the name of a column."""
        return "" if column != self.column else " ▼" if self.down else " ▲"

    def status(self, total: int, looked: int, chosen: int, shown: int) -> str:
        """The line below the table: how many of `total` rows stand not in it, and why."""
        said = []
        if self.text or self.typing:
            said.append(f"/{self.text}{'_' if self.typing else ''}: {chosen:,} of {looked:,} rows")
        if total > looked and not self.is_plain:
            said.append(f"of the first {looked:,} of {total:,} rows")
        if chosen > shown:
            said.append(f"… {chosen - shown:,} more row{'' if chosen - shown == 1 else 's'}")
        return "   ".join([*said, KEYS])


def _ordered(value: Any) -> Any:
    """NaN stands above all numbers."""
    return (value != value, value)


def _mean(values: Sequence[Any]) -> float | None:
    numbers = [float(value) for value in values if value is not None]
    found = sum(numbers) / len(numbers) if numbers else None
    return found if found is not None and abs(found) < float("inf") else None


@contextlib.contextmanager
def typed() -> Iterator[Callable[[], str]]:
    """Gives what has been typed since it was asked last; nothing where no terminal is."""
    try:
        import termios
        import tty

        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (ImportError, OSError, ValueError, AttributeError, termios.error):
        yield lambda: ""
        return
    try:
        tty.setcbreak(file)
        yield lambda: _waiting(file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _waiting(file: int) -> str:
    found = b""
    while select.select([file], [], [], 0)[0] and (part := os.read(file, 1024)):
        found += part
    return found.decode(errors="replace")
