"""Answers that are approximate say so over TCP: replies, subscriptions of both kinds, the shell."""

from __future__ import annotations

import io

from dsms.engine import Engine
from dsms_client import connect
from dsms_client.shell.runner import Runner

S = 1_000_000
QUERY = "SELECT k FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k HAVING COUNT(*) > 1"
DECLARE = f"""
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY q AS {QUERY} WITH (approximate = 0.25);
CREATE QUERY exact AS {QUERY};
"""


def test_replies_pushes_and_the_shell(serve):
    running = serve(Engine())
    with connect(port=running.port) as db:
        db.execute(DECLARE)
        db.ingest("s", [[1, 0], [1, 1], [2, 9 * S]])
        assert [db.query(f"SELECT * FROM {q}").approximate for q in ("q", "exact")] == [0.25, None]
        for name, said in (("q", 0.25), ("exact", None)):
            with db.subscribe(name, 0) as pushes:
                first = next(iter(pushes))
                assert (first.rows, first.approximate) == ([(1,)], said)
            with db.changes(name, 0) as changes:
                assert next(iter(changes)).approximate == said
        out, err = io.StringIO(), io.StringIO()
        Runner(lambda _: db, "csv", out, err).script("SELECT k FROM q;")
        assert "approximate: groups may miss the threshold of HAVING by 25%" in err.getvalue()
    with running.peer() as peer:
        assert peer.ask("subscribe", query="q")["approximate"] == 0.25
        assert "approximate" not in peer.ask("subscribe", query="exact")
