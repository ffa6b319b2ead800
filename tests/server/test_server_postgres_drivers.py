"""Drivers that programs use: psycopg, asyncpg, SQLAlchemy; each asks in its own way."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import pytest

from dsms.engine import Engine

asyncpg = pytest.importorskip("asyncpg")
psycopg = pytest.importorskip("psycopg")
sqlalchemy = pytest.importorskip("sqlalchemy")
DECLARED = """
CREATE STREAM s (k STRING, v INT, f FLOAT, d DECIMAL(10,2), b BOOL, y BYTES, t TIMESTAMP,
                 i INTERVAL, l LIST(STRING)) TIMESTAMP BY t;
CREATE TABLE r (id INT PRIMARY KEY, x STRING);
CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 MIN];
INSERT INTO r VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""
AT = dt.datetime(2024, 5, 1, 12, 30, 1, 500000, dt.UTC)
ROW = (
    "it's",
    -7,
    0.25,
    Decimal("-12.50"),
    True,
    b"\x00\xff",
    AT,
    dt.timedelta(days=-2, seconds=5),
    ['a "b"', None, "{c,\\d}"],
)
NAMES = "kvfdbytil"


@pytest.fixture(scope="module")
def running():
    from harness import Running

    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("s", {name: [value] for name, value in zip(NAMES, ROW, strict=True)})
    engine.heartbeat("s", int(AT.timestamp() * 1e6) + 1)
    made = Running(engine, postgres_port=0)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def port(running):
    return running.server.postgres_port


@pytest.fixture
def connection(port):
    with psycopg.connect(f"host=127.0.0.1 port={port} user=me", autocommit=True) as made:
        yield made


def with_asyncpg(port, work):
    async def run():
        made = await asyncpg.connect(host="127.0.0.1", port=port, user="me", database="dsms")
        try:
            return await work(made)
        finally:
            await made.close()

    return asyncio.run(run())


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_every_type(connection, binary):
    with connection.cursor(binary=binary) as cursor:
        assert cursor.execute("SELECT * FROM s").fetchone() == ROW
        assert [c.name for c in cursor.description] == list(NAMES)
        assert (cursor.description[3].precision, cursor.description[3].scale) == (10, 2)
        names, plain = ", ".join(["%s"] * 8), ROW[:8]  # a list of texts travels as a text
        assert cursor.execute(f"SELECT {names}", plain).fetchone() == plain
        assert cursor.execute("SELECT %s", ([1, 2],)).fetchone() == ([1, 2],)
        assert cursor.execute("SELECT %b, %t", (5, 6)).fetchone() == (5, 6)


def test_psycopg_finds_rows_by_values(connection):
    for name, value in zip("kvfdbyti", ROW, strict=False):
        found = connection.execute(f"SELECT v FROM s WHERE {name} = %s", (value,))
        assert found.fetchall() == [(-7,)], name
    assert connection.execute("SELECT v FROM s WHERE v = %s", ("-7",)).fetchall() == [(-7,)]
    with pytest.raises(psycopg.errors.UndefinedColumn) as error:
        connection.execute("SELECT nothing FROM s")
    assert error.value.diag.message_primary.startswith("DS201")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("DELETE FROM r")


def test_psycopg_cursors_transactions_and_pipelines(port, connection):
    with connection.transaction(), connection.cursor("c") as cursor:
        cursor.itersize = 2
        cursor.execute("SELECT id FROM r WHERE id < %s ORDER BY id", (5,))
        assert [row[0] for row in cursor] == [1, 2, 3]
    with connection.pipeline():
        some = [connection.execute("SELECT %s::int8", (k,)) for k in range(20)]
    assert [one.fetchone()[0] for one in some] == list(range(20))
    for k in range(8):  # prepared on the way
        assert connection.execute("SELECT x FROM r WHERE id = %s", (k % 3 + 1,)).fetchone()
    assert len(list(connection.cursor().stream("SELECT id FROM r"))) == 3


