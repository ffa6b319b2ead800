"""Rows that are shed over TCP: reports, replies, pushes, the log, metrics, the shell."""

from __future__ import annotations

import io
import logging

from dsms.api import IngestReport
from dsms.engine import Engine
from dsms.intake.shedding import LEAST, Shedder
from dsms_client import connect
from dsms_client.shell.runner import Runner
from dsms_server.intake import Told
from tests.server.test_server_groups import held

S = 1_000_000
DECLARE = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t WITH (shed = random);
CREATE STREAM whole (k INT, t TIMESTAMP) TIMESTAMP BY t WITH (shed = none);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 min SLIDE 1 s] GROUP BY k;
CREATE QUERY w AS SELECT k, COUNT(*) AS n FROM whole [RANGE 1 min SLIDE 1 s] GROUP BY k;
"""


def test_replies_pushes_the_log_and_the_shell(serve, caplog):
    engine = Engine()
    engine.execute(DECLARE)
    engine.runtime.inputs["s"].shedder = Shedder(0.5)
    running = serve(engine)
    with connect(port=running.port) as db, caplog.at_level(logging.WARNING, "dsms.server"):
        report = db.ingest("s", {"k": [1] * 1000, "t": [0] * 1000})
        assert report.shed > 400 and report.accepted + report.shed == 1000
        assert db.ingest("whole", [[1, 0]] * 3).shed == 0
        for stream in ("s", "whole"):
            db.heartbeat(stream, 3 * S)
        share = 0.5
        for name, said in (("q", share), ("w", None)):
            assert db.query(f"SELECT * FROM {name}").share == said
            with db.subscribe(name, 0) as pushes:
                first = next(iter(pushes))
                assert first.share == said and len(first.rows) == 1
            with db.changes(name, 0) as changes:
                assert next(iter(changes)).share == said
        out, err = io.StringIO(), io.StringIO()
        Runner(lambda _: db, "csv", out, err).script("SELECT n FROM q;")
        assert "rests on 50.0% of the rows that came" in err.getvalue()
        assert "stream s sheds load" in caplog.text
        metrics = running.server.metrics.registry
        assert metrics.get_sample_value("dsms_ingested_rows_total", {"fate": "shed"}) is not None


def test_the_log_does_not_tell_of_each_frame(caplog):
    told = Told()
    with caplog.at_level(logging.WARNING, "dsms.server"):
        for number in range(40):
            shed = number % 2 if number < 20 else 0
            told.shed("s", IngestReport(1 - shed, shed=shed), float(number))
        assert [r.getMessage().split(":")[0] for r in caplog.records] == [
            "stream s sheds load",
            "stream s keeps all rows again",
        ]
        told.shed("s", IngestReport(0, shed=1), 40.0)
    assert len(caplog.records) == 3


def test_the_log_tells_of_small_frames_that_go_together(serve, caplog):
    engine = Engine()
    engine.execute(DECLARE)
    engine.runtime.inputs["s"].shedder = Shedder(LEAST)
    running = serve(engine)
    peer, gate = running.peer(), held(running)
    peer.ask("hello", version=1)
    with caplog.at_level(logging.WARNING, "dsms.server"):
        idents = [peer.send("ingest", stream="s", rows=[[1, 0]]) for _ in range(5)]
        peer.ask("ping")  # which is answered at once: what came before it waits now
        gate.set()
        assert [peer.reply(ident)["shed"] for ident in idents] == [1] * 5
    assert running.server.core.worker.grouped == 5
    assert caplog.text.count("stream s sheds load") == 1


def test_small_frames_that_wait_together_are_thinned_each(serve):
    engine = Engine()
    engine.execute(DECLARE)
    engine.runtime.inputs["s"].shedder = Shedder(0.5)
    running = serve(engine)
    with connect(port=running.port) as db:
        for number in range(200):
            db.ingest("s", [[number, 0]], wait=False)
        report = db.ingest("s", [[1, 0]])
        assert report.accepted + report.shed == 1
        db.heartbeat("s", S)
        shedder = engine.runtime.inputs["s"].shedder
        assert (shedder.offered, shedder.offered - shedder.shed) == (
            201,
            db.query("SELECT COUNT(*) FROM s").rows[0][0],
        )
