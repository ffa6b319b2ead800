"""PostgreSQL.

Source.  Rows of a table or query whose `cursor` column has grown, asked for every so often, or
when NOTIFY says so; the position is the highest value that came.  Exactly once for values that
only grow and become visible in their order; a row that is committed later than one with a higher
value is missed.

Sink.  Rows of Istream are appended; a view is kept as a table: with `key` its rows are replaced by
their keys, without it they come and go as they are.  The number of the next result row is kept in
the table dsms_sinks, in the same transaction: exactly once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dsms_server.connectors.protocol import (
    Connector,
    Failed,
    Messages,
    Option,
    Place,
    Sink,
    Source,
    Told,
    Unreachable,
)

NUMBERS = "dsms_sinks"
CONNECTION = (
    Option("url", "postgresql://host:5432/database", needed=True),
    Option("user", "who connects"),
    Option("password", "of that user", "secret"),
)
TYPES = {
    "BOOL": "boolean",
    "INT": "bigint",
    "FLOAT": "double precision",
    "STRING": "text",
    "BYTES": "bytea",
    "TIMESTAMP": "timestamptz",
    "INTERVAL": "interval",
}


async def connection(said: Mapping[str, Any], autocommit: bool) -> Any:
    """Raises Unreachable, Failed."""
    import psycopg

    more = {"user": said["user"], "password": said["password"]}
    given = {name: value for name, value in more.items() if value}
    try:
        return await psycopg.AsyncConnection.connect(
            said["url"], autocommit=autocommit, connect_timeout=10, **given
        )
    except psycopg.Error as problem:
        raise refused(problem) from None


def refused(problem: Any) -> Exception:
    """What users are told of an error of the library's."""
    import psycopg

    state, text = problem.sqlstate or "", str(problem).strip()
    if isinstance(problem, psycopg.ProgrammingError) or state[:2] in ("28", "3D", "22", "23", "42"):
        return Failed("DS665", text)
    if "password authentication failed" in text or "does not exist" in text:
        return Failed("DS665", text)
    return Unreachable("DS664", text)


