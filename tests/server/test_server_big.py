"""Answers of any size: up to the limit they arrive; over it the error names it, and the session
goes on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from harness import WAIT

from dsms.engine import Engine
from dsms_client import UsageError, connect

ROWS = (1 << 20) + 1000  # more items than an array of a request may have


@pytest.fixture(scope="module")
def engine():
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")
    engine.execute(
        "CREATE QUERY q AS SELECT k FROM s [RANGE 2 s SLIDE 2 s] WITH (result_log = 2000000)"
    )
    whole = pa.array(range(ROWS), pa.int64())
    for first in range(0, ROWS, 100_000):
        piece = whole.slice(first, 100_000)
        engine.ingest("s", pa.table({"k": piece, "t": piece}))
    engine.heartbeat("s", 3_000_000)
    return engine


@pytest.mark.parametrize("form", ["rows", "arrow", "auto"])
def test_more_rows_than_a_request_may_have_arrive(serve, engine, form):
    running = serve(engine)
    with connect(port=running.port, data=form) as client:
        answer = client.query("SELECT k FROM s [RANGE 1 DAY]")
        assert len(answer) == ROWS
        assert (answer.rows[0], answer.rows[-1]) == ((0,), (ROWS - 1,))
        client.ping()
        assert client.query("SELECT 1").rows == [(1,)]


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_boundary_of_more_rows_arrives(serve, engine, form):
    running = serve(engine)
    with connect(port=running.port, data=form) as client, client.subscribe("q", 0) as results:
        push = results.next(WAIT)
        assert (push.kind, push.at, len(push)) == ("result", 2_000_000, ROWS)
        assert push.rows[-1] == (ROWS - 1,)


def test_rows_that_no_frame_can_hold_are_refused_once(serve):
    """They were sent again and again, over ever new connections."""
    running = serve(max_frame=100_000)
    with connect(port=running.port) as client:
        client.execute("CREATE STREAM t (a STRING)")
        with pytest.raises(
            UsageError, match=r"DS601: a frame of \d+ bytes is over the limit of 100000"
        ):
            client.ingest("t", [["x" * 200_000]])
        with pytest.raises(UsageError, match=r"DS611: .* is over the limit of 100000"):
            client.execute("x" * 200_000)
        assert client.ingest("t", [["x"]]).accepted == 1


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_over_the_limit_the_session_goes_on(serve, engine, form):
    running = serve(engine, max_reply=100_000)
    with connect(port=running.port, data=form, reconnect_seconds=0) as client:
        with pytest.raises(
            UsageError, match=r"DS623: the answer is larger than the 100000 bytes"
        ) as caught:
            client.query("SELECT k FROM s [RANGE 1 DAY]")
        assert "LIMIT" in caught.value.hint and "max_reply" in caught.value.hint
        assert ("Arrow" in caught.value.hint) == (form == "rows")
        assert len(client.query("SELECT k FROM s [RANGE 1 DAY] ORDER BY k LIMIT 1000")) == 1000
