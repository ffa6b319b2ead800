"""The pieces of the demo."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dsms
from dsms.api import Push as EnginePush
from dsms.api import Rows
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.settings import Settings
from dsms_client import Changes
from dsms_client.changes import changes_of
from dsms_client.results import RowSet
from dsms_client.shell.show import render as show_rows
from examples.flights import archive, asked, data, recompute, show, story
from examples.flights.replay import CLOCKS, Replay, fill_tables, hours
from examples.flights.script import blocks
from examples.flights.view import View

STORM = date(2013, 2, 8)


@pytest.fixture(scope="module")
def winter() -> data.Winter:
    """A day and a half around the storm, from the excerpt whether or not the package is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "_home", lambda: (data.EXCERPT, "the excerpt"))
        return data.load(STORM, 1)


QUESTIONS = (*blocks("periodic"), *blocks("queries"))


class Local:
    """An engine in this process with what the demo uses of a client."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.engine = dsms.Engine(settings=Settings(archive=str(folder), **settings))
        self.execute, self.ingest, self.heartbeat = (
            self.engine.execute,
            self.engine.ingest,
            self.engine.heartbeat,
        )

    def query(self, sql: str) -> RowSet:
        (rows,) = self.execute(sql)
        assert isinstance(rows, Rows)
        reported = [tuple(row.values()) for row in rows.data.to_pylist()]
        names = rows.data.schema.names
        return RowSet(
            {"columns": names, "types": rows.types, "rows": reported, "as_of": rows.as_of}
        )


@pytest.fixture(scope="module")
def room(winter: data.Winter, tmp_path_factory: pytest.TempPathFactory) -> Local:
    client = Local(tmp_path_factory.mktemp("archive"))
    for block in (*blocks("declare"), *blocks("archive"), *QUESTIONS):
        client.execute(block.sql)
    fill_tables(client, winter)  # type: ignore[arg-type]
    return client


def test_instants_show_the_local_time_that_was_published():
    """`dep_time` (local, HHMM) is independent of how the instant is made; delays cross midnight."""
    flights = data.read(data.EXCERPT, "flights")
    made = data.departures(flights)
    left = flights.filter(pc.is_valid(flights["dep_time"]))
    published = Counter(
        (flight, dest, int(hhmm) % 2400)
        for flight, dest, hhmm in zip(
            *(left[c].to_pylist() for c in ("flight", "dest", "dep_time")), strict=True
        )
    )
    clocks = [data.local(us) for us in made["departed"].cast(pa.int64()).to_pylist()]
    names = zip(made["flight"].to_pylist(), made["dest"].to_pylist(), strict=True)
    assert published == Counter(
        (*name, at.hour * 100 + at.minute) for name, at in zip(names, clocks, strict=True)
    )
    assert len(made) > 18_000
    assert made["departed"].to_pylist() == sorted(made["departed"].to_pylist())


def test_daylight_saving_is_settled():
    assert (
        data.midnight(date(2013, 3, 11)) - data.midnight(date(2013, 3, 10)) == 23 * recompute.HOUR
    )
    flights = pa.table(
        {
            "dep_time": [5.0, 2359.0],
            "dep_delay": [70.0, -1.0],
            "minute": [55, 0],
            "origin": ["JFK"] * 2,
            "carrier": ["B6"] * 2,
            "flight": [1, 2],
            "tailnum": ["N1", None],
            "dest": ["BQN"] * 2,
            "time_hour": pa.array(
                [1362977700 // 3600 * 3600, 1362974400], pa.timestamp("s", "UTC")
            ),
        }
    )
    clocks = [
        f"{data.local(us):%d %H:%M}"
        for us in data.departures(flights)["departed"].cast(pa.int64()).to_pylist()
    ]
    assert clocks == ["10 23:59", "11 02:05"]


def test_the_days_asked_for(winter: data.Winter):
    assert winter.last - winter.first == 24 * recompute.HOUR
    assert set(winter.streams) == set(CLOCKS)
    for name, clock in CLOCKS.items():
        instants = winter.streams[name][clock].cast(pa.int64()).to_pylist()
        assert instants == sorted(instants)
        assert winter.first <= instants[0] <= instants[-1] < winter.last
    assert [data.local(t).hour for t in hours(STORM, 1, STORM)] == [*range(1, 24), 0]
    assert [data.local(t).hour for t in hours(STORM, 1, date(2013, 1, 1))] == [
        3,
        6,
        9,
        12,
        15,
        18,
        21,
        0,
    ]


def test_a_day_of_answers(room: Local, winter: data.Winter):
    """Every query answers; what is easy to recompute comes out the same hour by hour."""
    views = {name: View(None) for block in QUESTIONS for name in block.names}  # type: ignore[arg-type]
    pushes = {name: room.engine.subscribe(name) for name in views}
    replay = Replay(room, winter)  # type: ignore[arg-type]
    for instant in hours(STORM, 1, STORM):
        replay.send_until(instant)
        for name, view in views.items():
            for push in pushes[name].take():
                view.apply(_as_client(push))
        reported = {
            airport: (n, round(mean, 9), worst) for airport, n, mean, worst in views["delays"].rows
        }
        true = {
            a: (n, round(mean, 9), worst)
            for a, (n, mean, worst) in recompute.delays(winter, instant).items()
        }
        assert reported == true, show.moment(instant)
        assert {row[0] for row in views["query2"].rows} == recompute.reached(winter, instant)
        periodic = {
            a: (n, round(mean, 9), p90)
            for a, n, mean, p90 in views["hourly"].answers.get(instant, [])
        }
        true = {
            a: (n, round(mean, 9), p90)
            for a, (n, mean, p90) in recompute.hourly(winter, instant).items()
        }
        assert periodic == true, show.moment(instant)
        assert asked.check(room, winter) == []  # type: ignore[arg-type]
    assert [row[:2] for row in views["daily"].answers[winter.last]] == recompute.busiest(
        winter, winter.first, winter.last
    )
    assert replay.rows == winter.rows
    silent = {name for name, view in views.items() if not view.seen}
    assert silent <= {"blind", "newark_week"}  # there was no fog that day, and no week
    assert show.moment(winter.first) in story.opening(winter)
    assert "Fri  8 Feb" in story.line(winter.last - 1, views)


def _as_client(push: EnginePush) -> Changes:
    """The push as the client library gives it."""
    names = () if push.data is None else tuple(push.data.schema.names)
    rows = None if push.data is None else [tuple(row.values()) for row in push.data.to_pylist()]
    message = {"seq": push.seq, "kind": push.kind, "at": push.at, "data": rows}
    if push.ats is not None:
        message["ats"] = push.ats.to_pylist()
    return changes_of(message, push.query, names, ())


def changed(seq: int, at: int, signs: list[int], rows: list[tuple[int]]) -> Changes:
    """Changes of one instant."""
    message = {"seq": seq, "kind": "changes", "at": at, "data": rows, "signs": signs}
    return changes_of(message, "q", ("a",), ("INT",))


def test_a_view_refuses_to_lose_what_it_never_had():
    view = View(None)  # type: ignore[arg-type]
    view.apply(changed(0, 1, [1, 1, 1, -1], [(1,), (1,), (2,), (1,)]))
    assert (view.answer(), view.seen, view.next_seq) == ([(1,), (2,)], 4, 4)
    assert list(view.latest)[-1] == (1, "-", (1,))
    with pytest.raises(ValueError, match="took back"):
        view.apply(changed(4, 3, [-1], [(7,)]))


def test_a_view_of_a_periodic_query_is_its_last_answer():
    view = View(None)  # type: ignore[arg-type]
    for at, first, rows in ((5, 0, [(1,), (2,)]), (5, 2, [(2,)]), (9, 3, [(4,)])):
        view.apply(changed(first, at, [0] * len(rows), rows))
    assert (view.answer(), view.answers, view.seen) == (
        [(4,)],
        {5: [(1,), (2,), (2,)], 9: [(4,)]},
        4,
    )
    view.apply(changes_of({"seq": 4, "kind": "progress", "at": 12, "data": None}, "q", (), ()))
    assert (view.answer(), view.next_seq) == ([], 4)


def test_questions_asked_once_have_answers(room: Local):
    """At any time; here after the day above, if that test ran."""
    reported = asked.ask(room)  # type: ignore[arg-type]
    assert reported.count("as of") == len(asked.QUESTIONS)
    assert "newark_shift, newark_day, newark_week" in story.sharing(room)  # type: ignore[arg-type]


def filled(client: Local, winter: data.Winter) -> Local:
    """With all departures of the day in `flights`."""
    for block in blocks("archive"):
        client.execute(block.sql)
    client.ingest("flights", winter.streams["flights"])
    client.heartbeat("flights", winter.last)
    return client


def in_shell(client: Local, sql: str) -> str:
    """As the shell shows it."""
    answer = client.query(sql)
    return "\n".join(show_rows(answer.columns, answer.types, answer.rows, "table"))


@pytest.mark.xdist_group("spark")
def test_the_archive_is_updated_and_asked(spark, winter, tmp_path, capsys):
    from dsms.storage.archive.manifest import Archive
    from dsms_spark.execute import Runner
    from dsms_spark.update import update

    settings = {
        "archive_runner": Runner(spark),
        "archive_due": lambda name, url: update(spark, Archive(url)),
    }
    client: Any = filled(Local(tmp_path, **settings), winter)
    assert archive.tell(client, winter, lambda sql: in_shell(client, sql)) == []
    text = capsys.readouterr().out
    assert text.count("sub-indices:") == text.count("skipped") == len(archive.QUESTIONS) == 2
    wrong = archive.tell(
        client, winter, lambda sql: in_shell(client, sql).replace("UA", "AU").replace("F9", "9F")
    )
    assert len(wrong) == 2
    assert "recomputed" in wrong[0]
    # midnight belongs to it
    day = recompute.by_carrier(winter, winter.last, archive.DAY + 1, winter.last)
    assert sum(row[1] for row in day) == len(winter.streams["flights"])


def test_without_spark_the_demo_says_so_and_goes_on(winter, tmp_path, capsys):
    class NoJava:
        def run(self, job, cancel=None):
            raise UsageError("DS650", "Spark needs Java 17")

    client: Any = filled(Local(tmp_path, archive_runner=NoJava()), winter)
    assert archive.tell(client, winter, lambda sql: pytest.fail("nothing is asked")) == []
    text = capsys.readouterr().out
    assert "Spark needs Java 17" in text
    assert "08 Feb 23:59:59" in text  # landed up to the end of the day in UTC


def test_an_archive_that_is_not_updated_is_a_problem(winter, tmp_path, monkeypatch):
    from dsms_spark.execute import Runner

    class One(Runner):
        def run(self, job, cancel=None):
            return pa.RecordBatch.from_pydict({"flights": pa.array([0], pa.int64())})

    monkeypatch.setattr(archive, "PATIENCE", 0.01)
    client: Any = filled(Local(tmp_path, archive_runner=One()), winter)
    (wrong,) = archive.tell(client, winter, lambda sql: pytest.fail("nothing is asked"))
    assert "has not updated" in wrong


def test_the_mistakes_are_mistakes(room: Local):
    for sql in story.MISTAKES:
        with pytest.raises(QueryError) as found:
            room.execute(sql)
        text = show.complaint(sql, found.value)
        assert "^" in text
        assert "HINT" in text


def test_both_plans_of_query_4(room: Local):
    select = blocks("queries")[-1].select
    for place, upper, lower in (("up", "Negation", "Join"), ("down", "Join", "Negation")):
        plan = (
            room.execute(f"EXPLAIN {select} WITH (negation = {place})")[0].data["plan"].to_pylist()
        )  # type: ignore[union-attr]
        depth = {
            name: min(len(x) - len(x.lstrip()) for x in plan if name in x)
            for name in ("Join", "Negation")
        }
        assert depth[upper] < depth[lower], plan


def test_table_layout():
    assert (
        show.table(("city", "n"), [("Ulm", 5), ("Bonn", -12)])
        == "city    n\n----  ---\nUlm     5\nBonn  -12"
    )
    assert show.complaint("SELECT\n  x", DsmsError("DS201", "no x", 2, 3)).splitlines()[:3] == [
        "SELECT",
        "  x",
        "  ^",
    ]
