"""Lists over a connection: rows, columns and Arrow in, rows, Arrow and texts of the shell out."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client import connect
from dsms_client.cli import main

WAYS: dict[str, Any] = {
    "rows": [([1, None], ["a"], 1), (np.array([2]), (), 1), (None, None, 1)],
    "dicts": [{"l": (1, None), "w": ["a"], "t": 1}, {"l": [2], "w": [], "t": 1}, {"t": 1}],
    "texts": [("[1, null]", '["a"]', 1), ("[2]", "[]", 1), (None, None, 1)],
    "columns": {"l": [[1, None], [2], None], "w": [["a"], [], None], "t": [1, 1, 1]},
    "pandas": pd.DataFrame({"l": [[1, None], [2], None], "w": [["a"], [], None], "t": [1, 1, 1]}),
    "polars": pl.DataFrame({"l": [[1, None], [2], None], "w": [["a"], [], None], "t": [1, 1, 1]}),
    "arrow": pa.table(
        {
            "l": pa.array([[1, None], [2], None], pa.large_list(pa.int16())),
            "w": pa.array([["a"], [], None], pa.list_(pa.large_string())),
            "t": [1, 1, 1],
        }
    ),
}
ROWS = [("[1, null]", '["a"]'), ("[2]", "[]"), (None, None)]


def engine() -> Engine:
    made = Engine()
    made.execute(
        "CREATE STREAM s (l LIST(INT), w LIST(STRING), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
    )
    return made


@pytest.mark.parametrize("way", WAYS)
def test_lists_come_in(serve: Any, way: str) -> None:
    server = serve(engine())
    for data in ("rows", "arrow"):
        with connect("127.0.0.1", server.port, data=data) as client:
            if data == "rows":
                client.ingest("s", WAYS[way])
                client.heartbeat("s", 10)
            found = client.query("SELECT l, w FROM s")
            assert found.types == ("LIST(INT)", "LIST(STRING)")
            assert found.rows == ROWS
            assert found.arrow().to_pylist() == [
                {"l": [1, None], "w": ["a"]},
                {"l": [2], "w": []},
                {"l": None, "w": None},
            ]


def test_a_wrong_list_refuses_its_row(serve: Any) -> None:
    with connect("127.0.0.1", serve(engine()).port) as client:
        report = client.ingest("s", [([[1]], [], 1), ([1], [], 1), ([2.5], [], 1), ("[", [], 1)])
        assert (report.accepted, report.refused) == (1, 3)


def shown(server: Any, form: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        words = ["shell", "--port", str(server.port), "--format", form]
        assert main([*words, "-c", "SELECT l, w FROM s"]) == 0
    return out.getvalue()


def test_the_shell_shows_lists(serve: Any) -> None:
    server = serve(engine())
    with connect("127.0.0.1", server.port) as client:
        client.ingest("s", WAYS["rows"])
        client.heartbeat("s", 10)
    assert '[1, null] | ["a"]' in shown(server, "table")
    assert shown(server, "csv").splitlines()[1] == '"[1, null]","[""a""]"'
    lines = [json.loads(line) for line in shown(server, "json").splitlines()]
    assert lines == [{"l": [1, None], "w": ["a"]}, {"l": [2], "w": []}, {"l": None, "w": None}]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "categories.parquet", "arrow"])
def test_files_of_lists_are_loaded(serve: Any, tmp_path: Path, ending: str) -> None:
    server, path = serve(engine()), tmp_path / f"a.{ending}"
    frame = pl.DataFrame({"l": [[1, None], [2]], "w": [["a"], []], "t": [1, 1]})
    match ending:
        case "parquet":
            frame.with_columns(t=pl.from_epoch("t", "us")).write_parquet(path)
        case "arrow":
            frame.with_columns(t=pl.from_epoch("t", "us")).write_ipc(path)
        case "categories.parquet":
            words = pl.col("w").cast(pl.List(pl.Categorical))
            table = frame.with_columns(words, t=pl.from_epoch("t", "us")).to_arrow()
            assert pa.types.is_dictionary(table.schema.field("w").type.value_type)
            pyarrow.parquet.write_table(table, path)
        case "csv":
            path.write_text('l,w,t\n"[1,null]","[""a""]",1970-01-01\n[2],[],1970-01-01\n')
        case _:
            path.write_text(
                '{"l": [1, null], "w": ["a"], "t": "1970-01-01"}\n'
                '{"l": [2], "w": [], "t": "1970-01-01"}\n'
            )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["load", str(path), "--port", str(server.port), "--stream", "s"]) == 0
    with connect("127.0.0.1", server.port) as client:
        client.heartbeat("s", 10)
        assert client.query("SELECT l, w FROM s").rows == ROWS[:2]
