"""Joins of much state are exchanged in pieces, before anything else moves; what is told is what is
told where that is done at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsms.commands import replanning
from dsms.engine import Engine
from dsms.operators import join, multi_join, pieces
from dsms.plan.rejoin import Unfit
from dsms.settings import Settings
from dsms.state import rows
from tests.test_replanning_choice import (
    COUNTED,
    DDL,
    FAST,
    OTHER,
    SECOND,
    SLOW,
    explained,
    fed,
    query,
    shape,
    told,
)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    for room in (join, multi_join, pieces):
        monkeypatch.setattr(room, "LOADED", 16)
    monkeypatch.setattr(rows, "GATHERED", 16)


def made(paused: bool, folder: Path | None = None) -> Engine:
    """Two queries that share their joins."""
    pause = (lambda: True) if paused else None
    engine = Engine(None if folder is None else str(folder), Settings(pause=pause))
    engine.execute(DDL)
    for name, sql in (("q", COUNTED), ("r", OTHER)):
        engine.execute(f"CREATE QUERY {name} AS {sql} WITH (strategy = upa)")
    return engine


def played(engine: Engine, between=lambda engine: None) -> int:
    """Twelve seconds; how many pieces there were between the beginning and the end of changes."""
    count = [0]

    def settled() -> None:
        while engine.has_work():
            if engine.replanner.going is not None:
                count[0] += 1
                between(engine)
            engine.catch_up()

    ingest, heartbeat = engine.ingest, engine.heartbeat
    engine.ingest = lambda *a: (ingest(*a), settled())
    engine.heartbeat = lambda *a: (heartbeat(*a), settled())
    fed(engine, 0, 12, FAST, SLOW)
    fed(engine, 12, 30, SLOW, FAST)
    del engine.ingest, engine.heartbeat
    return count[0]


def checked(engine: Engine, whole: Engine) -> None:
    assert query(engine).chosen.changes == query(whole).chosen.changes >= 1
    assert engine.runtime.queries["r"].chosen.changes == query(engine).chosen.changes
    assert shape(engine) == shape(whole) and explained(engine)
    for name in "qr":
        assert told(engine, name) == told(whole, name)


@pytest.fixture(scope="module")
def whole() -> Engine:
    engine = made(paused=False)
    assert played(engine) == 0
    return engine


def test_they_are_exchanged_in_pieces(whole):
    engine = made(paused=True)
    assert played(engine) > 40
    checked(engine, whole)


def test_who_only_looks_may_come_in_between(whole):
    engine, seen = made(paused=True), []

    def look(engine):
        seen.append(engine.execute("SELECT COUNT(*) AS n FROM q")[0].data.to_pylist())
        assert engine.runtime.queries["q"].answer_rows() == seen[-1][0]["n"]
        engine.unsubscribe(engine.subscribe("r"))
        engine.stats()

    played(engine, look)
    assert seen
    checked(engine, whole)


def test_what_moves_queries_finishes_it_first(whole):
    engine = made(paused=True)

    def move(engine):
        engine.heartbeat_of("a", engine.runtime.inputs["a"].promised)
        assert engine.replanner.going is None

    assert 0 < played(engine, move) <= 2 * query(whole).chosen.changes
    checked(engine, whole)


def test_it_is_not_there_where_the_server_dies_midway_and_is_where_it_was_done(whole, tmp_path):
    engine, copies = made(paused=True, folder=tmp_path / "db"), []

    def copied(engine):
        if not copies:
            copies.append(engine.runtime.inputs["a"].newest)
            engine.sync()
            shutil.copytree(tmp_path / "db", tmp_path / "copy")

    played(engine, copied)
    checked(engine, whole)
    expected = {name: told(engine, name) for name in "qr"}
    changes = query(engine).chosen.changes
    engine.close()
    again = Engine(str(tmp_path / "db"))
    assert {name: told(again, name) for name in "qr"} == expected
    assert query(again).chosen.changes == changes and shape(again) == shape(whole)
    again.close()
    killed = Engine(str(tmp_path / "copy"))
    assert query(killed).chosen.changes == 0
    assert killed.runtime.inputs["a"].newest == copies[0] < 12 * SECOND
    killed.close()


@pytest.mark.parametrize("what", ["DROP QUERY q", "DROP QUERY q; DROP QUERY r"])
def test_queries_may_be_dropped_meanwhile(what):
    engine, dropped = made(paused=True), []

    def drop(engine):
        if not dropped:
            dropped.append(engine.execute(what))

    played(engine, drop)
    assert dropped and "q" not in engine.runtime.queries


def test_one_that_turns_out_not_to_fit_leaves_all_as_it_was(whole, monkeypatch):
    engine = made(paused=True)

    def refused(*args):
        raise Unfit("for a test")

    monkeypatch.setattr(replanning, "_check_limits", refused)
    assert played(engine) > 10
    assert query(engine).chosen.changes == engine.replanner.made == 0
    assert told(engine) == told(whole)
