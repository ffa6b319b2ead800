"""A server with users: who comes in, what a session may do, and what ends when that changes."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms_client import protocol
from dsms_client.cli import main
from dsms_client.sync import connect
from dsms_server import config
from dsms_server import serve as serving
from tests.waiting import wait_until

ADMIN = "the-token-of-the-administrator"
ALICE = "a-token-that-is-alices-alone"
SECOND = 1_000_000
DECLARED = f"""
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR MAX FUTURE 1 HOUR;
CREATE STREAM hidden (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 HOUR];
CREATE USER alice TOKEN '{ALICE}'; CREATE USER bob PASSWORD 'correct horse';
GRANT SELECT ON s TO alice WHERE v < 3; GRANT INSERT ON s TO alice; GRANT SUBSCRIBE ON q TO alice, bob;
"""  # noqa: E501


@pytest.fixture
def running(serve):
    engine = Engine()
    engine.execute(DECLARED)
    return serve(engine, token=ADMIN, auth=True, guess_seconds=0)


def hello(peer, **shown):
    return peer.ask("hello", version=1, **shown)


def code(reply: dict) -> str:
    return reply.get("error", {}).get("code", "ok")


@pytest.mark.parametrize(
    ("shown", "user"),
    [
        ({"token": ADMIN}, "admin"),
        ({"token": ADMIN, "user": "Admin"}, "admin"),
        ({"token": ALICE}, "alice"),
        ({"token": ALICE, "user": "Alice"}, "alice"),
        ({"user": "bob", "password": "correct horse"}, "bob"),
        ({"user": "BOB", "password": "correct horse"}, "bob"),
        ({"token": ALICE, "user": "bob"}, None),
        ({"token": ADMIN, "user": "alice"}, None),
        ({"token": "wrong"}, None),
        ({"user": "bob", "password": "wrong"}, None),
        ({"user": "alice", "password": "x"}, None),  # has none
        ({"user": "nobody", "password": "correct horse"}, None),
        ({"user": "admin", "password": ADMIN}, None),
        ({"user": "bob"}, None),
        ({"password": "correct horse"}, None),
        ({}, None),
    ],
)
def test_who_comes_in(running, shown: dict, user: str | None):
    with running.peer() as peer:
        reply = hello(peer, **shown)
        if user is None:
            assert code(reply) == "DS605"
            assert "alice" not in str(reply) and "horse" not in str(reply)
            assert code(peer.ask("execute", sql="SELECT 1")) == "DS605"
        else:
            assert reply["user"] == user
            assert [s.user for s in running.server.sessions] == [user]
            assert code(hello(peer, **shown)) == "DS603"


def test_wrong_passwords_are_answered_later_and_later(running):
    hours = running.hours()
    running.on_loop(lambda: setattr(running.server.guesses, "_first", 1.0))
    with running.peer() as peer:
        waits = []
        for _ in range(3):
            ident = peer.send("hello", version=1, user="bob", password="guess")
            wait_until(lambda: any(s.threshold._held for s in list(running.server.sessions)))
            waits.append(min(hours.waiting))
            hours.go_on(waits[-1])
            assert code(peer.reply(ident)) == "DS605"
    assert waits == [1.0, 2.0, 4.0]


def test_a_session_does_what_its_user_may(running):
    with running.peer() as peer:
        hello(peer, token=ALICE, client="w")
        columns = {"k": ["a", "b"], "v": [1, 5], "t": [0, 1]}
        assert peer.ask("ingest", stream="s", seq=1, columns=columns)["accepted"] == 2
        assert code(peer.ask("heartbeat", stream="s", ts=SECOND)) == "ok"
        reply = peer.ask("execute", sql="SELECT k FROM s [RANGE 1 HOUR]")
        assert reply["results"][0]["rows"] == [["a"]]
        assert code(peer.ask("subscribe", query="q")) == "ok"
        assert code(peer.ask("execute", sql="CREATE STREAM x (a INT)")) == "DS670"
        assert peer.ask("names")["streams"].keys() == {"s"}
        for op, fields in (
            ("ingest", {"columns": columns}),
            ("ingest", {"columns": columns, "wait": False}),
            ("ingest", {"columns": {"no": [1]}}),
            ("heartbeat", {"ts": 0}),
            ("end", {}),
        ):
            hidden, none = (peer.ask(op, stream=name, **fields) for name in ("hidden", "nothing"))
            assert code(hidden) == code(none) == "DS401"
            assert str(hidden["error"]).replace("hidden", "nothing") == str(none["error"])
    with running.peer() as peer:
        hello(peer, user="bob", password="correct horse")
        for wait in (True, False):
            assert code(peer.ask("ingest", stream="s", columns=columns, wait=wait)) == "DS401"
        assert code(peer.ask("execute", sql="SELECT * FROM q")) == "DS670"


def test_what_was_allowed_once_is_not_allowed_for_ever(running):
    """Requests that are made again and again are judged anew once a statement has changed
    something."""
    with running.peer() as admin, running.peer() as peer:
        hello(admin, token=ADMIN)
        hello(peer, token=ALICE)

        def taken() -> str:
            return code(peer.ask("ingest", stream="o", rows=[[1]]))

        made = "CREATE STREAM o (a INT); GRANT INSERT ON o TO alice"
        for change, then in (
            (made, "ok"),
            ("REVOKE INSERT ON o FROM alice", "DS401"),
            ("GRANT INSERT ON o TO alice", "ok"),
            ("DROP STREAM o; CREATE STREAM o (a INT)", "DS401"),
            ("DROP STREAM o", "DS401"),
            (made, "ok"),
        ):
            assert code(admin.ask("execute", sql=change)) == "ok"
            assert [taken(), taken()] == [then, then], change


def test_max_future_binds_all_but_administrators_of_the_stream(running):
    with running.peer() as peer, running.peer() as admin:
        hello(peer, token=ALICE)
        hello(admin, token=ADMIN)
        peer.ask("ingest", stream="s", columns={"k": ["a"], "v": [1], "t": [0]})
        assert code(peer.ask("heartbeat", stream="s", ts=7200 * SECOND)) == "DS508"
        admin.ask("execute", sql="GRANT ADMIN ON s TO alice")
        assert code(peer.ask("heartbeat", stream="s", ts=7200 * SECOND)) == "ok"
        assert code(admin.ask("heartbeat", stream="s", ts=15000 * SECOND)) == "ok"


def test_the_name_of_a_writer_is_its_users(running):
    with running.peer() as alice, running.peer() as admin:
        hello(alice, token=ALICE, client="w")
        hello(admin, token=ADMIN, client="w")  # takes nothing over
        columns = {"k": ["a"], "v": [1], "t": [0]}
        assert admin.ask("ingest", stream="s", seq=1000, columns=columns)["accepted"] == 1
        assert alice.ask("ingest", stream="s", seq=1, columns=columns)["accepted"] == 1
        assert alice.ask("ingest", stream="s", seq=1, columns=columns)["repeated"]
        with running.peer() as again:
            hello(again, token=ALICE, client="w")
            assert "name w" in alice.read()["error"]["message"]


def test_what_may_not_go_on_ends_at_once(running):
    with running.peer() as alice, running.peer() as bob, running.peer() as admin:
        hello(alice, token=ALICE)
        hello(bob, user="bob", password="correct horse")
        hello(admin, token=ADMIN)
        alice.ask("subscribe", query="q")
        bob.ask("subscribe", query="q")
        alice.push(), bob.push()
        assert code(admin.ask("execute", sql="REVOKE SUBSCRIBE ON q FROM alice")) == "ok"
        push = alice.push()
        assert (push["kind"], push["code"]) == ("end", "DS670")
        assert code(alice.ask("ping")) == "ok"
        assert code(alice.ask("subscribe", query="q")) == "DS401"
        admin.ask("execute", sql="ALTER USER bob PASSWORD 'battery staple'")
        assert bob.read()["error"]["code"] == "DS605"
        assert bob.rest() == b""
        admin.ask("execute", sql="ALTER USER alice ADD TOKEN 'another-token-of-alices-own'")
        with running.peer() as second:
            assert hello(second, token="another-token-of-alices-own")["user"] == "alice"
        assert code(alice.ask("ping")) == "ok"
        admin.ask("execute", sql="DROP USER alice")
        assert alice.read()["error"]["code"] == "DS605"
    with running.peer() as peer:
        assert code(hello(peer, token=ALICE)) == "DS605"
        assert hello(peer, user="bob", password="battery staple")["user"] == "bob"


def test_who_changes_his_own_password_gets_the_answer(running):
    with running.peer() as bob:
        hello(bob, user="bob", password="correct horse")
        assert code(bob.ask("execute", sql="ALTER USER bob PASSWORD 'battery staple'")) == "ok"


def test_a_server_without_users_has_none(serve):
    running = serve(Engine(), token=ADMIN)
    with running.peer() as peer:
        for shown in ({"user": "bob", "password": "x"}, {"user": "bob", "token": ADMIN}):
            assert code(hello(peer, **shown)) == "DS605"
        assert "user" not in hello(peer, token=ADMIN)
        assert [s.user for s in running.server.sessions] == [None]


# -- clients


def test_clients_say_who_they_are(running, monkeypatch, capsys, tmp_path):
    with connect(port=running.port, user="bob", password="correct horse") as client:
        assert client.query("SELECT CURRENT_USER() AS me").rows == [("bob",)]
    words = [
        "shell",
        "--port",
        str(running.port),
        "--format",
        "csv",
        "-c",
        "SELECT CURRENT_USER() AS me",
    ]
    (tmp_path / "password").write_text("correct horse\n")
    assert main([*words, "--user", "bob", "--password-file", str(tmp_path / "password")]) == 0
    monkeypatch.setenv("DSMS_USER", "bob")
    monkeypatch.setenv("DSMS_PASSWORD", "correct horse")
    assert main(words) == 0
    monkeypatch.setenv("DSMS_USER", "")
    monkeypatch.setenv("DSMS_TOKEN", ALICE)
    assert main(words) == 0
    assert capsys.readouterr().out.split() == ["me", "bob", "me", "bob", "me", "alice"]
    monkeypatch.setenv("DSMS_TOKEN", "wrong")
    assert main(words) == 2


def test_the_history_of_a_shell_holds_no_secret(tmp_path, monkeypatch):
    from dsms_client.shell.prompt import _history

    monkeypatch.setenv("DSMS_HISTORY", str(tmp_path / "history"))
    history = _history()
    for text in (
        "CREATE USER carl PASSWORD 'correct horse';",
        "SELECT 'kept' FROM s;",
        "alter user c token 'abc",
    ):
        history.append_string(text)
    held = (tmp_path / "history").read_text()
    assert (
        "correct" not in held
        and "abc" not in held
        and "'kept'" in held
        and "PASSWORD '***'" in held
    )


def test_a_certificate_shows_who_a_user_is(serve, certificate, tmp_path):
    server_cert, server_key = certificate
    made = {}
    for name in ("alice", "stranger"):
        cert, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days",
             "2", "-keyout", key, "-out", cert, "-subj", f"/CN={name}"],
            check=True, capture_output=True,
        )  # a command  # fmt: skip
        made[name] = (str(cert), str(key))
    both = tmp_path / "users.pem"
    both.write_text("".join((tmp_path / f"{name}.pem").read_text() for name in made))
    engine = Engine()
    engine.execute(DECLARED)
    tls = {"tls_cert": server_cert, "tls_key": server_key, "tls_client_ca": str(both)}
    log = tmp_path / "audit.log"
    running = serve(engine, token=ADMIN, auth=True, guess_seconds=0, audit_log=str(log), **tls)
    words = ["shell", "--host", "localhost", "--port", str(running.port), "--tls-ca", server_cert]
    ask = ["-c", "SELECT CURRENT_USER() AS me"]
    cert, key = made["alice"]
    assert main([*words, "--tls-cert", cert, "--tls-key", key, *ask]) == 0
    cert, key = made["stranger"]
    assert main([*words, "--tls-cert", cert, "--tls-key", key, *ask]) == 2
    assert main([*words, *ask]) == 2
    assert main([*words, "--token", ALICE, *ask]) == 0
    running.await_(running.server.stop())
    found = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [
        (event["event"], event.get("user"), event.get("certificate"))
        for event in found
        if event["event"].startswith("login")
    ] == [
        ("login", "alice", "alice"),
        ("login_refused", None, "stranger"),
        ("login_refused", None, None),
        ("login", "alice", None),
    ]


# -- HTTP, options


def fetch(port: int | None, path: str, token: str | None = None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
        ) as found:
            return found.status
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize(
    ("options", "open_", "shown"),
    [
        ({}, 200, 200),
        ({"metrics_token": "for metrics"}, 401, 200),
        ({"auth": True, "token": ADMIN}, 401, 401),
        ({"auth": True, "token": ADMIN, "metrics_token": "for metrics"}, 401, 200),
    ],
)
def test_metrics_have_an_access_of_their_own(serve, options: dict, open_: int, shown: int):
    port = serve(Engine(), http_port=0, **options).server.http_port
    assert fetch(port, "/metrics") == open_
    assert fetch(port, "/metrics", ADMIN) == open_
    assert fetch(port, "/metrics", "for metrics") == shown
    assert fetch(port, "/healthz") == fetch(port, "/readyz") == 200


@pytest.mark.parametrize(
    "options",
    [
        {"auth": True, "open": True},
        {"tls_client_ca": "x.pem"},
        {"auth": True, "tls_client_ca": "x.pem"},
        {"metrics_token": ""},
    ],
)
def test_options_that_contradict(options: dict):
    with pytest.raises(UsageError, match="DS640"):
        config.build(options)


def test_somebody_must_be_able_to_administer():
    engine = Engine()
    found = config.build({"auth": True, "host": "0.0.0.0"})
    with pytest.raises(UsageError, match=r"DS640.*nobody may administer"):
        serving.check_administrator(found, engine)
    engine.execute("CREATE USER root TOKEN; GRANT ADMIN ON ALL TO root")
    serving.check_administrator(found, engine)
    serving.check_administrator(config.build({}), Engine())


def test_hello_takes_who_one_is():
    assert {"user", "password", "token"} <= protocol.OPS["hello"].optional.keys()


def test_sessions_of_others_are_not_there_for_who_is_no_administrator(running):
    with running.peer() as alice, running.peer() as bob, running.peer() as admin:
        hello(alice, token=ALICE)
        hello(bob, user="bob", password="correct horse")
        hello(admin, token=ADMIN)

        def seen_by(peer) -> dict[str, int]:
            reply = peer.ask("execute", sql="SHOW SESSIONS")["results"][0]
            user, number = reply["columns"].index("user"), reply["columns"].index("session")
            return {row[user]: row[number] for row in reply["rows"]}

        numbers = seen_by(admin)
        assert numbers.keys() == {"alice", "bob", "admin"}
        assert seen_by(alice).keys() == {"alice"}
        for verb in ("CANCEL", "CLOSE"):
            hidden = alice.ask("execute", sql=f"{verb} SESSION {numbers['bob']}")["error"]
            none = alice.ask("execute", sql=f"{verb} SESSION 9999")["error"]
            assert hidden["code"] == none["code"] == "DS660"
            assert str(hidden).replace(str(numbers["bob"]), "9999") == str(none)
        assert code(alice.ask("execute", sql=f"CANCEL SESSION {numbers['alice']}")) == "ok"
        assert code(alice.ask("execute", sql="SET statement_timeout = '5 s'")) == "ok"
        assert code(alice.ask("execute", sql="SHOW MEMORY")) == "DS670"
        assert code(bob.ask("ping")) == "ok"
        assert code(admin.ask("execute", sql=f"CLOSE SESSION {numbers['bob']}")) == "ok"
