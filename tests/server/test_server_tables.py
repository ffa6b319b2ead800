"""Rows that are sent to a table over TCP, and `dsms load --table`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms_client import connect

MADE = "CREATE TABLE r (k INT PRIMARY KEY, v STRING); CREATE TABLE u (a INT, b FLOAT NOT NULL)"
ROWS = pa.table({"k": list(range(50_000)), "v": [f"v{i % 7}" for i in range(50_000)]})


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(MADE)
    return made


def rows_of(engine: Engine, sql: str = "SELECT * FROM r") -> list[dict]:
    return engine.execute(sql)[0].data.to_pylist()


def test_a_frame_for_a_table_inserts_its_rows(serve, engine):
    with connect(port=serve(engine).port) as db:
        report = db.ingest("R", [[1, "a"], [2, None], [1, "b"], ["x", "c"]], positions=True)
        assert (report.accepted, report.refused) == (2, 2)
        assert report.reasons == (
            "1 row refused (wrong value): row 3: column k: expected INT, got str 'x'",
            "1 row refused (the key comes twice): row 2: table r: key k = 1",
        )
        assert {reason: list(at) for reason, at in report.positions.items()} == {
            "wrong value": [3],
            "the key comes twice": [2],
        }
        report = db.ingest("r", {"k": [2, 3], "v": ["b", "c"]}, upsert=True)
        assert (report.accepted, report.refused) == (2, 0)
        assert db.query("SELECT * FROM r ORDER BY k").rows == [(1, "a"), (2, "b"), (3, "c")]
        with pytest.raises(UsageError, match="DS440"):
            db.ingest("u", {"a": [1], "b": [1.0]}, upsert=True)
        with pytest.raises(UsageError, match=r"DS502.*table u needs a value"):
            db.ingest("u", {"a": [1]})
        with pytest.raises(UsageError, match="DS401"):
            db.heartbeat("r", 0)


def test_a_large_frame_goes_in_pieces_and_comes_once(serve, engine):
    with connect(port=serve(engine).port) as db:
        assert db.ingest("r", ROWS).accepted == len(ROWS)
        again = db.ingest("r", ROWS)
        assert (again.accepted, again.refused) == (0, len(ROWS))
        assert db.ingest("r", ROWS, upsert=True).accepted == len(ROWS)
    assert rows_of(engine, "SELECT COUNT(*) AS n, SUM(k) AS s FROM r") == [
        {"n": 50_000, "s": 1_249_975_000}
    ]


def test_load_table(dsms, serve, engine, tmp_path, monkeypatch):
    monkeypatch.setenv("DSMS_PORT", str(serve(engine).port))
    path = tmp_path / "r.csv"
    path.write_text("v,k\na,1\nb,2\nc,2\nd,x\n")
    rejects = tmp_path / "rejects.csv"
    code, _, err = dsms("load", str(path), "--table", "R", "--rejects", str(rejects))
    assert code == 1 and "2 rows accepted by r, 1 refused, 1 lines rejected" in err
    assert [line.partition(",")[0] for line in rejects.read_text().splitlines()][1:] == ["5", "4"]
    path.write_text("k,v\n2,c\n3,d\n")
    code, _, err = dsms("load", str(path), "--table", "r", "--upsert")
    assert code == 0 and "2 rows accepted by r" in err
    assert rows_of(engine) == [{"k": 1, "v": "a"}, {"k": 2, "v": "c"}, {"k": 3, "v": "d"}]
    code, _, err = dsms("load", str(path), "--stream", "r")
    assert code == 2 and "it is a table: --table r" in err
    for wrong in (["--stream", "r", "--upsert"], ["--table", "r", "--end"], ["--table", "zz"]):
        code, _, err = dsms("load", str(path), *wrong)
        assert code == 2, err


def test_copy_in_the_shell(dsms, serve, engine, tmp_path, monkeypatch):
    monkeypatch.setenv("DSMS_PORT", str(serve(engine).port))
    path = tmp_path / "it's.csv"
    path.write_text("k;v\n1;a\n2;-\n")
    (tmp_path / "u.csv").write_text("a,b\n1,2\n")
    name = str(path).replace("'", "''")
    copy = f"copy R from '{name}' with (delimiter = ';', null = '-', upsert = TRUE)"
    code, _, err = dsms("shell", "-c", f"{copy}; SELECT COUNT(v) AS n FROM r; {copy}")
    assert code == 0 and "2 rows accepted by r" in err
    assert rows_of(engine) == [{"k": 1, "v": "a"}, {"k": 2, "v": None}]
    code, _, err = dsms("shell", "-c", f"COPY r FROM '{name}' WITH (delimiter = ';')")
    assert code == 1 and "refused by the server: 2 rows refused (the key is there already)" in err
    for wrong, why in (
        ("COPY r", "DS101"),
        (f"COPY r FROM '{name}' WITH (upsert)", "DS101"),
        (f"COPY r FROM '{name}' WITH (upsert = 1)", "DS215"),
        (f"COPY r FROM '{name}' WITH (delimeter = ',')", "did you mean `delimiter`"),
        (f"COPY zz FROM '{name}'", "DS401"),
        ("COPY r FROM 'nowhere.csv'", "DS530"),
        (f"COPY u FROM '{tmp_path}/u.csv' WITH (upsert = TRUE)", "DS440"),
    ):
        code, _, err = dsms("shell", "-c", wrong)
        assert code == 1 and why in err, (wrong, err)
    with connect(port=serve(engine).port) as db, pytest.raises(DsmsError, match="dsms shell"):
        db.execute("COPY r FROM 'x'")


def test_computed_columns_are_not_sent(dsms, serve, tmp_path, monkeypatch):
    engine = Engine()
    engine.execute(
        "CREATE STREAM c (a INT, b FLOAT AS (a / 2.0), d STRING) "
        "TIMESTAMP BY (CAST(d AS TIMESTAMP)) AS t RETAIN 1 DAY"
    )
    monkeypatch.setenv("DSMS_PORT", str(port := serve(engine).port))
    path = tmp_path / "c.csv"
    path.write_text("1,2020-01-01\n3,2020-01-02\n")
    code, _, err = dsms("load", str(path), "--stream", "c", "--no-header")
    assert code == 0 and "2 rows accepted by c" in err
    with connect(port=port) as db:
        many = [[k, "2020-01-02"] for k in range(3000)]
        assert db.ingest("c", many).accepted == 3000
        assert db.ingest("c", {"a": pa.array([5]), "d": pa.array(["2020-01-02"])}).accepted == 1
        with pytest.raises(UsageError, match="DS443"):
            db.ingest("c", {"a": [1], "b": [0.5]})
        with pytest.raises(UsageError, match="DS443"):
            db.ingest("c", [{"a": 1, "t": 0}])
        db.end("c")
    assert rows_of(engine, "SELECT COUNT(*) AS n, SUM(b) AS b FROM c [RANGE 1 DAY]") == [
        {"n": 3002, "b": (3 + sum(range(3000)) + 5) / 2}
    ]


def test_columns_that_were_added_may_be_left_out(dsms, serve, tmp_path, monkeypatch):
    engine = Engine()
    engine.execute("CREATE STREAM c (a INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")
    monkeypatch.setenv("DSMS_PORT", str(port := serve(engine).port))
    with connect(port=port) as db:
        assert db.ingest("c", [[k, k] for k in range(2000)]).accepted == 2000
        db.execute("ALTER STREAM c ADD COLUMN b FLOAT NOT NULL DEFAULT 0.5")
        many = [[k, 5000 + k] for k in range(2000)]
        assert db.ingest("c", many).accepted == 2000
        assert db.ingest("c", [[1, 8000, 1.5]] * 2000).accepted == 2000
        assert db.ingest("c", pa.table({"a": [1], "t": [9000]})).accepted == 1
        assert db.ingest("c", {"a": [1], "t": [9000]}).accepted == 1
        assert db.ingest("c", [{"a": 1, "t": 9000}]).accepted == 1
        for name, text in (
            ("a.csv", "t,a\n10000,1\n"),
            ("b.jsonl", '{"a": 1, "t": 10000}\n'),
            ("c.csv", "t,a,b\n10001,1,2\n"),
        ):
            (tmp_path / name).write_text(text)
        code, _, err = dsms("load", str(tmp_path / "?.*"), "--stream", "c", "--time-unit", "us")
        assert code == 0 and "their default in every row: b" in err, err
        db.end("c")
    assert rows_of(engine, "SELECT COUNT(*) AS n, SUM(b) AS b FROM c [RANGE 1 DAY]") == [
        {"n": 6006, "b": 4005 * 0.5 + 2000 * 1.5 + 2}
    ]
