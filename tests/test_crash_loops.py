"""A query that kills the engine twice at the same place is set aside, and all else comes back."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.running.query import RunningQuery
from dsms.settings import Settings
from dsms.storage.working import AtWork


class Death(BaseException):
    """The process is gone."""


def die(engine: Engine) -> None:
    """What remains of an engine whose process has died: its files."""
    engine.saver.durable.close()
    engine.saver.catalog.close()


def death_of(monkeypatch, query: str, instant: int):
    """The engine dies when that query is to move to the instant."""
    advance = RunningQuery.advance

    def dying(self, upto, cancel=None):
        if self.name == query and upto >= instant:
            raise Death
        advance(self, upto, cancel)

    monkeypatch.setattr(RunningQuery, "advance", dying)


def started(folder) -> Engine:
    engine = Engine(str(folder))
    engine.execute("""CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
                      CREATE QUERY good AS SELECT k FROM s; CREATE QUERY bad AS SELECT k + 1 AS k FROM s""")  # noqa: E501
    engine.ingest("s", {"k": [1], "t": [1]})
    return engine


def states(engine: Engine) -> dict[str, str]:
    rows = engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    return {row["query"]: row["status"] for row in rows}


@pytest.mark.parametrize("name", ["bad", "good"])
def test_a_query_that_killed_the_engine_twice_is_set_aside(tmp_path, monkeypatch, name):
    engine = started(tmp_path)
    death_of(monkeypatch, name, 2)
    with pytest.raises(Death):
        engine.ingest("s", {"k": [2], "t": [2]})
    die(engine)
    with pytest.raises(Death):
        Engine(str(tmp_path))
    engine = Engine(str(tmp_path))
    other = {"good": "bad", "bad": "good"}[name]
    assert states(engine)[name].startswith("stopped: DS648") and states(engine)[other] == "running"
    assert engine.runtime.queries[other].seq == 2
    assert any("set aside" in note for note in engine.saver.recovered.notes)
    monkeypatch.undo()
    engine.execute(f"DROP QUERY {name}; CREATE QUERY {name} AS SELECT k FROM s")
    engine.ingest("s", {"k": [3], "t": [3]})
    assert states(engine) == {"good": "running", "bad": "running"}
    engine.close()
    assert not (tmp_path / "deaths.json").exists()


def test_who_is_killed_at_other_places_comes_back(tmp_path, monkeypatch):
    """Killed again and again, but further on each time."""
    engine = started(tmp_path)
    for k in (2, 3, 4):
        with monkeypatch.context() as patch:
            death_of(patch, "bad", k)
            with pytest.raises(Death):
                engine.ingest("s", {"k": [k], "t": [k]})
        die(engine)
        engine = Engine(str(tmp_path))
        assert states(engine) == {"good": "running", "bad": "running"}
    assert engine.runtime.queries["bad"].seq == 4
    engine.close()


def test_a_frame_that_killed_the_engine_twice_is_kept_in_a_file(tmp_path, monkeypatch):
    from dsms.intake.stream import StreamInput

    engine = started(tmp_path)
    accept = StreamInput.accept

    def dying(self, columns, now, *rest):
        if 666 in columns[0].to_pylist():
            raise Death
        return accept(self, columns, now, *rest)

    monkeypatch.setattr(StreamInput, "accept", dying)
    with pytest.raises(Death):
        engine.ingest("s", {"k": [666], "t": [2]})
    die(engine)
    with pytest.raises(Death):
        Engine(str(tmp_path))
    engine = Engine(str(tmp_path))
    assert states(engine) == {"good": "running", "bad": "running"}
    (kept,) = (tmp_path / "set-aside").iterdir()
    assert kept.stat().st_size > 0 and any(
        str(kept) in note for note in engine.saver.recovered.notes
    )
    engine.ingest("s", {"k": [3], "t": [3]})
    assert engine.runtime.queries["good"].seq == 2
    engine.close()
    engine = Engine(str(tmp_path))  # a checkpoint lies behind that frame now
    assert engine.runtime.queries["good"].seq == 2
    engine.close()


def test_in_safe_mode_queries_do_not_move_and_rows_wait(tmp_path, monkeypatch):
    engine = started(tmp_path)
    with monkeypatch.context() as patch:
        death_of(patch, "bad", 2)
        with pytest.raises(Death):
            engine.ingest("s", {"k": [2], "t": [2]})
        die(engine)
        engine = Engine(str(tmp_path), Settings(safe_mode=True))
        engine.ingest("s", {"k": [3], "t": [3]})
        engine.execute("DROP QUERY bad")
        engine.close()
    engine = Engine(str(tmp_path))
    engine.heartbeat("s", 10)
    assert engine.runtime.queries["good"].seq == 3
    engine.close()


def test_an_unreadable_account_counts_nothing(tmp_path):
    (tmp_path / "deaths.json").write_text('{"record 1": "x", "?": 3}')
    (tmp_path / "at-work").write_bytes(b"\xff\xfe")
    at_work = AtWork(str(tmp_path))
    at_work.open()
    assert not at_work.queries and not at_work.records
    at_work.record(3)
    at_work.query("q")
    again = AtWork(str(tmp_path))
    again.open()
    assert again.before == "record 3, query q"
    at_work.close()