def test_psycopg_follows_a_query(running, connection):
    stream = connection.cursor().stream("SUBSCRIBE TO q")
    assert next(stream)[0] == "snapshot"
    with running.peer() as peer:
        row = ["z", 1, None, None, None, None, int(AT.timestamp() * 1e6) + 5_000_000, None, None]
        assert peer.ask("ingest", stream="s", rows=[row], wait=True)["accepted"] == 1
        peer.ask("heartbeat", stream="s", ts=row[6] + 1)
    kind, at, *values = next(stream)
    assert (kind, at, values) == ("insert", AT + dt.timedelta(seconds=5), ["z", 1])
    connection.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        next(stream)
    stream.close()
    with running.peer() as peer:
        peer.ask("heartbeat", stream="s", ts=row[6] + 3_600_000_000)


def test_asyncpg_reads_every_type_and_finds_rows_by_values(port):
    async def work(made):
        values = [tuple(row) for row in await made.fetch("SELECT * FROM s WHERE k = $1", ROW[0])]
        found = [
            await made.fetchval(f"SELECT v FROM s WHERE {name} = $1", value)
            for name, value in zip("kvfdbyti", ROW, strict=False)
        ]
        async with made.transaction():
            cursor = await made.cursor("SELECT id FROM r ORDER BY id")
            some = [row[0] for row in await cursor.fetch(2)] + [(await cursor.fetchrow())[0]]
        plain = await made.fetchrow("SELECT 1 AS a, NULL AS b, 'x' AS c")
        with pytest.raises(asyncpg.exceptions.UndefinedColumnError):
            await made.fetch("SELECT nothing FROM s")
        version = made.get_server_version()
        await made.execute("SET application_name TO 'x'; SELECT 1")
        return values, found, some, dict(plain), version.major

    assert with_asyncpg(port, work) == (
        [ROW],
        [-7] * 8,
        [1, 2, 3],
        {"a": 1, "b": None, "c": "x"},
        15,
    )


def test_asyncpg_pools_and_cancels(port):
    async def work():
        async with asyncpg.create_pool(
            host="127.0.0.1", port=port, user="me", min_size=1, max_size=2
        ) as pool:
            async with pool.acquire() as one:
                assert await one.fetchval("SELECT 1") == 1
            async with pool.acquire() as one:
                endless = "SELECT count(*) FROM pg_class, range(1000000000) a, range(1000) b"
                with pytest.raises(TimeoutError):
                    await one.fetch(endless, timeout=0.01)
                return await one.fetchval("SELECT 2")

    assert asyncio.run(work()) == 2


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_sqlalchemy_inspects_and_asks(port, driver):
    url = f"postgresql+{driver}://me@127.0.0.1:{port}/dsms"

    def look(connection):
        found = sqlalchemy.inspect(connection)
        table = sqlalchemy.Table("r", sqlalchemy.MetaData(), autoload_with=connection)
        asked = sqlalchemy.select(table.c.x).where(table.c.id > 1).order_by(table.c.id).limit(5)
        columns = {c["name"]: (str(c["type"]), c["nullable"]) for c in found.get_columns("s")}
        return (
            sorted(found.get_table_names()),
            found.get_view_names(),
            columns,
            found.get_pk_constraint("r")["constrained_columns"],
            connection.execute(asked).scalars().all(),
            found.get_schema_names(),
        )

    if driver == "psycopg":
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            seen = look(connection)
        engine.dispose()
    else:
        from sqlalchemy.ext.asyncio import create_async_engine

        async def work():
            engine = create_async_engine(url)
            async with engine.connect() as connection:
                found = await connection.run_sync(look)
            await engine.dispose()
            return found

        seen = asyncio.run(work())
    tables, views, columns, key, values, schemas = seen
    assert tables == ["r", "s"] and views == ["q"] and key == ["id"] and "public" in schemas
    assert columns["v"] == ("BIGINT", True) and columns["d"] == ("NUMERIC(10, 2)", True)
    assert columns["t"][0] == "TIMESTAMP" and columns["k"][0] == "TEXT"
    assert values == ["two", "three"]


def test_pandas_reads_through_sqlalchemy(port):
    pandas = pytest.importorskip("pandas")
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://me@127.0.0.1:{port}/dsms")
    frame = pandas.read_sql("SELECT id, x FROM r ORDER BY id", engine)
    engine.dispose()
    assert frame.to_dict("list") == {"id": [1, 2, 3], "x": ["one", "two", "three"]}
