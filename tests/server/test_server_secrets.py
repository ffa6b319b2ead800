"""Where the token comes from, which peers reach a server without one, and which users may read its
files."""

from __future__ import annotations

import os
import re
import stat
from threading import Event

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms_client import tokens
from dsms_client.cli import main
from dsms_server import config
from dsms_server import serve as serving


@pytest.fixture
def started(monkeypatch):
    """The configurations that servers were started with."""
    found = []
    monkeypatch.setattr(serving, "run", lambda config, *rest: found.append(config) or 0)
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "token"
    path.write_text("from a file\n")
    return str(path)


def test_the_token_of_a_server(started, file, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DSMS_TOKEN", "of the environment")
    toml = tmp_path / "dsms.toml"
    toml.write_text(f"token-file = {file!r}")
    for words in ([], ["--config", str(toml)], ["--token-file", file]):
        assert main(["serve", *words]) == 0
    assert capsys.readouterr().err == ""
    assert main(["serve", "--config", str(toml), "--token", "said"]) == 0
    assert (
        capsys.readouterr().err
        == "note: `ps` shows the token of --token; --token-file FILE or DSMS_TOKEN keep it to you\n"
    )
    monkeypatch.setenv("DSMS_TOKEN", "")
    assert main(["serve"]) == 0
    assert [c.token for c in started] == [
        "of the environment",
        "from a file",
        "from a file",
        "said",
        None,
    ]


def test_the_token_of_a_client(serve, file, monkeypatch, capsys):
    running = serve(token="from a file")
    words = ["shell", "--port", str(running.port), "--format", "csv", "-c", "SELECT 1"]
    assert main([*words, "--token-file", file]) == 0
    monkeypatch.setenv("DSMS_TOKEN", "from a file")
    assert main(words) == 0
    out = capsys.readouterr()
    assert (out.out.split(), out.err) == (["1"] * 4, "")
    assert main([*words, "--token", "from a file"]) == 0
    assert "`ps` shows the token" in capsys.readouterr().err
    monkeypatch.setenv("DSMS_TOKEN", "wrong")
    assert main(words) == 2


@pytest.mark.parametrize("text", ["", "\n", "a\nb\n"])
def test_a_file_that_holds_no_token(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(UsageError, match=r"DS640.*holds no token"):
        tokens.read(str(tmp_path / "token"))
    with pytest.raises(UsageError, match=r"DS640.*cannot read the token from .*none: No such file"):
        tokens.read(str(tmp_path / "none"))
    (tmp_path / "c.toml").write_text(f"token = 'a'\ntoken-file = '{tmp_path}/token'")
    with pytest.raises(UsageError, match="both given"):
        config.from_file(str(tmp_path / "c.toml"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "example.org"])
def test_a_server_that_others_reach_asks_for_a_token(host):
    with pytest.raises(UsageError, match=r"DS645.*could do everything.*\nHINT: .*--open"):
        config.build({"host": host})
    assert config.build({"host": host, "token": "x"}).host == host
    assert config.build({"host": host, "open": True}).host == host
    with pytest.raises(UsageError, match="DS640"):
        config.build({"host": host, "token": ""})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_own_machine_needs_no_token(host):
    assert config.build({"host": host}).token is None


def test_open_is_said_on_the_command_line(started, capsys):
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "DS645" in capsys.readouterr().err
    assert main(["serve", "--host", "0.0.0.0", "--open"]) == 0
    assert [(c.host, c.open) for c in started] == [("0.0.0.0", True)]


def test_data_folders_are_their_owners(tmp_path):
    before = os.umask(0)
    try:
        data = tmp_path / "a" / "data"
        engine = Engine(str(data))
        engine.execute(
            "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY q AS SELECT k FROM s"
        )
        engine.execute("CREATE TABLE r (k INT PRIMARY KEY); INSERT INTO r VALUES (1)")
        engine.ingest("s", [[1, 1]])
        engine.close()
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [data, *data.rglob("*")]}
    assert len(modes) > 5
    assert {m for path, m in modes.items() if path.is_dir()} == {0o700}
    assert {m for path, m in modes.items() if path.is_file()} == {0o600}


def test_folders_that_others_may_look_into_are_named(tmp_path, caplog):
    data = tmp_path / "data"
    serving.make_folder(str(data))
    serving.warn_of_readers(str(data))
    serving.warn_of_readers(None)
    assert caplog.text == ""
    data.chmod(0o750)
    serving.warn_of_readers(str(data))
    assert re.search(r"others on this machine may look into .*data: `chmod -R go= ", caplog.text)


def test_a_server_may_stop_while_a_password_is_looked_at(serve, caplog):
    engine = Engine()
    engine.execute("CREATE USER bob PASSWORD 'correct horse'")
    running, gate, asked = serve(engine, token="of-admin", auth=True), Event(), Event()

    def slowly(user: str, password: str) -> None:
        asked.set()
        assert gate.wait(60)

    running.server.identities.by_password = slowly
    with running.peer() as peer:
        peer.send("hello", version=1, user="bob", password="correct horse")
        assert asked.wait(60)
        running.await_(running.server.stop())
        gate.set()
        running.server.hashing.shutdown(wait=True)
        running.on_loop(lambda: None)  # what was found was told before
    assert caplog.text == ""
