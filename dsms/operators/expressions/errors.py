"""The error policy of expressions: a row that fails becomes NULL and is counted, or the query
ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dsms.errors import QueryError
from dsms.operators.expressions.made import Texts

LARGEST = 2**31 - 1  # bytes of text that one column of a batch holds

ZERO = "DS701"  # division by zero
RANGE = "DS702"  # a result outside its type
CAST = "DS703"  # a value that a cast can't turn into the type asked for
DOMAIN = "DS704"  # a function asked outside where it is defined
ARGUMENT = "DS705"  # a pattern, a count or a size that makes no sense

BEYOND_YEARS = "there are no other instants: leave such rows out, or use CASE"
BEYOND_LENGTHS = "an INTERVAL has 64 bits of microseconds: leave such rows out, or use CASE"

_HINTS = {
    ZERO: "guard the divisor: x / NULLIF(y, 0)",
    RANGE: "cast to a wider type first: FLOAT, or DECIMAL(38, s)",
    CAST: "filter such rows out first, or use CASE",
    DOMAIN: "guard the argument with CASE",
}


@dataclass(slots=True)
class ErrorCounter:
    """Counts rows that failed, under `WITH (on_error = null | stop)`.

    `null`: the row's value is NULL and `count` grows; `first` is the first complaint.  `stop`:
    QueryError at once.

    room   bytes of text that an expression may make for one batch; past it, an error with the code
           `full`
    texts  what the evaluation under way has made
    to     others that count the same rows: this is the counter of one operator of theirs
    """

    mode: Literal["null", "stop"] = "null"
    count: int = 0
    first: str | None = None
    by_code: dict[str, int] = field(default_factory=dict)
    room: int = LARGEST
    full: str = "DS630"
    texts: Texts | None = field(default=None, compare=False)
    to: list[ErrorCounter] = field(default_factory=list, compare=False)

    @classmethod
    def once(cls, room: int) -> ErrorCounter:
        """Of a statement, which a failing row ends, as more than so many bytes of text do
        (DS633)."""
        return cls("stop", room=min(room, LARGEST), full="DS633")

    @classmethod
    def of_query(cls, room: int, mode: str = "null") -> ErrorCounter:
        """Of a persistent query that may keep so many bytes (DS630)."""
        return cls("stop" if mode == "stop" else "null", room=min(room, LARGEST))

    def probe(self) -> ErrorCounter:
        """Another one, that only counts, in the same evaluation."""
        return ErrorCounter(room=self.room, full=self.full, texts=self.texts)

    def of_operator(self) -> ErrorCounter:
        """One for an operator, whose rows are counted here, too."""
        return ErrorCounter(self.mode, room=self.room, full=self.full, to=[self])

    def merge(self, other: ErrorCounter) -> None:
        """Count what another has counted."""
        for counter in self.to:
            counter.merge(other)
        self.count += other.count
        self.first = self.first or other.first
        for code, rows in other.by_code.items():
            self.by_code[code] = self.by_code.get(code, 0) + rows

    def add(self, rows: int, code: str, message: str, hint: str | None = None) -> None:
        """`rows` rows failed with that complaint (0: nothing happens); `hint`: instead of the
        code's."""
        if not rows:
            return
        if self.mode == "stop":
            raise QueryError(code, message, hint=hint or _HINTS.get(code))
        self.count += rows
        self.first = self.first or f"{code}: {message}"
        self.by_code[code] = self.by_code.get(code, 0) + rows
        for counter in self.to:
            counter.add(rows, code, message, hint)
