"""The catalog that PostgreSQL's clients look at: a database of DuckDB's own for each user, which
holds what he may know of and nothing else, no row of a stream or table among it.

It reads no file, writes none and answers SELECT alone."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pyarrow as pa

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.sql.listed import Declared
from dsms.sql.types import Field
from dsms_server.postgres.types import ALL, edge_schema, shown

MOST_USERS = 16  # whose catalogs are kept
MEMORY = "512MB"  # that a database of them may take
ANSWER_BYTES = 64 << 20  # of an answer
CHUNK = 2048  # rows that are taken at once
PATIENCE = 0.05  # seconds between two looks at whether somebody has cancelled
FIRST_OID = 16384  # below it are PostgreSQL's own
_OTHERS = (  # types that have no columns here: OID, name, size
    (18, "char", 1), (19, "name", 64), (22, "int2vector", -1), (24, "regproc", 4), (26, "oid", 4),
    (30, "oidvector", -1), (700, "float4", 4), (705, "unknown", -2), (1042, "bpchar", -1),
    (1043, "varchar", -1), (1114, "timestamp", 8), (2205, "regclass", 4), (2249, "record", -1),
    (2278, "void", 4), (3802, "jsonb", -1),
)  # a table  # fmt: skip
_CATEGORIES = {"bool": "B", "numeric": "N", "interval": "T", "date": "D", "time": "D",
               "timestamptz": "D", "timestamp": "D"}  # a table  # fmt: skip
_EMPTY = re.compile(r"(\w+)(\$|\?)?(\[\])?")
_KINDS = {None: "BIGINT", "$": "VARCHAR", "?": "BOOLEAN"}
_SPACE = re.compile(r"\s+")


class Numbers:
    """OIDs of objects, by kind and name: they stay what they are while the server runs."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], int] = {}

    def of(self, kind: str, name: str) -> int:
        return self._given.setdefault((kind, name), FIRST_OID + len(self._given))


class Catalogs:
    """Those of the users that have asked lately.  Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = Numbers()
        self._kept: OrderedDict[str | None, tuple[tuple[Declared, ...], Any]] = OrderedDict()

    def answer(
        self,
        sql: str,
        user: str | None,
        declared: tuple[Declared, ...],
        cancel: Cancel,
        rows: int | None = None,
    ) -> pa.Table:
        """The rows of a text that `rewritten` has made, at most `rows` of them.  Raises DS610,
        DS623, DS628."""
        import duckdb

        connection = self._connection(user, declared)
        try:
            with _stopping(cancel, connection):
                _check_select(connection, sql)
                return _taken(connection.sql(sql), rows)
        except duckdb.InterruptException:
            cancel.check()
            raise
        except duckdb.Error as problem:
            cancel.check()
            raise _explained(problem) from None
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            for _, connection in self._kept.values():
                connection.close()
            self._kept.clear()

    def _connection(self, user: str | None, declared: tuple[Declared, ...]) -> Any:
        """Another one to the user's database, which is made or made anew."""
        with self._lock:
            there, connection = self._kept.pop(user, (None, None))
            if connection is None:
                connection = _made()
            if there != declared:
                _fill(connection, declared, self._numbers)
            self._kept[user] = declared, connection
            if len(self._kept) > MOST_USERS:
                self._kept.popitem(last=False)[1][1].close()
            return connection.cursor()


def _made() -> Any:
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "memory_limit": MEMORY,
            "max_temp_directory_size": "0B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
        },
    )
    for name, kinds in _TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({kinds})")
    lines = [line for line in _text("empty.txt").splitlines() if line and line[0] != "#"]
    connection.execute(";".join([*map(_empty, lines), _text("catalog.sql")]))
    connection.execute(f"INSERT INTO _types VALUES {', '.join(map(str, _types()))}")
    return connection


_TABLES = {
    "_objects": "oid BIGINT, name VARCHAR, kind VARCHAR, comment VARCHAR, text VARCHAR,"
    " columns INT",
    "_columns": "oid BIGINT, num BIGINT, name VARCHAR, type BIGINT, modifier INT, required BOOLEAN",
    "_keys": "oid BIGINT, relation BIGINT, name VARCHAR, columns BIGINT[]",
    "_functions": "oid BIGINT, name VARCHAR, kind VARCHAR, result BIGINT, arguments VARCHAR,"
    " names VARCHAR[], text VARCHAR",
    "_types": "oid BIGINT, name VARCHAR, size INT, item BIGINT, list BIGINT, category VARCHAR",
}


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _empty(line: str) -> str:
    name, *columns = line.split()
    made = []
    for column in columns:
        found = _EMPTY.fullmatch(column)
        assert found is not None, column
        made.append(f"{found[1]} {_KINDS[found[2]]}{found[3] or ''}")
    return f"CREATE TABLE {name} ({', '.join(made)})"


