"""Random values of all types: what PostgreSQL's drivers read in text and in binary is what the
native client reads."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

import dsms
from dsms.engine import Engine
from dsms_server.postgres.rows import data_rows
from tests.effort import effort

psycopg = pytest.importorskip("psycopg")
TYPES = (
    "STRING",
    "INT",
    "FLOAT",
    "DECIMAL(38,9)",
    "DECIMAL(7,7)",
    "DECIMAL(30,0)",
    "BOOL",
    "BYTES",
    "TIMESTAMP",
    "INTERVAL",
    "LIST(INT)",
    "LIST(STRING)",
    "LIST(FLOAT)",
    "LIST(DECIMAL(5,2))",
    "LIST(BOOL)",
    "LIST(TIMESTAMP)",
)
LETTERS = "ab \"'\\{},;\n\t%$é漢😀NULL"
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def text(rng: Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(12)))


def number(rng: Random) -> int:
    return rng.choice((0, 1, -1, 2**63 - 1, -(2**63), rng.randrange(-(10**6), 10**6)))


def real(rng: Random) -> float:
    some = (0.0, -1.5, 1e300, 5e-324, math.nan, math.inf, -math.inf, 0.1, 1 / 3)
    return rng.choice((*some, rng.gauss(0, 1e6)))


def instant(rng: Random) -> int:
    return rng.choice((0, -1, FIRST, LAST, rng.randrange(FIRST, LAST), 1_700_000_000_000_000))


def value(rng: Random, sql: str):
    """As rows of the native protocol have it."""
    if rng.random() < 0.15:
        return None
    if sql.startswith("LIST("):
        return [value(rng, sql[5:-1]) for _ in range(rng.randrange(4))]
    if sql.startswith("DECIMAL("):
        precision, scale = map(int, sql[8:-1].split(","))
        digits = rng.randrange(1, precision + 1)
        whole = rng.choice((0, 10**precision - 1, rng.randrange(10**digits)))
        return str(Decimal(rng.choice((1, -1)) * whole).scaleb(-scale))
    match sql:
        case "STRING":
            return text(rng)
        case "INT":
            return number(rng)
        case "FLOAT":
            return real(rng)
        case "BOOL":
            return rng.random() < 0.5
        case "BYTES":
            return rng.randbytes(rng.randrange(9))
        case "TIMESTAMP":
            return instant(rng)
        case _:
            return rng.choice((0, -1, 86_400_000_000, rng.randrange(-(10**15), 10**15)))


def plain(found):
    """Values that are equal where they mean the same."""
    match found:
        case list() | tuple():
            return [plain(one) for one in found]
        case float():
            return repr(found)
        case Decimal():
            return format(found, "f") if found else "0"
        case dt.datetime():
            return found.replace(tzinfo=None)
        case _:
            return found


@pytest.mark.parametrize("seed", range(3 * effort()))
def test_values_are_those_of_the_native_client(serve, seed):
    rng = Random(seed)
    engine = Engine()
    columns = {f"c{k}": sql for k, sql in enumerate(TYPES)}
    declared = ", ".join(f"{name} {sql}" for name, sql in columns.items())
    engine.execute(f"CREATE STREAM s (n INT, at TIMESTAMP, {declared}) TIMESTAMP BY at")
    running = serve(engine, postgres_port=0)
    rows = [[k, k, *(value(rng, sql) for sql in TYPES)] for k in range(rng.choice((1, 20, 200)))]
    asked = "SELECT * FROM s ORDER BY n"
    with dsms.connect("127.0.0.1", running.port) as native:
        assert native.ingest("s", rows).accepted == len(rows)
        native.heartbeat("s", len(rows))
        wanted = [plain(list(row.values())) for row in native.query(asked).table().to_pylist()]
    url = f"host=127.0.0.1 port={running.server.postgres_port} user=me"
    with psycopg.connect(url, autocommit=True) as connection:
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                found = [plain(row) for row in cursor.execute(asked).fetchall()]
            assert found == wanted, binary


@pytest.mark.parametrize("binary", [0, 1])
def test_rows_are_the_same_however_they_are_cut(binary, monkeypatch):
    from dsms_server.postgres import rows

    rng = Random(7)
    table = pa.table(
        {
            "a": pa.array([value(rng, "STRING") for _ in range(100)], pa.string()),
            "b": pa.array([value(rng, "INT") for _ in range(100)], pa.int64()),
            "c": pa.array([[1, None], None, []] * 33 + [None], pa.list_(pa.int64())),
        }
    )
    whole = b"".join(data_rows(table, [binary] * 3))
    monkeypatch.setattr(rows, "PIECE_ROWS", 7)
    sliced = pa.concat_tables([table.slice(0, 13), table.slice(13)])
    assert b"".join(data_rows(sliced, [binary] * 3)) == whole
    assert list(data_rows(table.slice(0, 0), [binary] * 3)) == []
