"""What the binder and the engine know of declared objects: streams, tables, queries.

Names match in any case unless they were quoted; `Catalog` keys are case-folded for unquoted names
and exact otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dsms.sql import ast
from dsms.sql.expr import Expr
from dsms.sql.types import Schema

Option = str | int | float | bool


@dataclass(frozen=True, slots=True)
class StreamDef:
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
    def made(self) -> tuple[str, ...]:
        """The names of the computed columns."""
        return tuple(self.schema[i].name for i, _ in self.computed)

    @property
    def stamped(self) -> bool:
        """Whether its rows are stamped on arrival."""
        return self.timestamp is None and self.derived is None

    @property
    def durability(self) -> str:
        """none, interval or sync: when a row counts as kept, where there is a data folder."""
        return str(dict(self.options).get("durability", "interval"))


@dataclass(frozen=True, slots=True)
class TableDef:
    """A declared table; `key` are the column indices of the primary key (empty: none)."""

    name: str
    schema: Schema
    key: tuple[int, ...] = ()
    retroactive: bool = True
    sql: str = ""


@dataclass(frozen=True, slots=True)
class QueryDef:
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


INSTANT, NOTHING = -1, -2


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

    def __getstate__(self) -> dict[str, Any]:
        return {"streams": self.streams, "tables": self.tables, "queries": self.queries}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.plans = {}
        for name, value in state.items():
            setattr(self, name, value)

    @staticmethod
    def key(name: str, quoted: bool = False) -> str:
        """Where an identifier is found: case-folded unless quoted."""
        return name if quoted else name.casefold()

    def find(self, name: str, quoted: bool = False) -> StreamDef | TableDef | QueryDef | None:
        """The object of that name, of whatever kind.  A quoted name matches the declared spelling
        exactly."""
        for kind in (self.streams, self.tables, self.queries):
            found = kind.get(name.casefold())
            if found is not None and (not quoted or found.name == name):
                return found  # type: ignore[return-value]
        return None

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
        return [d.name for kind in (self.streams, self.tables, self.queries) for d in kind.values()]  # type: ignore[attr-defined]
