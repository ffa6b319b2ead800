"""Webhooks: what a receiver in this process is asked, and what becomes of its answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.connectors.world import world

STREAM = "CREATE STREAM s (k INT, v STRING)"
QUERY = "CREATE QUERY q AS SELECT k, v FROM s"


class Receiver(ThreadingHTTPServer):
    """`answers`: statuses of the next requests, then 200; `asked`: headers and bodies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []
        self.asked: list[tuple[dict[str, str], str]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((dict(self.headers), body))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"what")

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.shutdown()
    made.server_close()


def test_rows_go_together_with_a_key_that_stays(receiver, monkeypatch):
    monkeypatch.setenv("DSMS_SECRET_HOOK", "Bearer x")
    receiver.answers += [503, 429]
    with world() as it:
        it.run(STREAM, QUERY)
        it.run(
            f"CREATE SINK t FROM q TO webhook WITH (url = '{receiver.url}', rows = 2, "
            "authorization = env('DSMS_SECRET_HOOK'))"
        )
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1, 2, 3], "v": ["a", None, "c"]})
        while it.line("t", "sink")["rows"] < 3:
            it.run("RESUME SINK t")
        it.until("t", "sink", position="3")
    bodies = [json.loads(body) for _, body in receiver.asked]
    assert bodies[-2:] == [[{"k": 1, "v": "a"}, {"k": 2, "v": None}], [{"k": 3, "v": "c"}]]
    headers = [head for head, _ in receiver.asked]
    assert [head["Idempotency-Key"] for head in headers] == ["t-0-2"] * 3 + ["t-2-1"]
    assert headers[0]["Authorization"] == "Bearer x"
    assert headers[0]["Content-Type"] == "application/json"


def test_a_template_makes_a_request_for_each_row(receiver):
    with world() as it:
        it.run(STREAM, QUERY)
        it.run(
            f"CREATE SINK t FROM q TO webhook WITH (url = '{receiver.url}', "
            """template = '{"text": {v}, "n": {k}, "as": "{other}"}')"""
        )
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1, 2], "v": ['say "a"', None]})
        it.until("t", "sink", rows=2)
    assert [json.loads(body) for _, body in receiver.asked] == [
        {"text": 'say "a"', "n": 1, "as": "{other}"},
        {"text": None, "n": 2, "as": "{other}"},
    ]


def test_a_receiver_that_refuses_ends_it_until_somebody_has_mended_it(receiver):
    receiver.answers += [400]
    with world() as it:
        it.run(STREAM, QUERY)
        it.run(f"CREATE SINK t FROM q TO webhook WITH (url = '{receiver.url}')")
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1]})
        assert "answers 400: what" in it.until("t", "sink", state="failed")["last_error"]
        it.run("RESUME SINK t")
        it.until("t", "sink", rows=1)
        it.run("CREATE OR REPLACE SINK t FROM q TO webhook WITH (url = 'hook')")
        assert it.until("t", "sink", state="failed")["last_error"].startswith("DS665: the url")
