"""A server whose system clock is set: what its streams, its log and its metrics make of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from dsms.engine import Engine
from dsms_client import connect
from dsms_server import clock

S = 1_000_000
YEAR = 365 * 86_400 * S
START = 1_700_000_000 * S


@dataclass
class Machine:
    passed: int = 0
    away: int = START

    def wall(self) -> int:
        return self.passed + self.away


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(clock, "now_us", made.wall)
    monkeypatch.setattr(clock, "passed_us", lambda: made.passed)
    return made


def stood(server, seconds: int, machine: Machine) -> None:
    """The system clock is seen, and that much time passes."""
    server.on_loop(server.server._look_at_clock)
    machine.passed += seconds * S
    server.on_loop(server.server._look_at_clock)


def complete(db, stream: str) -> int:
    """The instant up to which a stream is complete."""
    found = db.query("SHOW STREAMS")
    lines = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    at = next(line["complete"] for line in lines if line["stream"] == stream)
    return round(at.replace(tzinfo=UTC).timestamp() * 1e6) if isinstance(at, datetime) else at


def metric(server, name: str) -> float:
    server.on_loop(server.server.update_gauges)
    lines = server.server.metrics.text().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_a_year_ahead_for_a_moment_stamps_no_row(serve, machine, caplog):
    server = serve(Engine())
    with connect(port=server.port) as db:
        db.execute("CREATE STREAM s (k INT)")
        machine.away += YEAR
        db.ingest("s", [[1]])
        stood(server, 5, machine)
        assert complete(db, "s") == START + 5 * S - 1
        assert metric(server, "dsms_clock_offset_seconds") == YEAR / S
        machine.away -= YEAR
        machine.passed += S
        assert complete(db, "s") == START + 6 * S - 1
    assert (
        metric(server, "dsms_clock_offset_seconds") == 0
        and metric(server, "dsms_clock_steps_total") == 0
    )
    lines = [r.getMessage() for r in caplog.records if "clock" in r.getMessage()]
    assert [line.split(":")[0] for line in lines] == [
        "the system clock has jumped 365 days, 0",
        "the system clock is back where it was",
    ]


def test_streams_stamped_ahead_are_named(serve, machine, caplog):
    server = serve(Engine())
    with connect(port=server.port) as db:
        db.execute("CREATE STREAM s (k INT)")
        machine.away += YEAR
        stood(server, 60, machine)
        assert (
            complete(db, "s") == START + 60 * S + YEAR - 1
            and metric(server, "dsms_clock_steps_total") == 1
        )
        machine.away -= YEAR
        stood(server, 60, machine)
        db.execute("CREATE STREAM young (k INT)")
        # not held back by what the engine had been told
        assert complete(db, "young") == machine.wall() - 1
        assert complete(db, "s") > machine.wall() + YEAR - 120 * S
    told = [
        r.getMessage()
        for r in caplog.records
        if r.levelno == logging.WARNING and "SET CLOCK" in r.getMessage()
    ]
    assert len(told) == 1 and told[0].startswith("stream s stands at 2024-11-13")
    assert told[0].endswith("if it is wrong: ALTER STREAM s SET CLOCK TO NOW")


def test_a_start_behind_the_stored_time_is_told(serve, machine, caplog, tmp_path):
    engine = Engine(str(tmp_path))
    engine.execute("CREATE STREAM s (k INT); CREATE STREAM e (t TIMESTAMP) TIMESTAMP BY t")
    engine.advance(START + YEAR)
    engine.close()
    server = serve(Engine(str(tmp_path)))
    told = [r.getMessage() for r in caplog.records if "SET CLOCK" in r.getMessage()]
    assert len(told) == 1 and told[0].startswith("stream s stands at ")
    with connect(port=server.port) as db:
        db.execute("CREATE STREAM young (k INT)")
        db.ingest("young", [[1]])
        assert complete(db, "young") == START - 1
