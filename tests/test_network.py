"""The network example, small: forty queries on a real server, answers recomputed; traces from
files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from dsms_client import connect
from examples.flights.server import server
from examples.network import __main__ as network
from examples.network import recompute, story
from examples.network.trace import BEGIN, SECOND, Trace, from_file, synthetic


@pytest.fixture(scope="module")
def trace() -> Trace:
    return synthetic(150, 40)


def test_forty_queries_beside_each_other_answer_as_recomputed(trace: Trace) -> None:
    said: list[str] = []
    with server(lambda line: None, "--no-warmup") as port, connect(port=port) as client:
        assert network.run(client, trace, said.append) == []
        status = client.query("SHOW QUERIES FULL")
    names = [row[status.columns.index("query")] for row in status.rows]
    assert len(names) == 40
    assert all(row[status.columns.index("status")] == "running" for row in status.rows)
    told = "\n".join(said)
    assert "scan by 10.66.6.6" in told
    assert "flood of 192.168.8.1" in told
    assert told.count("as of 12:0") == len(story.QUESTIONS)
    assert all(f"\n{rule} " in told for rule in ("SS1", "SS2", "SS4", "CS1"))
    asked = {row[0] for row in status.rows if row[status.columns.index("period")] == "on look-up"}
    assert asked == set(network.ON_LOOKUP)


def test_a_wrong_answer_would_be_seen(trace: Trace) -> None:
    """Every check says no to an answer that is not there, or a little off."""
    boundary = BEGIN + 90 * SECOND
    found = [text.split(" ", 1)[0] for text in _wrong(trace, boundary, {})]
    quiet = {"floods"}  # an empty answer is right there
    assert set(found) | quiet == {check.query for check in recompute.CHECKS}
    held = recompute.window(trace, "north", boundary, recompute.MINUTE)
    right = [(len(held), sum(held["bytes"].to_pylist()))]
    assert not any(t.startswith("load_1m") for t in _wrong(trace, boundary, {"load_1m": right}))
    off = [(right[0][0], right[0][1] + 1)]
    assert any(t.startswith("load_1m") for t in _wrong(trace, boundary, {"load_1m": off}))


def _wrong(trace: Trace, boundary: int, answers: dict[str, recompute.Rows]) -> list[str]:
    return list(recompute.wrong(trace, boundary, answers))


def test_the_synthetic_trace_is_the_same_every_time(trace: Trace) -> None:
    again = synthetic(150, 40)
    assert trace.links["north"].equals(again.links["north"])
    for rows in trace.links.values():
        at = rows["t"].cast(pa.int64()).to_pylist()
        assert at == sorted(at)
        assert trace.begin <= at[0] <= at[-1] < trace.end
    assert "synthetic" in trace.about


def test_a_trace_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "conn.csv.gz"
    lines = [
        "ts,host,path,status,bytes",
        "30.5,b,/x,200,7",
        "0,a,/y,404,-",
        "7200,a,/x,200,9",
        "12,,/x,200,1",
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = from_file(str(path))
    rows = pa.concat_tables(found.links.values()).sort_by("t").to_pylist()
    assert [
        (r["src"], r["dst"], r["port"], r["protocol"], r["bytes"]) for r in rows if r["src"]
    ] == [
        ("a", "/y", 404, "?", 0),
        ("b", "/x", 200, "?", 7),
        ("a", "/x", 200, "?", 9),
    ]
    assert {r["dst"] for r in found.links["north"].to_pylist()} == {"/y"}
    assert found.end - found.begin == (20 * 60 + 1) * SECOND  # two hours, six times as fast
    assert "6 times" in found.about
    path = tmp_path / "odd.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match="no column that looks like"):
        from_file(str(path))
