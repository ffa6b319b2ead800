"""The Spark jobs on flights, on a small archive: figures against plain Python, pictures that are
pictures."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import fmean
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from dsms.errors import UsageError
from dsms.sql.types import INT, STRING, TIMESTAMP, Field
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import create
from dsms.storage.archive.schema import stored_schema
from examples.spark import carriers, flights, worst_routes
from tests.effort import SLOW

pytestmark = pytest.mark.xdist_group("spark")
NEW_YORK = ZoneInfo("America/New_York")
DAY = 24 * 3600 * 1_000_000
FIRST, DAYS = date(2013, 3, 4), 12  # clocks go forward on the 10th
ROUTES = (("EWR", "BOS"), ("EWR", "MIA"), ("JFK", "BOS"), ("LGA", "ORD"), ("LGA", "DEN"))
COLUMNS = (
    Field("origin", STRING),
    Field("dest", STRING),
    Field("carrier", STRING),
    Field("delay", INT),
    Field("departed", TIMESTAMP),
)
Flight = tuple[str, str, str, int, int]


def _flights() -> list[Flight]:
    """Of each carrier and hour some; AA is on time, B6 late in the evening, EV always and by
    hours."""
    rng, out = random.Random(5), []
    for n in range(DAYS):
        for _ in range(45):
            hour, carrier = rng.choice((1, 8, 20, 23)), rng.choice(("AA", "B6", "EV"))
            late = {"AA": 0, "B6": 40 if hour >= 20 else 2, "EV": 160}[carrier]
            left = datetime.combine(FIRST + timedelta(days=n), datetime.min.time(), NEW_YORK)
            left = left.replace(hour=hour, minute=rng.randrange(60))
            delay = late + rng.randint(-3, 3) * (1 + late // 20)
            out.append((*rng.choice(ROUTES), carrier, delay, int(left.timestamp()) * 1_000_000))
    return sorted(out, key=lambda row: row[4])


FLIGHTS = _flights()


@pytest.fixture(scope="module")
def archive(spark, tmp_path_factory) -> str:
    """Eleven days in the index, the last one still waiting; one flight whose delay is unknown."""
    from dsms_spark.update import update

    place = create(
        str(tmp_path_factory.mktemp("archive") / "flights"),
        "flights",
        "stream",
        COLUMNS,
        "carrier",
        Layout(3, 2, DAY, 30 * DAY),
        30 * DAY,
    )
    landing, schema = Landing(place), stored_schema(COLUMNS)
    first, last = FLIGHTS[0][4] // DAY, FLIGHTS[-1][4] // DAY
    for step in range(first, last + 1):
        rows = [row for row in FLIGHTS if row[4] // DAY == step]
        rows += [("EWR", "MIA", "AA", None, rows[-1][4])] if step == first else []  # type: ignore[list-item]
        ts = [row[4] for row in rows]
        columns = [
            *map(list, zip(*rows, strict=True)),
            ts,
            [t + 30 * DAY for t in ts],
            list(range(len(rows))),
        ]
        table = pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )
        if step == last:
            update(spark, place)
        landing.write(table, (step + 1) * DAY - 1)
    return place.url


def clock(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, NEW_YORK)


def test_the_worst_routes_of_each_day_and_the_week_before(spark, archive):
    delays: dict[tuple[str, str], dict[date, list[int]]] = defaultdict(lambda: defaultdict(list))
    for origin, dest, _, delay, departed in FLIGHTS:
        delays[origin, dest][clock(departed).date()].append(delay)
    true = []
    for day in (FIRST + timedelta(days=n) for n in range(DAYS)):
        means = sorted((-fmean(d[day]), route) for route, d in delays.items() if len(d[day]) >= 6)
        for rank, (mean, route) in enumerate(means[:3], 1):
            week = [x for n in range(1, 8) for x in delays[route].get(day - timedelta(days=n), [])]
            before = fmean(week) if week and day >= FIRST + timedelta(days=7) else None
            change = None if before is None else pytest.approx(-mean - before)
            true.append(
                (day, rank, *route, len(delays[route][day]), pytest.approx(-mean), before, change)
            )
    rows = worst_routes.worst(flights.flights(spark, archive), 3, 6).collect()
    got = [tuple(r) for r in rows]
    assert len(got) == len(true) > 25
    for row, want in zip(got, true, strict=True):
        assert row[:6] == want[:6]
        assert row[6] == (None if want[6] is None else pytest.approx(want[6]))
        assert row[7] == want[7]
    assert sum(row[6] is not None for row in got) > 10
    text = worst_routes.printed(rows).splitlines()
    assert len(text) == len(got) + 2
    assert text[2].startswith("Mon 04 Mar 2013") and text[2].endswith("-")


@SLOW
def test_carriers_and_hours_cluster_as_they_behave(spark, archive):
    delays = defaultdict(list)
    for _, _, carrier, delay, departed in FLIGHTS:
        delays[carrier, clock(departed).hour].append(delay)
    found = carriers.clustered(carriers.behaviour(flights.flights(spark, archive), 10), 3)
    assert {(p.carrier, p.hour) for p in found} == {c for c, d in delays.items() if len(d) >= 10}
    for p in found:
        mine = delays[p.carrier, p.hour]
        late = sum(d > carriers.LATE for d in mine) / len(mine)
        median, p90 = np.quantile(mine, [0.5, 0.9])
        assert (p.flights, p.median, p.p90, p.late) == (
            len(mine),
            *map(pytest.approx, (median, p90, late)),
        )
        assert p.cluster == {"AA": 0, "B6": int(p.hour >= 20), "EV": 2}[p.carrier]
    text = carriers.printed(found).splitlines()
    assert [line.split()[0] for line in text[2:]] == ["1", "2", "3"]
    assert "100%" in text[4]


@SLOW
@pytest.mark.parametrize(
    "example", [worst_routes, carriers], ids=lambda m: m.__name__.rpartition(".")[2]
)
def test_each_draws_a_picture(spark, archive, tmp_path, monkeypatch, capsys, example):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(flights, "get_session", lambda master: spark)
    monkeypatch.setattr(spark, "stop", lambda: None, raising=False)
    out = tmp_path / "picture.png"
    assert example.main([archive, "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    picture = out.read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    width, height = int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
    assert 600 < width < 3000 and 200 < height < 3000
    out.unlink()
    assert example.main([archive, "--out", str(out), "--least", "100000"]) == 0
    assert "no picture" in capsys.readouterr().out
    assert not out.exists()


def test_what_is_no_archive_of_flights_is_told(spark, tmp_path, monkeypatch, capsys):
    create(
        str(tmp_path / "s"), "s", "stream", COLUMNS[2:], "carrier", Layout(2, 1, DAY, None), None
    )
    with pytest.raises(UsageError, match="no column origin, dest"):
        flights.flights(spark, str(tmp_path / "s"))
    monkeypatch.setattr(
        flights, "get_session", lambda master: pytest.fail("no session is needed for that")
    )
    assert worst_routes.main(["x", "--out", str(tmp_path / "none" / "a.png")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "example", [worst_routes, carriers], ids=lambda m: m.__name__.rpartition(".")[2]
)
def test_help(capsys, example):
    with pytest.raises(SystemExit) as ended:
        example.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "ARCHIVE" in text and "--out" in text and "--least" in text
    assert Path(example.__file__).stem in text
