"""Text of others: on terminals without its control characters, in errors not at full length, and
its bytes released."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

from dsms.errors import QUOTED, WHOLE, UsageError, brief
from dsms_client import columns
from dsms_client.shell import live, show
from dsms_client.shell.runner import Runner
from dsms_client.visible import for_screen, prose, visible
from dsms_server.config import Config
from dsms_server.serve import make_engine

EVIL = "a\x1b[2Jb\x07\x9b1m\x7f\r\n\tc\u202ed\u2028e\ufeff"
SEEN = "a\\x1b[2Jb\\x07\\x9b1m\\x7f\\r\\n\\tc\\u202ed\\u2028e\\ufeff"
STEERS = set("\x1b\x07\x9b\x7f\r\u202e\u2028\ufeff")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_steers_a_terminal_is_shown():
    assert visible(EVIL) == SEEN
    assert visible("Grüße, 世界 🙂 \\x1b") == "Grüße, 世界 🙂 \\x1b"
    assert prose("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert for_screen(EVIL, io.StringIO()) == EVIL
    assert not STEERS & set(for_screen(EVIL, Screen()))


@pytest.mark.parametrize("form", ["table", "vertical"])
def test_forms_for_people_hold_no_control_characters(form):
    lines = list(show.render([EVIL, "n"], ["STRING", "INT"], [[EVIL, 1], ["x", 2]], form))
    assert not any(set(line) & (STEERS | {"\n", "\t"}) for line in lines)
    assert any(SEEN in line for line in lines)


def test_data_are_exact_where_no_terminal_is():
    assert '"' + EVIL + '"' in "\n".join(show.render(["s"], ["STRING"], [[EVIL]], "csv"))
    (line,) = show.render(["s"], ["STRING"], [[EVIL]], "json")
    assert json.loads(line) == {"s": EVIL}


def test_results_that_are_watched():
    push = pushed()
    (line,) = live.push_lines(push, ("STRING",), "table")
    assert line.endswith(SEEN) and not STEERS & set(line)
    (line,) = live.push_lines(push, ("STRING",), "csv")
    assert EVIL in line


def pushed():
    class One:
        kind, at, columns, instants, rows, message = "insert", 0, ("s",), [0], [(EVIL,)], None

    return One()


@pytest.mark.parametrize("screen", [True, False])
@pytest.mark.parametrize("form", ["table", "vertical", "csv", "json"])
def test_the_shell(server, form, screen):
    from dsms_client.sync import connect

    out, err = Screen() if screen else io.StringIO(), io.StringIO()
    with server.peer() as peer:
        peer.ask("execute", sql="CREATE STREAM texts (t STRING)")
        peer.ask("ingest", stream="texts", rows=[[EVIL]])
    runner = Runner(lambda line: connect(port=server.port, data="rows"), form, out, err)
    with runner.client:
        assert runner.script("SELECT * FROM texts;")
        assert not runner.script("\x1b[31mNONSENSE\x07 x;")
    exact = not screen and form in ("csv", "json")
    assert bool(STEERS & set(out.getvalue())) == exact
    assert "\\x1b[31mNONSENSE" in err.getvalue() and not STEERS & set(err.getvalue())


def test_a_caret_stands_below_its_place():
    problem = UsageError("DS100", "no\x1b", 1, 4)
    assert list(show.error(problem, "\x1bab\x07c")) == [
        "UsageError DS100 at line 1, column 4: no\\x1b",
        "  \\x1bab\\x07c",
        "        ^",
    ]


def test_messages_quote_little():
    long = "x" * 10_000
    for text in (
        f"unknown column `{long}`",
        f"no stream '{long} {long}' here",
        f"{long}: expected INT",
        f'a "{long}"',
    ):
        assert len(brief(text)) < QUOTED + 40 and "…" in brief(text)
    names = (
        "it can't be, known names: "
        + ", ".join(f"`n{i}`" for i in range(200))
        + " and it isn't 'so'"
    )
    assert brief(names) == names
    assert len(brief("a b " * 10_000)) == WHOLE + 1
    assert UsageError("DS1", f"`{long}`", hint=long).fields()["hint"] == "x" * QUOTED + "…"


@pytest.fixture
def engine(serve):
    running = serve(make_engine(Config()))
    with running.peer() as peer:
        peer.ask("execute", sql="CREATE STREAM s (k INT, v STRING)")
    return running


def test_replies_quote_little(engine):
    long = "x" * 50_000
    with engine.peer() as peer:
        replies = [
            peer.ask("execute", sql=f"SELECT {long} FROM s"),
            peer.ask("execute", sql=f"SELECT k FROM {long}"),
            peer.ask("execute", sql=f"SELECT '{long} {long}' + 1 FROM s [ROWS 1]"),
            peer.ask("execute", sql=f"{long} "),
            peer.ask("execute", sql=f"CREATE STREAM u (k {long})"),
            peer.ask("execute", **{long: 1}),
            peer.ask(long),
            peer.ask("ingest", stream=long, rows=[[1, "x"]]),
            peer.ask("ingest", stream="s", columns={long: [1]}),
            peer.ask("ingest", stream="s", columns={"k": [long], "v": ["x"]}),
            peer.ask("ingest", stream="s", rows=[[long, "x"]]),
            peer.ask("subscribe", query=long),
            peer.ask("unsubscribe", query=long),
            peer.ask("hello", version=1, data=long),
        ]
    for reply in replies:
        said = [*reply.get("reasons", []), *map(str, reply.get("error", {}).values())]
        assert said and all(len(text) < 1000 and "x" * (QUOTED + 1) not in text for text in said), (
            said
        )
    while engine.on_loop(lambda: len(engine.server.sessions)):
        pass
    assert engine.server.unprocessed == 0


def misnamed(names):
    """An Arrow stream whose columns have these names, which need not be text."""
    batch = pa.record_batch(
        [pa.array([1]), pa.array([{"inner1": 1}])], names=["column1", "column2"]
    )
    data = bytes(columns.ipc(batch))
    for old, new in names.items():
        assert old in data
        data = data.replace(old, new)
    return data


@pytest.mark.parametrize("name", [b"column1", b"column2", b"inner1"])
@pytest.mark.parametrize("padding", [0, 200_000])
def test_an_arrow_column_whose_name_is_no_text(engine, name, padding):
    data = misnamed({name: b"\xff\xfe" + name[2:]}) + bytes(padding)
    with engine.peer() as peer, engine.peer() as other:
        for stream in ("s", "nothing"):
            assert peer.ask("ingest", stream=stream, arrow=data)["error"]["code"].startswith("DS")
        # while this is on its way, the engine's thread reads
        peer.send("execute", sql="CREATE STREAM fresh (k INT)")
        assert "error" in peer.ask("ingest", stream="fresh", arrow=data)
        assert peer.ask("ping")["ok"] and other.ask("ping")["ok"]
    assert engine.on_loop(lambda: engine.server.unprocessed) == 0
    engine.on_loop(engine.server.update_gauges)
    assert engine.server.metrics.unprocessed._value.get() == 0
