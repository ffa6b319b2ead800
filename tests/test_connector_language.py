"""What the language says of sources and sinks, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.secret_texts import is_secret, without_secrets
from dsms.settings import Settings
from dsms_client.commands.dump import dump
from tests.connectors import stranger
from tests.connectors.stranger import BOARDS, Board
from tests.connectors.world import world
from tests.waiting import wait_until

DECLARED = (
    "CREATE STREAM s (k INT)",
    "CREATE QUERY q AS SELECT k FROM s",
    "CREATE SOURCE b INTO s FROM board WITH (board = 'one', on_error = stop, paused = TRUE)",
    "CREATE SINK \"My Sink\" FROM q TO board WITH (board = 'one', password = env('DSMS_SECRET_X'))",
)


@pytest.fixture(autouse=True)
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    BOARDS.clear()
    BOARDS["one"] = Board()
    with stranger.installed(tmp_path_factory.mktemp("wheel")):
        yield


def test_what_is_declared_is_shown_as_it_was_said():
    with world() as it:
        it.run(*DECLARED)
        shown = [*it.ask("SHOW CREATE SOURCE b"), *it.ask('SHOW CREATE SINK "My Sink"')]
        assert [line["statement"] for line in shown] == [
            "CREATE SOURCE b INTO s FROM board WITH (board = one, on_error = stop, paused = TRUE)",
            'CREATE SINK "My Sink" FROM q TO board WITH (board = one, password = '
            "env('DSMS_SECRET_X'))",
        ]
        assert it.line("b")["state"] == "paused"
        text = "\n".join(dump(it.client, False))
    with world() as other:
        other.run(text)
        assert other.ask("SHOW CREATE SOURCE b") == shown[:1]
        assert other.values("SHOW SINKS") == ["My Sink"]


def test_a_renamed_stream_is_still_fed():
    with world() as it:
        it.run(*DECLARED, "ALTER STREAM s RENAME TO r", "RESUME SOURCE b")
        BOARDS["one"].messages.append(b'{"k": 1}')
        it.until("b", rows=1, stream="r")
        (line,) = it.ask("SHOW CREATE SOURCE b")
        assert " INTO r FROM " in line["statement"]


@pytest.mark.parametrize(
    "statement, code, text",
    [
        ("CREATE SOURCE b INTO s FROM board WITH (board = 'one')", "DS450", "OR REPLACE"),
        ("CREATE SOURCE x INTO r FROM board WITH (board = 'one')", "DS401", "no stream r"),
        ("CREATE SOURCE x INTO q FROM board WITH (board = 'one')", "DS451", "q is no stream"),
        ("CREATE SINK x FROM s TO board WITH (board = 'one')", "DS451", "CREATE QUERY"),
        ("CREATE SOURCE x INTO s FROM nowhere", "DS447", "there are board"),
        ("CREATE SOURCE x INTO s FROM webhook", "DS447", "it is a sink alone"),
        ("CREATE SOURCE x INTO s FROM board", "DS448", "needs the option board"),
        ("CREATE SOURCE x INTO s FROM board WITH (bord = 'one')", "DS448", "did you mean `board`"),
        ("CREATE SOURCE x INTO s FROM board WITH (board = TRUE)", "DS448", "is a text"),
        (
            "CREATE SOURCE x INTO s FROM board WITH (board = 'one', on_error = hm)",
            "DS448",
            "one of skip, stop",
        ),
        (
            "CREATE SOURCE x INTO s FROM board WITH (board = 'one', format = hm)",
            "DS448",
            "there is no format hm",
        ),
        (
            "CREATE SOURCE x INTO s FROM board WITH (board = 'one', password = 'geheim')",
            "DS449",
            "env('DSMS_SECRET_...')",
        ),
        (
            "CREATE SOURCE x INTO s FROM board WITH (board = 'a://u:geheim@h')",
            "DS449",
            "holds a secret",
        ),
        ("DROP SOURCE x", "DS401", "no source x"),
        ("PAUSE SINK b", "DS401", "no sink b"),
        ("SHOW CREATE SOURCE x", "DS401", "no source x"),
        ("CREATE OR REPLACE SOURCE IF NOT EXISTS x INTO s FROM board", "DS109", "not both"),
        ("CREATE SOURCE x INTO s FROM board WITH (board = his('X'))", "DS112", "env('NAME')"),
    ],
)
def test_what_is_refused(statement, code, text):
    with world() as it:
        it.run(*DECLARED)
        with pytest.raises(DsmsError) as caught:
            it.run(statement)
        problem = caught.value
        assert problem.code == code
        assert text in f"{problem.message} {problem.hint}"
        assert "geheim" not in f"{problem.message} {problem.hint}"


def test_an_engine_in_a_program_runs_none():
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT)")
    with pytest.raises(DsmsError) as caught:
        engine.execute("CREATE SOURCE b INTO s FROM board WITH (board = 'one')")
    assert caught.value.code == "DS446"


def test_it_opens_a_folder_of_a_server_and_shows_what_is_there(tmp_path):
    with world(tmp_path) as it:
        it.run(*DECLARED)
    engine = Engine(str(tmp_path), Settings(timer=lambda: 0.0))
    try:
        (rows,) = engine.execute("SHOW SOURCES")
        assert rows.data.to_pylist()[0]["state"] == "paused"
        engine.execute("DROP SOURCE b")
    finally:
        engine.close()
    with world(tmp_path) as it:
        assert it.ask("SHOW SOURCES") == []
        assert it.values("SHOW SINKS") == ["My Sink"]


def test_secrets_come_from_variables_and_files_and_are_not_shown(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("geheimer\n")
    monkeypatch.setenv("DSMS_SECRET_X", "geheim")
    monkeypatch.setenv("HOME_X", "other")
    with world(secrets=str(tmp_path)) as it:
        it.run(DECLARED[0])
        for secret, error in (
            ("env('DSMS_SECRET_X')", None),
            ("file('key')", None),
            ("env('HOME_X')", "DS667: the variable HOME_X is not for sources"),
            ("env('DSMS_SECRET_Y')", "DS667: the server has no variable"),
            ("file('../key')", "DS667: there is no secret"),
        ):
            it.run(
                "CREATE OR REPLACE SOURCE x INTO s FROM board WITH (board = 'one', password = "
                f"{secret})"
            )
            line = it.until("x", state="running" if error is None else "failed")
            assert error is None or line["last_error"].startswith(error)
        BOARDS["one"].down = ConnectionError("user me with geheim is not known")
        it.run(
            "CREATE OR REPLACE SOURCE x INTO s FROM board WITH (board = 'one', password = "
            "env('DSMS_SECRET_X'))"
        )
        wait_until(lambda: it.line("x")["last_error"] is not None, "an error")
        assert "user me with *** is" in it.line("x")["last_error"]


def test_logs_show_no_secrets_of_statements():
    said = "CREATE SOURCE x INTO s FROM mqtt WITH (url = 'mqtt://u:pw@h', sasl_password = 'pw')"
    assert is_secret(said) and "pw'" not in without_secrets(said)
    assert is_secret("CREATE SINK x FROM q TO webhook WITH (api_token = 'pw')")
    assert not is_secret("CREATE SINK x FROM q TO mqtt WITH (password = env('X'), topic = 'a')")
    assert not is_secret("SELECT * FROM source WHERE k = 1")


def test_they_are_made_by_administrators():
    with world() as it:
        it.run(*DECLARED, "CREATE USER u TOKEN", "GRANT ADMIN ON s TO u")
        engine = it.engine
        for statement in (
            "CREATE SOURCE y INTO s FROM board WITH (board = 'one')",
            "DROP SOURCE b",
            "PAUSE SOURCE b",
            "SHOW SOURCES",
            "SHOW CREATE SOURCE b",
        ):
            with pytest.raises(DsmsError) as caught:
                engine.execute(statement, user="u")
            assert caught.value.code == "DS670"
