"""DATE, TIME, UUID and STRUCT over a connection: rows, columns and Arrow in and out, the shell's
formats, files in and files inferred."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client import connect
from dsms_client.cli import main

ID = uuid.UUID("5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162")
NOON = 43_200_500_000
DAY = int(dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()) * 1_000_000
ROWS = [(DAY, NOON, str(ID), '{"a": 1, "b": "x"}'), (None, None, None, None)]
SEEN = {
    "d": dt.date(2026, 11, 30),
    "m": dt.time(12, 0, 0, 500_000),
    "u": str(ID),
    "p": {"a": 1, "b": "x"},
}
NONE = dict.fromkeys(SEEN)
TABLE = pa.table(
    {
        "d": pa.array([SEEN["d"], None], pa.date32()),
        "m": pa.array([SEEN["m"], None], pa.time64("us")),
        "u": [str(ID), None],
        "p": pa.array([SEEN["p"], None]),
        "t": pa.array([1, 1], pa.timestamp("us")),
    }
)
WAYS: dict[str, Any] = {
    "rows": [[SEEN["d"], SEEN["m"], ID, {"b": "x", "a": 1}, 1], [None, None, None, None, 1]],
    "dicts": [{**SEEN, "t": 1}, {"t": 1}],
    "wire": [[*ROWS[0], 1], [*ROWS[1], 1]],
    "texts": [["20261130", "12:00:00.5", ID.hex, '{"b":"x","a":1}', 1], [None] * 4 + [1]],
    "arrow": TABLE,
    "polars": pl.from_arrow(TABLE),
    "pandas": TABLE.to_pandas(),
}


def engine() -> Engine:
    made = Engine()
    made.execute(
        "CREATE STREAM s (d DATE, m TIME, u UUID, p STRUCT(a INT, b STRING), t TIMESTAMP) "
        "TIMESTAMP BY t RETAIN 1 h; CREATE QUERY q AS SELECT d, m, u, p FROM s"
    )
    return made


@pytest.mark.parametrize("way", WAYS)
def test_values_come_in_and_go_out(serve: Any, way: str) -> None:
    server = serve(engine())
    with connect("127.0.0.1", server.port) as client:
        report = client.ingest("s", WAYS[way])
        assert (report.accepted, report.refused) == (2, 0)
        client.heartbeat("s", 10)
    for data in ("rows", "arrow"):
        with connect("127.0.0.1", server.port, data=data) as client:
            found = client.query("SELECT d, m, u, p FROM s")
            assert found.types == ("DATE", "TIME", "UUID", "STRUCT(a INT, b STRING)")
            assert found.rows == ROWS
            assert found.arrow().to_pylist() == [SEEN, NONE]
            value = client.execute(
                "SELECT COUNT(*) FROM s WHERE d = ? AND u = ? AND p = ?", [SEEN["d"], ID, SEEN["p"]]
            )
            assert value[0].rows == [(1,)]


def test_wrong_values_refuse_their_rows(serve: Any) -> None:
    with connect("127.0.0.1", serve(engine()).port) as client:
        wrong = [
            {"d": "2026-02-30", "t": 1},
            {"d": 1, "t": 1},
            {"m": "24:00", "t": 1},
            {"m": -1, "t": 1},
            {"u": "x", "t": 1},
            {"p": {"z": 1}, "t": 1},
            {"p": "[1]", "t": 1},
            {"p": {"a": [1]}, "t": 1},
        ]
        report = client.ingest("s", wrong)
        assert (report.accepted, report.refused) == (0, len(wrong))


def ran(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([*words]) == 0
    return out.getvalue()


def shown(server: Any, form: str) -> str:
    text = "SELECT d, m, u, p FROM s"
    return ran("shell", "--port", str(server.port), "--format", form, "-c", text)


def test_what_the_shell_shows_is_loaded_again(serve: Any, tmp_path: Path) -> None:
    server = serve(engine())
    with connect("127.0.0.1", server.port) as client:
        client.ingest("s", WAYS["rows"])
        client.heartbeat("s", 10)
    assert "2026-11-30 | 12:00:00.5" in shown(server, "table")
    assert "p : {" in shown(server, "vertical")
    lines = [json.loads(line) for line in shown(server, "json").splitlines()]
    assert lines == [{"d": "2026-11-30", "m": "12:00:00.5", "u": str(ID), "p": SEEN["p"]}, NONE]
    for form, name in (("csv", "a.csv"), ("json", "a.jsonl")):
        other = serve(engine())
        text = shown(server, form)
        stamped = (
            text.replace("\n", ",1970-01-01\n").replace("p,1970-01-01", "p,t", 1)
            if form == "csv"
            else text.replace("}\n", ', "t": "1970-01-01"}\n')
        )
        (tmp_path / name).write_text(stamped)
        ran("load", str(tmp_path / name), "--port", str(other.port), "--stream", "s")
        with connect("127.0.0.1", other.port) as client:
            client.heartbeat("s", 10)
            assert client.query("SELECT d, m, u, p FROM s").rows == ROWS


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_files_are_loaded(serve: Any, tmp_path: Path, ending: str) -> None:
    server, path = serve(engine()), tmp_path / f"a.{ending}"
    match ending:
        case "parquet":
            pyarrow.parquet.write_table(TABLE, path)
        case "arrow":
            pl.from_arrow(TABLE).write_ipc(path)
        case "csv":
            path.write_text(
                'd,m,u,p,t\n2026-11-30,12:00:00.5,{ID},"{""a"": 1, ""b"": ""x""}",1970-01-01\n'
                "2026-02-30,,,,1970-01-01\n,,,,1970-01-01\n".replace("{ID}", str(ID))
            )
        case _:
            path.write_text(
                f'{{"d": "20261130", "m": "12:00:00.5", "u": "{ID.hex}", '
                '"p": {"b": "x", "a": 1}, "t": "1970-01-01"}\n{"m": "25:00"}\n'
                '{"t": "1970-01-01"}\n'
            )
    words = ["load", str(path), "--port", str(server.port), "--stream", "s"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(words)
    with connect("127.0.0.1", server.port) as client:
        client.heartbeat("s", 10)
        assert client.query("SELECT d, m, u, p FROM s").rows == ROWS


def test_columns_of_files_are_inferred(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    csv.write_text("ts,born,name,begins\n2026-11-30 10:00:00,1999-01-31,a,08:30:00\n")
    uuids = pa.array([ID.bytes], pa.uuid())
    table = TABLE.slice(0, 1).set_column(2, "u", uuids)
    pyarrow.parquet.write_table(table, parquet)
    made = Engine(files=[str(tmp_path)])
    done = made.execute(
        f"CREATE STREAM c LIKE FILE '{csv.name}'; CREATE STREAM p LIKE FILE '{parquet.name}'"
    )
    assert "born DATE" in done[0].message and "begins TIME" in done[0].message
    for column in ("d DATE", "m TIME", "u UUID", "p STRUCT(a INT, b STRING)"):
        assert column in done[1].message
