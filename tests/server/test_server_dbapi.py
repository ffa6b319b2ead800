"""PEP 249 over the native client."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from dsms.engine import Engine
from dsms_client import dbapi

DECLARED = """
CREATE STREAM s (k STRING, v INT, d DECIMAL(10,2), y BYTES, t TIMESTAMP, i INTERVAL, l LIST(INT))
    TIMESTAMP BY t;
CREATE TABLE r (id INT PRIMARY KEY, x STRING);
INSERT INTO r VALUES (1, 'one'), (2, 'two'), (3, NULL);
"""
AT = dt.datetime(2024, 5, 1, 12, 30)
ROW = ("a", 1, Decimal("1.50"), b"\x00", AT, dt.timedelta(seconds=90), [1, None])


@pytest.fixture
def running(serve):
    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("s", {name: [value] for name, value in zip("kvdytil", ROW, strict=True)})
    engine.heartbeat("s", AT.replace(tzinfo=dt.UTC) + dt.timedelta(seconds=1))
    return serve(engine)


@pytest.fixture
def connection(running):
    with dbapi.connect("127.0.0.1", running.port) as made:
        yield made


def test_the_module_says_what_it_is():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert issubclass(dbapi.DataError, dbapi.DatabaseError) and issubclass(
        dbapi.InterfaceError, dbapi.Error
    )
    assert dbapi.NUMBER == "DECIMAL(10,2)" and dbapi.NUMBER != "STRING" and dbapi.STRING == "STRING"
    assert dbapi.DATETIME == "TIMESTAMP" and dbapi.BINARY == "BYTES" and dbapi.ROWID == dbapi.ROWID
    assert dbapi.TimestampFromTicks(0.5) == dt.datetime(1970, 1, 1, 0, 0, 0, 500000)
    assert dbapi.DateFromTicks(86400) == dbapi.Date(1970, 1, 2)
    assert dbapi.TimeFromTicks(61) == dbapi.Time(0, 1, 1) and dbapi.Binary(b"x") == b"x"


def test_rows_of_all_types(connection):
    with connection.cursor() as cursor:
        assert cursor.execute("SELECT * FROM s").fetchall() == [ROW]
        assert cursor.rowcount == 1
        assert cursor.description[2] == ("d", "DECIMAL(10,2)", None, None, 10, 2, None)
        assert [c[0] for c in cursor.description] == list("kvdytil")
        cursor.execute("SELECT 1 AS a, 2 AS a")
        assert cursor.description[1][0] == "a" and cursor.fetchone() == (1, 2)
        assert cursor.fetchone() is None


def test_parameters_and_fetching(connection):
    cursor = connection.cursor()
    assert cursor.execute("SELECT x FROM r WHERE id = ?", [2]).fetchall() == [("two",)]
    assert cursor.execute("SELECT x FROM r WHERE id = :n", {"n": 1}).fetchone() == ("one",)
    cursor.execute("SELECT id FROM r ORDER BY id", ())
    assert cursor.fetchmany() == [(1,)] and cursor.fetchmany(5) == [(2,), (3,)]
    assert list(cursor.execute("SELECT id FROM r WHERE id < ?", (3,))) == [(1,), (2,)]
    cursor.executemany("INSERT INTO r VALUES (?, ?)", [(4, "four"), (5, None)])
    assert cursor.description is None and cursor.rowcount == -1
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    cursor.execute("SELECT 1; SELECT 2")
    assert cursor.fetchall() == [(1,)] and cursor.nextset() and cursor.fetchall() == [(2,)]
    assert cursor.nextset() is None
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    connection.commit()
    with pytest.raises(connection.NotSupportedError):
        connection.rollback()


@pytest.mark.parametrize(
    ("sql", "params", "kind", "code"),
    [
        ("SELEC", None, dbapi.ProgrammingError, "DS1"),
        ("SELECT nothing FROM s", None, dbapi.ProgrammingError, "DS201"),
        ("SELECT * FROM nobody", None, dbapi.ProgrammingError, "DS203"),
        ("SELECT 1/0", None, dbapi.DataError, "DS701"),
        ("INSERT INTO r VALUES (1, 'x')", None, dbapi.IntegrityError, "DS521"),
        ("SELECT ?", [], dbapi.ProgrammingError, "DS617"),
        ("SELECT ?", [object()], dbapi.DataError, "DS618"),
    ],
)
def test_errors(connection, sql, params, kind, code):
    with pytest.raises(kind) as error:
        connection.cursor().execute(sql, params)
    assert error.value.code.startswith(code) and error.value.__cause__ is not None


def test_what_is_closed_is_of_no_use(running):
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect("127.0.0.1", 1)
    connection = dbapi.connect(f"dsms://127.0.0.1:{running.port}/")
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


def test_pandas_reads(connection):
    pandas = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql("SELECT id, x FROM r WHERE id < ?", connection, params=(3,))
    assert frame.to_dict("list") == {"id": [1, 2], "x": ["one", "two"]}
