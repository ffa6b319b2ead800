"""What a story's statements declare: streams and tables with their columns, queries with their
bound plans."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder import bind_create_function, bind_query, expanded
from dsms.sql.binder.definitions import bind_create_stream, bind_create_table
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.logical import Output
from dsms.sql.parser import parse, parse_one
from dsms.sql.types import Kind, Type
from tests.stories import cells
from tests.stories.model import Arrival

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Declared:
    """Grows with the statements of a story."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.queries: dict[str, Output] = {}

    def run(self, sql: str) -> None:
        """Take in the definitions among the statements."""
        for statement in parse(sql):
            match statement:
                case ast.CreateStream():
                    found = bind_create_stream(statement, self.catalog)
                    self.catalog.streams[self.catalog.key(found.name)] = found
                case ast.CreateTable():
                    table = bind_create_table(statement, self.catalog)
                    self.catalog.tables[self.catalog.key(table.name)] = table
                case ast.CreateFunction():
                    made = bind_create_function(statement, self.catalog)
                    self.catalog.functions[made.name.casefold()] = made
                case _:
                    pass

    def register(self, name: str, sql: str) -> Output:
        """Bind the SELECT of a persistent query."""
        statement = expanded(parse_one(sql), self.catalog)
        assert isinstance(statement, ast.SelectStatement), "a `query` section holds a SELECT"
        self.queries[name] = bind_query(statement, self.catalog)
        return self.queries[name]

    def types_of(self, query: str) -> list[Type]:
        return [f.type for f in self.queries[query].schema]

    def stream(self, name: str) -> StreamDef:
        return self.catalog.streams[self.catalog.key(name)]

    def arrival(self, name: str, at: int, texts: list[str]) -> Arrival:
        """A row from its timestamp and the cells of its other columns."""
        stream = self.stream(name)
        types = [f.type for i, f in enumerate(stream.schema) if i != stream.timestamp]
        values = list(cells.row(texts, types))
        if stream.timestamp is not None:
            values.insert(stream.timestamp, timestamp(stream, at))
        return Arrival(stream.name, at, tuple(values))

    def shown_arrival(self, event: Arrival) -> str:
        stream = self.stream(event.stream)
        kept = [i for i in range(len(stream.schema)) if i != stream.timestamp]
        return cells.shown_row(
            tuple(event.values[i] for i in kept), [stream.schema[i].type for i in kept]
        )


def timestamp(stream: StreamDef, at: int) -> int:
    """The instant in the unit of the stream's timestamp column."""
    assert stream.timestamp is not None
    if stream.schema[stream.timestamp].type.kind is Kind.INT:
        return at * PER_SECOND[stream.unit or "us"] // 10**6
    return at
