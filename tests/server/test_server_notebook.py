"""A live widget over TCP."""

from __future__ import annotations

import asyncio
import queue

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms_client import connect, connect_async
from tests.waiting import WAIT


def test_a_widget_follows_a_server(serve):
    pytest.importorskip("anywidget", reason="the extra `notebook` is not installed")
    from dsms_client.notebook import Live

    with connect(port=serve(Engine()).port) as db:
        db.execute(
            "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;"
            "CREATE QUERY n AS SELECT COUNT(*) AS n FROM s [RANGE 1 h];"
            "CREATE QUERY k AS SELECT k FROM s"
        )
        seen: queue.Queue = queue.Queue()
        with pytest.raises(UsageError, match="DS401"):
            Live(db, "nothing")
        for query in ("n", "k"):
            live = Live(db, query, seconds=0)
            live.observe(lambda change: seen.put((change.owner.query, change.new)), "frame")
        waited = {"n": [["3"]], "k": [["1"], ["2"], ["3"]]}
        db.ingest("s", [[1, 0], [2, 1], [3, 2]])
        db.heartbeat("s", 2)
        while waited:
            query, frame = seen.get(timeout=WAIT)
            if frame["rows"] == waited.get(query):
                del waited[query]

        async def there():
            async with await connect_async(port=db.work(port_of)) as client:
                live, came = Live(client, "n", seconds=0), asyncio.Event()
                live.observe(lambda change: came.set(), "frame")
                await came.wait()
                live.close()
                return live.frame["rows"]

        assert asyncio.run(there()) == [["3"]]


async def port_of(client):
    return client.port
