"""What the binder and the engine know of declared objects: streams, tables, queries.

Names match in any case unless they were quoted; `Catalog` keys are case-folded for unquoted names
and exact otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dsms.sql import ast
from dsms.sql.expr import Expr
from dsms.sql.keyed import SUFFIX
from dsms.sql.types import Schema, Type

Option = str | int | float | bool


class Placed:
    """What a declared object is found by, whatever it is called.

    What is kept of it (rows, files, rights, the plans of its readers) goes by the name that it was
    made under; RENAME changes the name alone."""

    __slots__ = ()
    name: str
    place: str  # the name it was made under, if it has another one now, or that was in use

    @property
    def address(self) -> str:
        """A name whose key is that of the object: the one by which definitions speak of others."""
        return self.place or self.name

    @property
    def home(self) -> str:
        """The key by which the object is found."""
        return self.address.casefold()


@dataclass(frozen=True, slots=True)
class StreamDef(Placed):
    """A declared stream.  Durations are µs; `timestamp` is the column index of event time, None for
    system time."""

    name: str
    schema: Schema
    timestamp: int | None = None
    unit: str | None = None  # s | ms | us | ns: the unit of an INT timestamp column
    slack: int = 0
    late_into: str | None = None
    max_future: int | None = None
    idle_timeout: int | None = None
    subwindow: int | None = None
    retain: int | None = None
    index_by: tuple[int, ...] = ()  # columns over which its windows are indexed
    archive: bool = False
    archive_for: int | None = None
    archive_cluster: str | None = None
    archive_every: int | None = None
    confidential_for: int | None = None  # who has not the role sees rows when they are so old
    confidential_to: str | None = None
    options: tuple[tuple[str, Option], ...] = ()
    sql: str = ""
    derived: str | None = None  # the query that it was made with: its rows come from there
    computed: tuple[tuple[int, Expr], ...] = ()  # columns that are made of the others
    place: str = ""
    key: tuple[int, ...] = ()  # a row takes the place of that with its key (`dsms.sql.keyed`)
    current: str | None = None  # ... and the query that keeps what it holds
    weight: int | None = (
        None  # the column of a stream that may shed that says what a row stands for
    )

    @property
    def operation(self) -> int:
        """Where the column is, of a stream with KEY, that says what a row does."""
        return len(self.schema) - 1

    @property
    def shown(self) -> Schema:
        """The columns that FROM shows."""
        return self.schema[: self.operation] if self.key else self.schema

    @property
    def own(self) -> str | None:
        """The query that goes with it, of a derived stream and of one with KEY."""
        return self.current or self.derived

    @property
    def added(self) -> int:
        """How many columns at the end rows may leave out."""
        return sum(f.default is not None for f in self.schema)

    @property
    def given(self) -> Schema:
        """The columns that its rows bring, over which the computed ones are."""
        made = {i for i, _ in self.computed}
        return tuple(f for i, f in enumerate(self.schema) if i not in made) if made else self.schema

    @property
    def brought(self) -> Schema:
        """The columns that its rows bring from outside: what is given but for the weight."""
        if self.weight is None:
            return self.given
        made = {self.weight, *(i for i, _ in self.computed)}
        return tuple(f for i, f in enumerate(self.schema) if i not in made)

    @property
    def made(self) -> tuple[str, ...]:
        """The names of the columns that rows can't bring."""
        own = () if self.weight is None else (self.weight,)
        return tuple(self.schema[i].name for i in (*(i for i, _ in self.computed), *own))

    @property
    def stamped(self) -> bool:
        """Whether its rows are stamped on arrival."""
        return self.timestamp is None and self.derived is None

    @property
    def durability(self) -> str:
        """none, interval or sync: when a row counts as kept, where there is a data folder."""
        return str(dict(self.options).get("durability", "interval"))


