from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_engine import FakeEngine
from harness import Running

from dsms_client.cli import main


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Start servers over a fake engine (or the one given); all are stopped at the end of the
    test."""
    started: list[Running] = []

    def start(engine: Any = None, **options: Any) -> Running:
        started.append(Running(engine or FakeEngine(), **options))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def server(serve: Callable[..., Running]) -> Running:
    """A server with a stream s(k INT, v FLOAT) and a query q over it."""
    running = serve()
    with running.peer() as peer:
        reply = peer.ask(
            "execute", sql="CREATE STREAM s (k INT, v FLOAT); CREATE QUERY q AS SELECT * FROM s"
        )
        assert reply["ok"], reply
    return running


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    place = tmp_path_factory.mktemp("tls")
    cert, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # a command  # fmt: skip
    return str(cert), str(key)


@pytest.fixture
def dsms(
    server: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Run the command against the server; gives (exit code, stdout, stderr)."""
    monkeypatch.setenv("DSMS_PORT", str(server.port))

    def run(*argv: str, stdin: str | None = None) -> tuple[Any, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        try:
            code = main(list(argv))
        except SystemExit as stop:
            code = stop.code  # type: ignore[assignment]
        return (code, *capsys.readouterr())

    return run
