"""Sources and sinks at work, over a board in this process that a stranger's entry point leads to:
what they bring and tell, how they fail and go on, and that nothing is lost or told twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dsms.errors import DsmsError
from tests.connectors import stranger
from tests.connectors.stranger import BOARDS, Board
from tests.connectors.world import World, world
from tests.waiting import wait_until

STREAM = "CREATE STREAM s (k INT, v FLOAT, place STRING)"
SOURCE = "CREATE SOURCE b INTO s FROM board WITH (board = 'one', place_column = 'place')"
QUERY = "CREATE QUERY q AS SELECT k, v FROM s"
SINK = "CREATE SINK t FROM q TO board WITH (board = 'two')"


@pytest.fixture(autouse=True)
def boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Board]]:
    """Boards one and two; the connector is installed."""
    BOARDS.clear()
    BOARDS.update(one=Board(), two=Board())
    with stranger.installed(tmp_path_factory.mktemp("wheel")):
        yield BOARDS


def messages(*keys: int) -> list[bytes]:
    return [json.dumps({"k": k, "v": k / 2, "more": [k]}).encode() for k in keys]


def keys(it: World) -> list[int]:
    return it.values("SELECT k FROM s [RANGE UNBOUNDED] ORDER BY k")


def test_messages_become_rows_and_what_is_none_is_counted():
    with world() as it:
        it.run(STREAM, SOURCE)
        BOARDS["one"].messages += [*messages(1, 2), b"{no json", b'[{"K": 3}, {"k": 4}]', b"7"]
        line = it.until("b", rows=4, state="running")
        assert (line["rejected"], line["stream"], line["kind"]) == (2, "s", "board")
        assert "no JSON" in line["last_error"]
        assert it.until("b", lag=0)["position"] == "5"
        rows = it.ask("SELECT k, v, place FROM s [RANGE UNBOUNDED] ORDER BY k")
        assert [r["k"] for r in rows] == [1, 2, 3, 4]
        assert rows[0] == {"k": 1, "v": 0.5, "place": "one/0"}
        wait_until(lambda: BOARDS["one"].committed == 5)


def test_a_fault_is_told_and_the_source_goes_on_where_it_stood():
    with world() as it:
        it.run(STREAM, SOURCE)
        board = BOARDS["one"]
        board.messages += messages(1, 2)
        it.until("b", rows=2)
        board.down = ConnectionError("nobody answers")
        line = it.until("b", state="waiting")
        assert line["last_error"] == "DS664: ConnectionError: nobody answers"
        board.down = None
        board.messages += messages(3)
        it.run("RESUME SOURCE b")
        line = it.until("b", rows=3, state="running")
        assert line["restarts"] >= 1 and board.opened[-1] == 2
        assert keys(it) == [1, 2, 3]


def test_one_that_fails_for_good_waits_for_somebody():
    with world() as it:
        BOARDS["one"].down = stranger.FAILED
        it.run(STREAM, SOURCE)
        assert it.until("b", state="failed")["last_error"].startswith("DS665: somebody has to mend")
        BOARDS["one"].down = None
        it.run("RESUME SOURCE b")
        it.until("b", state="running")


def test_a_message_that_is_none_may_stop_the_source():
    with world() as it:
        it.run(STREAM, SOURCE.replace("'one',", "'one', on_error = stop,"))
        BOARDS["one"].messages += [b"none"]
        assert it.until("b", state="failed")["last_error"].startswith("DS668: no JSON")
        BOARDS["one"].messages[0] = messages(1)[0]
        it.run("RESUME SOURCE b")
        it.until("b", rows=1)


def test_neighbours_do_not_harm_each_other():
    with world() as it:
        BOARDS["two"].down = OSError("away")
        it.run(STREAM, SOURCE.replace("SOURCE b", "SOURCE c").replace("one", "two"), SOURCE)
        BOARDS["one"].messages += messages(*range(100))
        it.until("b", rows=100)
        assert it.line("c")["state"] == "waiting"


def test_pause_and_resume_and_drop():
    with world() as it:
        it.run(STREAM, SOURCE)
        board = BOARDS["one"]
        board.messages += messages(1)
        it.until("b", rows=1)
        it.run("PAUSE SOURCE b")
        it.until("b", state="paused")
        board.messages += messages(2)
        assert keys(it) == [1]
        it.run("RESUME SOURCE b")
        it.until("b", rows=2, position="2")
        assert keys(it) == [1, 2]
        it.run("DROP SOURCE b")
        assert it.ask("SHOW SOURCES") == []
        it.run(SOURCE)  # another one, which begins at the beginning
        it.until("b", rows=2)
        assert keys(it) == [1, 1, 2, 2]


def test_a_frame_that_is_cut_off_goes_on_behind_what_was_applied_of_it():
    board = BOARDS["one"]
    board.at_once = 4000
    board.messages += [b'{"k": %d}' % k for k in range(12_000)]
    with world() as it:
        it.run(STREAM.replace(")", ") RETAIN 1 h", 1), SOURCE)
        for _ in range(5):
            it.run("PAUSE SOURCE b", "RESUME SOURCE b")
        it.until("b", position="12000")
        counted = "SELECT COUNT(*) AS n, COUNT(DISTINCT k) AS d FROM s [RANGE UNBOUNDED]"
        assert it.ask(counted) == [{"n": 12_000, "d": 12_000}]


def test_one_that_is_replaced_goes_on():
    with world() as it:
        it.run(STREAM, SOURCE)
        BOARDS["one"].messages += messages(1)
        it.until("b", rows=1)
        it.run(
            SOURCE.replace("CREATE", "CREATE OR REPLACE").replace(", place_column = 'place'", "")
        )
        BOARDS["one"].messages += messages(2)
        it.until("b", position="2")
        rows = it.ask("SELECT k, place FROM s [RANGE UNBOUNDED] ORDER BY k")
        assert rows == [{"k": 1, "place": "one/0"}, {"k": 2, "place": None}]


def test_a_restart_resumes_exactly(tmp_path):
    board = BOARDS["one"]
    board.messages += messages(*range(10))
    with world(tmp_path) as it:
        it.run(STREAM.replace(")", ") RETAIN 1 h", 1), SOURCE)
        it.until("b", rows=10)
    board.messages += messages(*range(10, 20))
    with world(tmp_path) as it:
        it.until("b", rows=10, position="20")
        assert keys(it) == list(range(20))
        assert board.opened == [None, 10]
        it.run("PAUSE SOURCE b")
    with world(tmp_path) as it:
        assert it.line("b")["state"] == "paused"


def told(board: Board) -> list[int]:
    return [number for number, _ in board.written]


def test_results_are_told_in_order_with_their_numbers():
    with world() as it:
        it.run(STREAM, QUERY, SINK)
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1, 2, 3]})
        line = it.until("t", "sink", rows=3, lag=0)
        assert (line["position"], line["query"]) == ("3", "q")
        assert BOARDS["two"].written == [(n, {"k": n + 1, "v": None}) for n in range(3)]


def test_a_sink_that_was_not_acknowledged_tells_again_unless_the_other_side_knows():
    for keeps in (False, True):
        board = BOARDS["two"] = Board()
        board.keeps = keeps
        with world() as it:
            it.run(STREAM, QUERY, SINK)
            it.until("t", "sink", state="running")
            board.fails_behind = True
            it.client.ingest("s", {"k": [1, 2]})
            it.until("t", "sink", state="waiting")
            board.fails_behind = False
            it.run("RESUME SINK t")
            it.client.ingest("s", {"k": [3]})
            it.until("t", "sink", state="running", position="3")
            if keeps:
                assert told(board) == [0, 1, 2]
            else:
                assert told(board)[:4] == [0, 1, 0, 1] and told(board)[-1] == 2


def test_a_sink_goes_on_after_a_restart(tmp_path):
    with world(tmp_path) as it:
        it.run(STREAM, QUERY, SINK)
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1]})
        it.until("t", "sink", rows=1)
        it.run("PAUSE SINK t")
        it.until("t", "sink", state="paused")
        it.client.ingest("s", {"k": [2]})
    with world(tmp_path) as it:
        it.run("RESUME SINK t")
        it.client.ingest("s", {"k": [3]})
        it.until("t", "sink", position="3")
        assert told(BOARDS["two"]) == [0, 1, 2]
        assert BOARDS["two"].opened[-1] == {"upto": 1}


def test_a_view_is_told_whole_and_then_what_changes():
    with world() as it:
        it.run(
            STREAM,
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
        )
        it.client.ingest("s", {"k": [1]})
        it.run(SINK)
        it.until("t", "sink", rows=1)
        it.client.ingest("s", {"k": [1]})
        it.until("t", "sink", rows=3)
        rows = [{k: v for k, v in row.items() if k != "$at"} for _, row in BOARDS["two"].written]
        assert rows == [
            {"k": 1, "n": 1, "$sign": 1},
            {"k": 1, "n": 1, "$sign": -1},
            {"k": 1, "n": 2, "$sign": 1},
        ]


def test_a_sink_that_begins_at_the_beginning_and_one_whose_log_is_gone():
    with world() as it:
        it.run(STREAM, f"{QUERY} WITH (result_log = 5)")
        it.client.ingest("s", {"k": [1, 2]})
        it.run(SINK.replace("'two'", "'two', start = beginning"))
        it.until("t", "sink", rows=2)
        it.run("PAUSE SINK t")
        it.until("t", "sink", state="paused")
        for k in range(40):
            it.client.ingest("s", {"k": [k]})
        it.run("RESUME SINK t")
        assert "can't be had" in it.until("t", "sink", state="failed")["last_error"]


def test_what_feeds_or_reads_goes_with_it():
    with world() as it:
        it.run(STREAM, QUERY, SOURCE, SINK)
        for statement in ("DROP QUERY q", "DROP STREAM s"):
            with pytest.raises(DsmsError, match=r"sink t|read by q") as caught:
                it.run(statement)
            assert caught.value.code == "DS405"
        it.run("DROP STREAM s CASCADE")
        assert it.ask("SHOW SOURCES") == it.ask("SHOW SINKS") == []


def test_figures_for_prometheus():
    with world(http_port=0) as it:
        it.run(STREAM, QUERY, SOURCE, SINK)
        BOARDS["one"].messages += messages(1, 2)
        it.until("t", "sink", rows=2)
        text = it.running.server.metrics.text().decode()
        assert 'dsms_source_rows{source="b"} 2.0' in text
        assert 'dsms_sink_rows{sink="t"} 2.0' in text
        assert 'dsms_source_up{source="b"} 1.0' in text


def test_libraries_and_wheels_that_are_not_there():
    with world() as it:
        it.run(STREAM)
        for name, code, text in (
            ("needy", "DS663", "pip install 'dsms[needy]'"),
            ("nothing", "DS669", "no Connector"),
            ("broken", "DS669", "can't be loaded"),
            ("bord", "DS447", "did you mean `board`"),
        ):
            with pytest.raises(DsmsError) as caught:
                it.run(f"CREATE SOURCE x INTO s FROM {name} WITH (board = 'one')")
            problem = caught.value
            assert problem.code == code and text in f"{problem.message} {problem.hint}"