@dataclass(frozen=True, slots=True)
class TableDef(Placed):
    """A declared table; `key` are the column indices of the primary key (empty: none)."""

    name: str
    schema: Schema
    key: tuple[int, ...] = ()
    retroactive: bool = True
    sql: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class QueryDef(Placed):
    """A registered persistent query: `sql` is the whole CREATE QUERY statement, `schema` its
    output, `on_lookup` whether it is answered by LOOKUP alone."""

    name: str
    sql: str
    schema: Schema = ()
    options: tuple[tuple[str, Option], ...] = ()
    on_lookup: bool = False
    archive: bool = False
    archive_for: int | None = None
    archive_cluster: str | None = None
    archive_every: int | None = None
    # the stream that it feeds, and what stands in each column there: a column of the query,
    # INSTANT, or NOTHING
    feeds: str | None = None
    places: tuple[int, ...] = ()
    over: tuple[str, ...] = ()  # names of the queries whose answers it reads,
    beside: tuple[str, ...] = ()  # ... and of the streams and tables that it reads beside them
    parameters: tuple[Type, ...] = ()  # what LOOKUP gives values for
    place: str = ""


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """A function of one's own, or an aggregate.

    parameters  names and types;  type: of what it gives
    body        the expression over its parameters that a call stands for, as text in which all that
                is called is built in
    sql         the whole statement that makes it
    python      module:name, of one in Python;  fingerprint: of its source, when it was made
    """

    name: str
    aggregate: bool
    parameters: tuple[tuple[str, Type], ...]
    type: Type
    body: str
    sql: str = ""
    python: str = ""
    fingerprint: str = ""

    @property
    def kind(self) -> str:
        """aggregate or function."""
        return "aggregate" if self.aggregate else "function"

    @property
    def home(self) -> str:
        """What it is owned and stored under; no other object's key has that end."""
        return f"{self.name.casefold()}\0()"

    @property
    def arguments(self) -> str:
        """``x INT, y FLOAT``"""
        return ", ".join(f"{name} {type_}" for name, type_ in self.parameters)

    @property
    def signature(self) -> str:
        """``f(x INT, y FLOAT)``"""
        return f"{self.name}({self.arguments})"


@dataclass(frozen=True, slots=True)
class ConnectorDef:
    """A source or a sink.

    kind       source | sink
    connector  what it speaks to: a word that the server knows (mqtt, webhook)
    object     address of the stream that it feeds, or of the query that it tells of
    options    names in small letters, and values; a secret is (place, key): ("env", "X")
    number     how many had been made before it: one that is made anew is another one
    paused     it does nothing until it is resumed
    """

    kind: str
    name: str
    connector: str
    object: str
    options: tuple[tuple[str, Option | tuple[str, str]], ...] = ()
    number: int = 0
    paused: bool = False

    @property
    def home(self) -> str:
        """What it is owned and stored under; no other object's key has that end."""
        return connector_home(self.kind, self.name)

    @property
    def writer(self) -> str:
        """The name under which a source numbers its frames: no session's has that beginning."""
        return f"\0source\x1f{self.name.casefold()}#{self.number}"


def connector_home(kind: str, name: str) -> str:
    """Where a source or sink of that name is."""
    return f"{name.casefold()}\0{kind}"


INSTANT, NOTHING = -1, -2
Made = TypeVar("Made", StreamDef, TableDef, QueryDef)


@dataclass(frozen=True, slots=True)
class View:
    """What a user sees of an object: some columns by name, each with what stands in its place
    (None: itself), of the rows that meet `where` (None: of all)."""

    columns: tuple[tuple[str, ast.Expr | None], ...]
    where: ast.Expr | None = None


