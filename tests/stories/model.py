"""What a story is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of a stream comes.  `at`: its timestamp, or when it arrives (system time); `values` in
    column order."""

    stream: str
    at: int
    values: Values


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat: no row with a timestamp <= `upto` follows on the stream (None: on any event-time
    stream)."""

    stream: str | None
    upto: int


@dataclass(frozen=True, slots=True)
class End:
    """The input of the stream (None: of every stream) has ended."""

    stream: str | None


@dataclass(frozen=True, slots=True)
class Clock:
    """The engine's own time moves on."""

    now: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that runs between rows, such as INSERT INTO a table."""

    sql: str


Event = Arrival | Beat | End | Clock | Statement


@dataclass(frozen=True, slots=True)
class Line:
    """A result row: at which instant it is pushed, + (insert), - (delete) or = (row of a periodic
    answer), its values; `!` stands for the end of the query, with the error's code as its value."""

    at: int | None
    sign: str
    values: Values


@dataclass(slots=True)
class Section:
    """A part of a story.

    kind     sql | query | input | pushes | rows | fails | explain
    name     of the query (query, pushes)
    body     statements or SELECT text (sql, query, rows, fails, explain)
    events   input
    lines    pushes and rows: what is expected
    text     fails: part of the message; explain: the plan
    source   the lines of the file, kept so that a file can be written back
    """

    kind: str
    name: str = ""
    body: str = ""
    events: list[Event] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    text: str = ""
    source: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Story:
    """`title` is the comment at the top; `flags` are words after `# only:` and the like, see
    golden/README.md."""

    title: str = ""
    sections: list[Section] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)

    def of(self, kind: str) -> Iterator[Section]:
        return (s for s in self.sections if s.kind == kind)

    def __repr__(self) -> str:
        return (
            f"<story of {len(list(self.events()))} events: "
            f"{' '.join(s.body for s in self.of('query'))}>"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would spell everything out

    def events(self) -> Iterator[Event]:
        for section in self.of("input"):
            yield from section.events
