"""NEXMark: each of its queries is one statement, and tells what its definition says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dsms
from dsms.settings import Settings
from tests.effort import effort
from tests.nexmark import events as ev
from tests.nexmark.events import SECOND, Events
from tests.nexmark.play import played
from tests.nexmark.queries import DECLARE, NAMES, VIEWS, definition, statement
from tests.nexmark.truth import Truth
from tests.pages.text import ROOT, blocks

BY_DAY = ("q14", "q15", "q16", "q17")


@cache
def disordered(count: int = 4_000) -> Events:
    """Forty seconds over midnight, up to three of them late."""
    start = ev.MIDNIGHT - 20 * SECOND
    return ev.make(count, rate=100, seed=3, disorder=3 * SECOND, start=start)


def wrong(names: Sequence[str], events: Events, frame: int, folder: Path, times: int) -> list[str]:
    """What these queries tell wrongly, all in one engine; of views as of so many instants."""
    found = played(names, events, frame, Settings(archive=str(folder)))
    truth = Truth(events, found.arrived)
    instants = truth.some_instants(times)
    return [
        complaint
        for name in names
        for complaint in truth.complaints(name, found.told[name], instants)
    ]


def test_all_queries_are_there_each_as_one_statement() -> None:
    assert list(NAMES) == [f"q{k}" for k in range(24)]
    for name in NAMES:
        first, *_ = text = statement(name).splitlines()
        assert first.startswith("-- ")
        assert [line for line in text if re.match(f"CREATE QUERY {name} AS$", line)]
        assert statement(name).count(";") == 1
        assert definition(name)


def test_the_page_shows_the_statements_that_are_tested() -> None:
    page = (ROOT / "docs" / "nexmark.md").read_text(encoding="utf-8")
    shown = [block.body for block in blocks(page) if block.kind == "sql"]
    assert sorted(shown) == sorted([DECLARE, *map(statement, NAMES)])


def test_queries_tell_what_they_mean(tmp_path: Path) -> None:
    assert wrong(NAMES, disordered(), 700, tmp_path, 3) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_of_them_alone_over_many_events(name: str, tmp_path: Path) -> None:
    events = ev.make(60_000, rate=1_000, seed=int(name[1:]), disorder=2 * SECOND)
    assert wrong((name,), events, 10_000, tmp_path, 8) == []


def test_there_is_something_to_tell() -> None:
    events = disordered()
    truth = Truth(events, np.zeros(events.rows["bid"].num_rows, np.int64))
    assert min(truth.count(name) for name in NAMES) > 1


def test_they_tell_the_same_however_rows_come(tmp_path: Path) -> None:
    """But for the one on system time, whose rows come when they come."""
    names = [name for name in NAMES if name != "q12"]
    events = disordered() if effort() else disordered(1_000)
    cuts = (1, 37, events.count) if effort() else (170, events.count)
    first, *others = (
        played(names, events, cut, Settings(archive=str(tmp_path / str(cut)))) for cut in cuts
    )
    for other in others:
        assert [name for name in names if not first.told[name].equals(other.told[name])] == []


def test_those_that_go_by_days_over_some_of_them(tmp_path: Path) -> None:
    events = ev.make(2_000, rate=0.02, seed=4)
    assert wrong(BY_DAY, events, 1_000, tmp_path, 3) == []


def test_bids_that_are_written_to_files_stand_there(tmp_path: Path) -> None:
    events = ev.make(2_000, rate=10, seed=5)
    told = played(("q10",), events, 500, Settings(archive=str(tmp_path))).told["q10"]
    files = f"{tmp_path}/q10/landing/*.parquet"
    columns = ", ".join(told.schema.names[:-2]).replace("date_time", "epoch_us(date_time)")
    with duckdb.connect() as database:
        landed = database.sql(f"SELECT {columns} FROM '{files}' ORDER BY ALL").fetchall()
        assert landed == database.sql(f"SELECT {columns} FROM told ORDER BY ALL").fetchall()
    assert len(landed) == events.rows["bid"].num_rows
    assert len({row[-1] for row in landed}) == len(list((tmp_path / "q10").rglob("*.parquet")))


@pytest.mark.parametrize("name", ["q2", "q5", "q9"])
def test_what_is_told_wrongly_is_noticed(name: str) -> None:
    events = disordered()
    found = played((name,), events, 5_000).told[name]
    truth = Truth(events)
    end = truth.some_instants(1)
    assert truth.complaints(name, found, end) == []
    lacks = found.slice(0, found.num_rows - 1)
    twice = pa.concat_tables([found, found.slice(found.num_rows - 1)])
    later = found.set_column(
        found.num_columns - 1, "$at", pa.array(np.full(found.num_rows, 7)).cast(pa.timestamp("us"))
    )
    changed = [lacks, twice] if name in VIEWS else [lacks, twice, later]
    assert all(truth.complaints(name, told, end) for told in changed)


# -- the events ------------------------------------------------------------------------------------


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    made = ev.make(5_000)
    assert {name: rows.num_rows for name, rows in made.rows.items()} == {
        "person": 100,
        "auction": 300,
        "bid": 4_600,
    }
    ids = made.rows["auction"].column("id").to_pylist()
    assert ids == list(range(1000, 1300))
    instants = made.rows["bid"].column("date_time").cast(pa.int64()).to_numpy()
    assert (np.diff(instants) >= 0).all() and instants[-1] == ev.MIDNIGHT + 4_999 * 100


def test_events_fit_the_streams_and_are_the_same_each_time() -> None:
    engine = dsms.Engine()
    engine.execute(DECLARE)
    columns = {s.name: [c.name for c in s.schema] for s in engine.streams()}
    made, again, other = ev.make(500), ev.make(500), ev.make(500, seed=2)
    for name, rows in made.rows.items():
        assert rows.schema.names == columns[name]
        assert rows.equals(again.rows[name]) and not rows.equals(other.rows[name])


def test_some_auctions_and_bidders_are_hot_and_references_hold() -> None:
    rows = ev.make(50_000).rows
    auction, bidder = (rows["bid"].column(c).to_numpy() for c in ("auction", "bidder"))
    seller = rows["auction"].column("seller").to_numpy()
    assert 0.45 < (auction % 100 == 0).mean() < 0.55
    assert 0.7 < (bidder % 100 == 1).mean() < 0.8
    assert 0.7 < (seller % 100 == 0).mean() < 0.8
    for column, known in ((auction, "auction"), (bidder, "person"), (seller, "person")):
        assert np.isin(column, rows[known].column("id").to_numpy()).mean() > 0.95
    prices = rows["bid"].column("price").to_numpy()
    assert prices.min() >= 100 and prices.max() <= 100_000_000


def test_disorder_has_its_bound() -> None:
    made = ev.make(5_000, rate=1_000, disorder=SECOND)
    ts = made.rows["bid"].column("date_time").cast(pa.int64()).to_numpy()
    late = np.maximum.accumulate(ts) - ts
    assert 0 < late.max() < SECOND
    whole = [rows.num_rows for frame in made.frames(700) for _, rows in frame]
    assert sum(whole) == made.count