def _types() -> Iterator[tuple[Any, ...]]:
    for pg in ALL:
        yield pg.oid, pg.name, pg.size, 0, pg.array, _category(pg.name)
        yield pg.array, f"_{pg.name}", -1, pg.oid, 0, "A"
    for oid, name, size in _OTHERS:
        yield oid, name, size, 0, 0, _category(name)


def _category(name: str) -> str:
    if name.startswith(("int", "float", "oid")):
        return "N"
    return _CATEGORIES.get(name, "S" if name in ("text", "varchar", "bpchar", "name") else "U")


def _fill(connection: Any, declared: Sequence[Declared], numbers: Numbers) -> None:
    """Write down what is declared, in place of what was."""
    objects, columns, keys, functions = list[Any](), list[Any](), list[Any](), list[Any]()
    for one in declared:
        oid = numbers.of("function" if one.result else "object", one.name)
        if one.result is not None:
            functions.append(_function(one, oid))
            continue
        objects.append((oid, one.name, one.kind, one.comment, one.text, len(one.columns)))
        columns += [(oid, k, *_column(f)) for k, f in enumerate(one.columns, 1)]
        places = [k for k, f in enumerate(one.columns, 1) if f.name in one.key]
        if places:
            name = f"{one.name}_pkey"
            keys.append((numbers.of("index", name), oid, name, places))
    connection.execute("BEGIN")
    filled = (("_objects", objects), ("_columns", columns), ("_keys", keys))
    for name, rows in (*filled, ("_functions", functions)):
        connection.execute(f"DELETE FROM {name}")
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.execute("COMMIT")


def _column(field: Field) -> tuple[Any, ...]:
    (seen,) = shown(edge_schema([field.name], [str(field.type)]))
    return field.name, seen.oid, seen.modifier, not field.nullable


def _function(one: Declared, oid: int) -> tuple[Any, ...]:
    result = shown(edge_schema(["x"], [str(one.result)]))[0].oid
    arguments = ", ".join(f"{f.name} {f.type}" for f in one.columns)
    kind = "a" if one.kind == "aggregate" else "f"
    return oid, one.name, kind, result, arguments, [f.name for f in one.columns], one.text


# ---------------------------------------------------------------- an answer


def _check_select(connection: Any, sql: str) -> None:
    """Nothing but one query is run: DS628."""
    import duckdb

    found = connection.extract_statements(sql)
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise UsageError("DS628", "the catalog answers SELECT alone")


def _taken(result: Any, most: int | None) -> pa.Table:
    """The rows, as long as they are few: DS623."""
    reader = result.to_arrow_reader(CHUNK)
    batches, size, rows = list[pa.RecordBatch](), 0, 0
    for batch in reader:
        size, rows = size + batch.nbytes, rows + batch.num_rows
        if size > ANSWER_BYTES:
            raise UsageError(
                "DS623",
                f"the answer of the catalog is larger than {ANSWER_BYTES} bytes",
                hint="select fewer rows or columns",
            )
        batches.append(batch)
        if most is not None and rows >= most:
            break
    table = _with_oids(pa.Table.from_batches(batches, reader.schema))
    return table if most is None else table.slice(0, most)


def _with_oids(table: pa.Table) -> pa.Table:
    """The catalog's lists of numbers are OIDs: asyncpg, which asks for the types of an answer that
    it does not know, knows theirs."""
    oids = pa.list_(pa.uint32())
    fields = [f.with_type(oids) if f.type == pa.list_(pa.int64()) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _explained(problem: Exception) -> UsageError:
    """DuckDB's error in one line."""
    first = str(problem).split("\n")[0]
    return UsageError(
        "DS628",
        f"the catalog can't answer this: {_SPACE.sub(' ', first)}",
        hint="streams, tables and queries are asked by themselves, without pg_catalog",
    )


@contextmanager
def _stopping(cancel: Cancel, connection: Any) -> Iterator[None]:
    """While DuckDB works, another thread looks whether it should stop."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(PATIENCE):
            if cancel.is_set:
                connection.interrupt()

    watcher = threading.Thread(target=watch, name="dsms-catalog", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