@dataclass(slots=True)
class Catalog:
    """Declared objects by key; one name space for streams, tables and queries."""

    streams: dict[str, StreamDef] = field(default_factory=dict)
    tables: dict[str, TableDef] = field(default_factory=dict)
    queries: dict[str, QueryDef] = field(default_factory=dict)
    # the plans of those that run (`dsms.sql.logical.Output`), which their readers are bound to; a
    # query that has none here is bound anew, from its text.  Not stored
    plans: dict[str, Any] = field(default_factory=dict)
    # where objects may be that are not found by their names.  Not stored
    moved: dict[str, str] = field(default_factory=dict)
    # functions of one's own, which have names of their own: by name, in any case
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    # sources and sinks, by `ConnectorDef.home`, and how many have been made
    connectors: dict[str, ConnectorDef] = field(default_factory=dict)
    connected: int = 0

    def __getstate__(self) -> dict[str, Any]:
        kinds = ("streams", "tables", "queries", "functions", "connectors", "connected")
        return {kind: getattr(self, kind) for kind in kinds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.plans, self.moved, self.functions = {}, {}, {}
        self.connectors, self.connected = {}, 0
        for name, value in state.items():
            setattr(self, name, value)
        for found in self._all():
            self.moves(found)

    @staticmethod
    def key(address: str) -> str:
        """The key of an object that goes by that name, or has that address (`Placed.address`)."""
        return address.casefold()

    def key_of(self, name: str) -> str:
        """Where the object of that name is; if there is none, where one would be that is made."""
        key = name.casefold()
        for place in (key, self.moved.get(key, key)):
            found = self.at(place)
            if found is not None and found.name.casefold() == key:
                return place
        place, number = key, 1
        while self.at(place) is not None:
            number += 1
            place = f"{key}~{number}"
        return place

    def at(self, key: str) -> StreamDef | TableDef | QueryDef | None:
        """The object of that key, of whatever kind."""
        return self.streams.get(key) or self.tables.get(key) or self.queries.get(key)

    def called(self, address: str) -> str:
        """The name of the object that has the address."""
        found = self.at(self.key(address))
        return address if found is None else found.name

    def placed(self, made: Made) -> Made:
        """A definition that comes in: it has a place of its own where its name leads to another
        object."""
        key = self.key_of(made.name)
        if key != made.home:
            made = replace(made, place=key)
        self.moves(made)
        return made

    def moves(self, found: StreamDef | TableDef | QueryDef) -> None:
        """Note where the object is, if its name does not say so."""
        if found.home != found.name.casefold():
            self.moved[found.name.casefold()] = found.home

    def _all(self) -> Iterator[StreamDef | TableDef | QueryDef]:
        for kind in (self.streams, self.tables, self.queries):
            yield from kind.values()  # type: ignore[attr-defined]

    def find(self, name: str, quoted: bool = False) -> StreamDef | TableDef | QueryDef | None:
        """The object of that name, of whatever kind.  A quoted name matches the declared spelling
        exactly."""
        found = self.at(self.key_of(name))
        return found if found is not None and (not quoted or found.name == name) else None

    @property
    def user(self) -> str | None:
        """Who asks; None: nobody of whom the engine knows, who sees all of everything."""
        return None

    @property
    def sees_all(self) -> bool:
        """Whether he may know of everything."""
        return True

    def views(
        self, found: StreamDef | TableDef | QueryDef, at: ast.Node
    ) -> tuple[View, ...] | None:
        """What the user may read of an object that stands in FROM: what any of these shows; None:
        the whole of it."""
        return None

    def attached(self, key: str) -> list[ConnectorDef]:
        """The sources of a stream, the sinks of a query."""
        return [c for c in self.connectors.values() if self.key(c.object) == key]

    def whose(self, query: QueryDef) -> StreamDef | None:
        """The stream that the query goes with (`StreamDef.own`)."""
        into = self.streams.get(self.key(query.feeds or ""))
        if into is not None and self.key(into.derived or "") == query.home:
            return into
        if not query.name.endswith(SUFFIX):
            return None
        keyed = (s for s in self.streams.values() if s.current is not None)
        return next((s for s in keyed if self.key(s.current or "") == query.home), None)

    def current(self, stream: StreamDef) -> QueryDef | None:
        """The query that keeps what a stream with KEY holds."""
        return self.queries.get(self.key(stream.current or ""))

    def seen_after(self, found: StreamDef | TableDef | QueryDef) -> int:
        """µs after its timestamp at which the user sees a row of it; 0: at once."""
        return 0

    def sees_late(self, streams: Iterable[str]) -> bool:
        """Whether the user sees rows of any of these streams (by key) late, so that numbers of
        rows, which tell of young ones, are not for him."""
        return False

    def columns(self, found: StreamDef | TableDef | QueryDef) -> Schema:
        """The columns of which the user may know."""
        return found.schema

    def hides(self, name: str) -> bool:
        """Whether the name is taken by something that the user does not see."""
        return False

    def names(self) -> list[str]:
        """Declared names as spelled, streams first."""
        return [found.name for found in self._all()]
