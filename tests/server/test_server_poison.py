"""Requests that meet a fault: each has its answer, the session goes on, the log stays short, and a
client that has lost the server twice over the same rows sends them no more."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pyarrow as pa
import pytest
from harness import Proxy

from dsms.errors import UsageError
from dsms_client.aio import AsyncClient
from dsms_client.sync import connect
from dsms_server import answers, decode, hello, requests, session
from dsms_server.quiet import Sparing
from dsms_server.server import Server
from tests.faults.arrow_seeds import seeds, stream_bytes

POISON = "deadly"


def fail(*args, **options):
    raise RuntimeError("a fault")


# -- the server ------------------------------------------------------------------------------------


def poisoned_frames():
    view = pa.array(["a text of over twelve bytes"] * 3, pa.string_view())
    yield stream_bytes(
        pa.table({"k": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), view)})
    )
    yield stream_bytes(pa.table({"k": pa.DictionaryArray.from_arrays(pa.array([0, 1]), view)}))
    yield stream_bytes(pa.table({"abc": [1]})).replace(b"abc", b"\xff\xfec")
    yield stream_bytes(pa.table({"k": pa.nulls(2, pa.decimal256(20, 16777218))}))
    yield stream_bytes(pa.table({"k": pa.nulls(2, pa.timestamp("us", "abc"))})).replace(
        b"abc", b"\xff\xfec"
    )
    yield from seeds()
    yield b""


@pytest.mark.parametrize("padding", [0, 100_000])
def test_every_frame_has_its_answer(server, padding, caplog):
    """Decoded on the event loop, or in another thread."""
    with server.peer() as peer:
        for data in poisoned_frames():
            reply = peer.ask("ingest", stream="s", arrow=data + bytes(padding))
            assert "accepted" in reply or reply["error"]["code"] in ("DS501", "DS503", "DS510"), (
                reply
            )
        assert peer.ask("ingest", stream="s", rows=[[1, 0.5]])["accepted"] == 1
    assert not caplog.records


@pytest.mark.parametrize(
    ("where", "what", "ask"),
    [
        (decode, "_payload", ("ingest", {"stream": "s", "rows": [[1, 0.5]]})),
        (decode, "_payload", ("ingest", {"stream": "s", "rows": [[1, 0.5]] * 20_000})),
        (decode, "to_batch", ("ingest", {"stream": "s", "rows": [[1, 0.5]]})),
        (hello, "FORMS", ("hello", {"version": 1})),
        (answers, "result_reply", ("execute", {"sql": "SELECT 1"})),
        (requests, "report_fields", ("ingest", {"stream": "s", "rows": []})),
        (requests, "EngineJob", ("heartbeat", {"stream": "s", "ts": 1})),
    ],
)
def test_a_fault_anywhere_is_answered_and_logged_once(
    server, monkeypatch, caplog, where, what, ask
):
    op, fields = ask
    with server.peer() as peer:
        with monkeypatch.context() as patched:
            patched.setattr(where, what, _Faulty() if what == "FORMS" else fail)
            error = peer.ask(op, **fields)["error"]
        assert error["code"] == "DS900" and "RuntimeError: a fault" in error["message"]
        assert [r.levelname for r in caplog.records] == ["ERROR"]
        assert peer.ask("execute", sql="SELECT 1")["results"][0]["rows"] == [[1]]
    while server.on_loop(lambda: len(server.server.sessions)):
        pass
    assert server.server.unprocessed == 0


def test_a_fault_before_any_request_closes_with_words(server, monkeypatch):
    with server.peer() as peer, monkeypatch.context() as patched:
        patched.setattr(session, "decoded", fail)
        peer.send("ping")
        assert peer.read()["error"]["code"] == "DS900"
        assert peer.rest() == b""
    with server.peer() as peer:
        assert peer.ask("ping")["ok"]


class _Faulty:
    def __contains__(self, item):
        raise RuntimeError("a fault")


def test_a_fault_in_a_push_ends_the_subscription_with_words(server, monkeypatch, caplog):
    monkeypatch.setattr(session, "push_frames", fail)
    with server.peer() as peer, server.peer() as writer:
        peer.ask("subscribe", query="q")
        writer.ask("ingest", stream="s", rows=[[1, 0.5]])
        end = peer.push()
        assert (end["kind"], end["code"]) == ("end", "DS900")
        monkeypatch.undo()
        assert peer.ask("subscribe", query="q", **{"from": 0})["ok"]
        assert peer.push()["data"] == [[1, 0.5]]
    assert len(caplog.records) == 1


def test_words_that_cannot_be_packed(server, monkeypatch):
    def refused(*args):
        raise UsageError("DS503", "a text that is none: \udcff")

    with server.peer() as peer:
        monkeypatch.setattr(decode, "to_batch", refused)
        error = peer.ask("ingest", stream="s", rows=[[1, 0.5]])["error"]
        assert error["code"] == "DS503" and "\\udcff" in error["message"]
        assert peer.ask("ping")["ok"]


# -- the log ---------------------------------------------------------------------------------------


@pytest.fixture
def log():
    """A logger under the filter: (write, lines, clock)."""
    lines, now = [], [0.0]
    logger, handler = logging.Logger("dsms.try"), logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    sparing = Sparing(often=2, seconds=10, now=lambda: now[0], logger=lambda name: logger)
    handler.addFilter(sparing)
    logger.addHandler(handler)
    return logger, lines, now, sparing


def test_equal_lines_are_counted(log):
    logger, lines, now, sparing = log
    for number in range(100):
        logger.error("%s failed", "decoding")
        if number == 50:
            logger.error("another thing")
    assert lines == ["decoding failed", "decoding failed", "another thing"]
    now[0] = 11.0
    logger.error("a third")
    assert lines[3:] == ["decoding failed (98 times more)", "a third"]
    logger.error("%s failed", "decoding")
    assert lines[5:] == ["decoding failed"]
    sparing.flush()
    assert len(lines) == 6


def test_exceptions_of_different_kinds_are_different_lines(log):
    logger, lines, _, sparing = log
    for kind in (ValueError, KeyError) * 5:
        logger.error("failed", exc_info=kind("x"))
    assert len(lines) == 4
    sparing.flush()
    assert lines[4:] == ["failed (3 times more)"] * 2


# -- the client ------------------------------------------------------------------------------------


class Mortal(Proxy):
    """A way to a server that dies of a word: the connection breaks before the server sees it, and
    it is another one afterwards (`reborn`), or the network alone has failed."""

    def __init__(self, server: Server, word: str = POISON) -> None:
        self.server, self.reborn = server, True
        self.word, self.deaths = word.encode(), 0
        super().__init__(server.port)

    def _pipe(self, source, sink, answers):
        seen = b""
        try:
            while piece := source.recv(65536):
                seen = seen[-len(self.word) :] + piece
                if not answers and self.word in seen:
                    self.deaths += 1
                    self.server.run += "x" * self.reborn
                    return
                sink.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(2)
                end.close()


@pytest.fixture
def mortal(serve):
    running = serve()
    with running.peer() as peer:
        assert peer.ask(
            "execute", sql="CREATE STREAM w (word STRING); CREATE QUERY q AS SELECT * FROM w"
        )["ok"]
    proxy = Mortal(running.server)
    yield proxy
    proxy.close()


def words(db):
    return [row[0] for row in db.query("SELECT * FROM w").rows]


def test_rows_that_end_the_server_are_given_up(mortal):
    with connect(port=mortal.port) as db:
        db.ingest("w", [["a"]])
        with pytest.raises(
            UsageError, match=r"DS614: .* was lost 2 times while it was at work on `ingest` for w"
        ):
            db.ingest("w", [[POISON]])
        assert mortal.deaths == 2
        db.ingest("w", [["b"]])
        assert words(db) == ["a", "b"]


def test_a_network_is_given_more_time_than_a_server(mortal):
    mortal.reborn = False
    with connect(port=mortal.port) as db:
        with pytest.raises(
            UsageError, match=r"DS614: .* was lost 5 times while it was at work on `ingest` for w"
        ):
            db.ingest("w", [[POISON]])
        assert mortal.deaths == 5
        assert words(db) == []


def test_among_frames_under_way_the_deadly_one_is_found(mortal):
    async def run():
        async with AsyncClient(port=mortal.port) as db:
            for number in range(20):
                await db.ingest("w", [[POISON if number == 7 else str(number)]], wait=False)
            with pytest.raises(UsageError, match="DS614"):
                await db.flush()
            await db.ingest("w", [["after"]])
            return (await db.query("SELECT * FROM w")).rows

    rows = [row[0] for row in asyncio.run(run())]
    assert rows == [*(str(n) for n in range(20) if n != 7), "after"]
    assert mortal.deaths in (2, 3)


def test_a_subscription_that_ends_the_server_is_given_up(mortal):
    mortal.word = b"subscribe"
    with connect(port=mortal.port) as db:
        with pytest.raises(
            UsageError, match=r"DS614: .* was lost 5 times .* the subscription to q"
        ):
            db.subscribe("q")
        assert mortal.deaths == 5
        db.ping()


def test_a_subscription_that_goes_on_is_given_up_too(mortal):
    with connect(port=mortal.port) as db:
        results = db.subscribe("q")
        mortal.word = b"subscribe"
        mortal.cut()
        with pytest.raises(UsageError, match="DS614"):
            next(results)
        db.ping()