class PostgresSource(Source):
    """Rows that have grown."""

    needs_format = False
    options = (
        *CONNECTION,
        Option("table", "that is read; a query in parentheses may stand there", needed=True),
        Option("cursor", "the column whose values grow", needed=True),
        Option("every", "between two questions", "length", default=1.0),
        Option("listen", "the channel whose NOTIFY says that there is more"),
        Option("rows", "that are asked for at once", "whole", default=10_000),
        Option("begin", "with which row, first", default="start", words=("start", "end")),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._db: Any = None
        self._ear: Any = None

    async def open(self, position: Any) -> Any:
        from psycopg import Error, sql

        said = self.said
        self._db = await connection(said, autocommit=True)
        table = said["table"]
        self._from = sql.SQL(f"{table} AS dsms" if table.startswith("(") else table)
        self._cursor = sql.Identifier(said["cursor"])
        try:
            self._type = await self._type_of_cursor()
            if said["listen"]:
                self._ear = await connection(said, autocommit=True)
                await self._ear.execute(sql.SQL("LISTEN {}").format(sql.Identifier(said["listen"])))
            if position is None and said["begin"] == "end":
                ask = sql.SQL("SELECT max({})::text FROM {}").format(self._cursor, self._from)
                position = (await (await self._db.execute(ask)).fetchone())[0]
        except Error as problem:
            raise refused(problem) from None
        self._at = position
        return position

    async def _type_of_cursor(self) -> str:
        from psycopg import sql

        ask = sql.SQL("SELECT {} FROM {} LIMIT 0").format(self._cursor, self._from)
        about = (await self._db.execute(ask)).description[0]
        ask = sql.SQL("SELECT format_type({}, NULL)").format(sql.Literal(about.type_code))
        found: str = (await (await self._db.execute(ask)).fetchone())[0]
        return found

    async def read(self) -> AsyncIterator[Messages]:
        from psycopg import Error

        while True:
            try:
                found = await self._more()
                if found is None:
                    self.lag = 0
                    await self._wait()
                    continue
            except Error as problem:
                raise refused(problem) from None
            yield Messages((), self._at, rows=found)

    async def _more(self) -> pa.Table | None:
        """Rows behind the position, those of one value of the cursor together."""
        from psycopg import sql

        behind = "{c} IS NOT NULL" if self._at is None else "{c} > {at}::" + self._type
        form = "SELECT *, {c}::text AS dsms_cursor FROM {t} WHERE " + behind
        ask = sql.SQL(form + " ORDER BY {c} FETCH FIRST {n} ROWS WITH TIES").format(
            c=self._cursor, t=self._from, at=sql.Literal(self._at), n=sql.Literal(self.said["rows"])
        )
        answer = await self._db.execute(ask)
        rows = await answer.fetchall()
        if not rows:
            return None
        self._at = rows[-1][-1]
        names = [column.name for column in answer.description[:-1]]
        return await self.apart(_table, names, rows)

    async def _wait(self) -> None:
        """For a while, or until there is said to be more."""
        if self._ear is None:
            await asyncio.sleep(self.said["every"])
            return
        async for _ in self._ear.notifies(timeout=self.said["every"], stop_after=1):
            return

    async def close(self) -> None:
        for one in (self._db, self._ear):
            if one is not None:
                await one.close()


def _table(names: list[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of Python values; the column behind the last name is none."""
    columns = list(zip(*rows, strict=True))[: len(names)]
    arrays = []
    for values in columns:
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, ValueError):  # what Arrow has no type for: as text
            arrays.append(pa.array([None if v is None else str(v) for v in values]))
    return pa.Table.from_arrays(arrays, names)


class PostgresSink(Sink):
    """A table that follows a query."""

    needs_format = False
    options = (
        *CONNECTION,
        Option("table", "that is written; made if it is not there", needed=True),
        Option("key", "columns by which rows of a view are replaced, behind commas"),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._db: Any = None
        self.at_once = 50_000

    async def open(self, note: Any) -> int | None:
        from psycopg import Error, sql
        from psycopg.errors import UniqueViolation

        names = [name for name, _ in self.place.columns]
        key = [part.strip() for part in (self.said["key"] or "").split(",") if part.strip()]
        if unknown := [name for name in key if name not in names]:
            raise Failed("DS665", f"key: the query has no column {unknown[0]}")
        self._names, self._key = names, key
        self._db = await connection(self.said, autocommit=False)
        self._table = sql.Identifier(*self.said["table"].split("."))
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_of(kind)))
            for name, kind in self.place.columns
        )
        try:
            await self._db.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self._table, columns)
            )
            await self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {NUMBERS} "
                "(name text PRIMARY KEY, next bigint NOT NULL)"
            )
            found = await (
                await self._db.execute(f"SELECT next FROM {NUMBERS} WHERE name = %s", (self._who,))
            ).fetchone()
            await self._db.commit()
        except UniqueViolation as problem:  # another sink makes the same table
            raise Unreachable("DS664", str(problem)) from None
        except Error as problem:
            raise refused(problem) from None
        return None if found is None else int(found[0])

    @property
    def _who(self) -> str:
        return f"{self.place.name}:{self.said['table']}"

    async def write(self, told: Told) -> Any:
        from psycopg import Error, sql

        columns = [column.to_pylist() for column in _zoned(told.rows).columns]
        rows = list(zip(*columns, strict=True))
        try:
            if told.snapshot:
                await self._db.execute(sql.SQL("DELETE FROM {}").format(self._table))
                await self._copy(rows)
            elif self._key:
                await self._replace(rows, told.signs.tolist())
            else:
                await self._come_and_go(rows, told.signs.tolist())
            await self._db.execute(
                f"INSERT INTO {NUMBERS} VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET next = EXCLUDED.next",
                (self._who, told.upto),
            )
            await self._db.commit()
        except Error as problem:
            raise refused(problem) from None

    async def _copy(self, rows: Sequence[Sequence[Any]]) -> None:
        from psycopg import sql

        names = sql.SQL(", ").join(map(sql.Identifier, self._names))
        ask = sql.SQL("COPY {} ({}) FROM STDIN").format(self._table, names)
        async with self._db.cursor() as cursor, cursor.copy(ask) as copy:
            for row in rows:
                await copy.write_row(row)

    async def _replace(self, rows: Sequence[Sequence[Any]], signs: Sequence[int]) -> None:
        """What is left of each key takes the place of what was there."""
        places = [self._names.index(name) for name in self._key]
        last: dict[tuple[Any, ...], Sequence[Any] | None] = {}
        for row, sign in zip(rows, signs, strict=True):
            last[tuple(row[at] for at in places)] = None if sign < 0 else row
        await self._delete(self._key, list(last))
        await self._copy([row for row in last.values() if row is not None])

    async def _come_and_go(self, rows: Sequence[Sequence[Any]], signs: Sequence[int]) -> None:
        """Rows that leave take one row each with them that is the same."""
        counts: dict[tuple[Any, ...], int] = {}
        for row, sign in zip(rows, signs, strict=True):
            counts[tuple(row)] = counts.get(tuple(row), 0) + (sign or 1)
        gone = [row for row, count in counts.items() for _ in range(-count)]
        await self._delete(self._names, gone, one=True)
        await self._copy([row for row, count in counts.items() for _ in range(count)])

    async def _delete(
        self, names: Sequence[str], rows: Sequence[Sequence[Any]], one: bool = False
    ) -> None:
        """The rows with these values; `one`: of each so many values one row."""
        from psycopg import sql

        if not rows:
            return
        same = sql.SQL(" AND ").join(
            sql.SQL("{} IS NOT DISTINCT FROM %s").format(sql.Identifier(name)) for name in names
        )
        form = "DELETE FROM {t} WHERE {w}"
        if one:
            form = "DELETE FROM {t} WHERE ctid = (SELECT ctid FROM {t} WHERE {w} LIMIT 1)"
        async with self._db.cursor() as cursor:
            await cursor.executemany(sql.SQL(form).format(t=self._table, w=same), rows)

    async def close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(Exception):
                await self._db.rollback()
            await self._db.close()


def type_of(kind: str) -> str:
    """PostgreSQL's name of a type."""
    if kind.startswith("DECIMAL"):
        return kind.lower().replace("decimal", "numeric")
    return TYPES.get(kind, "text")


def _zoned(table: pa.Table) -> pa.Table:
    """Instants say that they are UTC, lists are text."""
    for at, column in enumerate(table.columns):
        name, kind = table.column_names[at], column.type
        if pa.types.is_timestamp(kind):
            table = table.set_column(at, name, column.cast(pa.timestamp("us", "UTC")))
        elif pa.types.is_list(kind):
            texts = [None if v is None else str(v) for v in column.to_pylist()]
            table = table.set_column(at, name, pa.array(texts, pa.string()))
    return table


CONNECTOR = Connector("postgres", PostgresSource, PostgresSink, "psycopg", "postgres")
