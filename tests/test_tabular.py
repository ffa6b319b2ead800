"""Answers as tables: the same in process and over TCP, and as HTML for notebooks."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.tabular.html import CHARACTERS, ROWS, table_html
from dsms_client.changes import changes_of
from dsms_client.columns import batch_to_rows
from dsms_client.results import Data

DDL = """
CREATE STREAM s (k INT, "<w>" STRING, d DECIMAL(9,2), i INTERVAL, t TIMESTAMP)
    TIMESTAMP BY t RETAIN 1 h;
CREATE QUERY q AS SELECT *, k FROM s [RANGE 2 s]
"""


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DDL)
    made.ingest("s", [[1, "<b>&", "1.50", 90_000_000, 0], [2, None, None, None, 5_000_000]])
    return made


def test_an_answer_has_the_types_that_people_want(engine):
    (rows,) = engine.execute("SELECT *, k FROM s [RANGE 1 h]")
    first = {
        "k": 1, "<w>": "<b>&", "d": Decimal("1.50"), "i": dt.timedelta(seconds=90),
        "t": dt.datetime(1970, 1, 1), "k_1": 1,
    }  # a row  # fmt: skip
    assert rows.arrow().to_pylist()[0] == first
    assert rows.polars().row(0, named=True) == first
    assert rows.pandas()["t"][0] == dt.datetime(1970, 1, 1)
    client = Data(tuple(rows.data.schema.names), rows.types, batch_to_rows(rows.data))
    assert client.arrow().equals(rows.arrow())
    assert client._repr_html_() == rows._repr_html_()


def test_changes_and_pushes_are_tables_too(engine):
    whole = engine.subscribe("q", 0).take_changes().arrow()
    assert whole.column("$sign").to_pylist() == [1, -1]
    assert whole.column("k_1").to_pylist() == [1, 1]
    pushes = engine.subscribe("q", 0).take()
    assert [p.arrow().column("i")[0].as_py() for p in pushes] == [dt.timedelta(seconds=90)] * 2
    reader = engine.subscribe("q")
    first = reader.take_changes()
    assert reader.take_changes().arrow().schema == first.arrow().schema == whole.schema
    names = tuple(c.name for c in reader.columns)
    types = tuple(c.type for c in reader.columns)
    rows = batch_to_rows(pushes[0].data)
    message = {"seq": 0, "kind": "insert", "at": 0, "data": rows}
    came = changes_of(message, "q", names, types)
    assert came.arrow().equals(whole.slice(0, 1)) and "<td" in came._repr_html_()


def test_html_escapes_and_counts_what_it_leaves_out(engine):
    engine.heartbeat("s", 5_000_000)
    (rows,) = engine.execute("SELECT * FROM s [RANGE 1 h]")
    page = rows._repr_html_()
    assert "<th>&lt;w&gt;</th>" in page and "<td>&lt;b&gt;&amp;</td>" in page
    assert "<td>1 min 30 s</td><td>1970-01-01 00:00:00</td>" in page and ">NULL<" in page
    assert page.endswith("<p>2 rows</p>")
    long = table_html(pa.table({"x": ["<" * (CHARACTERS + 1000)] * (ROWS + 1)}))
    assert long.count("<tr>") == ROWS + 1 and "… (1,000 more characters)" in long
    assert long.endswith(f"<p>{ROWS + 1} rows, the first {ROWS} shown</p>")
    assert "40 of 50 columns shown" in table_html(pa.table({f"c{k}": [k] for k in range(50)}))
    assert table_html(pa.table({})).endswith("<p>0 rows</p>")


def test_plans_and_engines_are_shown(engine):
    (plan,) = engine.execute("EXPLAIN SELECT k FROM s [RANGE 1 s] WHERE \"<w>\" < 'a'")
    page = plan._repr_html_()
    assert page.startswith("<pre>") and "&lt;w&gt;" in page and "Stream s" in page
    assert "<td>s</td><td>k INT, &lt;w&gt; STRING, " in engine._repr_html_()
    assert "1 streams, 0 tables, 1 queries" in engine._repr_html_()
