"""Rows sent as they once came, step by step: batches of each stream, then the promise that the step
is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from dsms_client import Client
from examples.flights.data import Winter, local, midnight

CLOCKS = {
    "ewr": "departed",
    "jfk": "departed",
    "lga": "departed",
    "flights": "departed",
    "weather": "t",
}
TABLE_ROWS = 500  # in one INSERT


def fill_tables(client: Client, winter: Winter) -> None:
    """What is in the tables holds from before the first row on."""
    start = local(winter.first - 1).strftime("%Y-%m-%d")
    for name, rows in winter.tables.items():
        values = ["(" + ", ".join(map(_literal, row.values())) + ")" for row in rows.to_pylist()]
        for at in range(0, len(values), TABLE_ROWS):
            client.execute(
                f"INSERT INTO {name} VALUES {', '.join(values[at : at + TABLE_ROWS])} AT '{start}'"
            )


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def hours(first: date, days: int, of_storm: date) -> Iterator[int]:
    """Instants up to which to send: every third hour of New York, on the day of the storm every
    hour."""
    for day in (first + timedelta(days=n) for n in range(days)):
        for hour in range(1 if day == of_storm else 3, 24, 1 if day == of_storm else 3):
            yield midnight(day, hour)
        yield midnight(day + timedelta(days=1))


class Replay:
    """Sends the rows up to an instant, each once."""

    def __init__(self, client: Client, winter: Winter) -> None:
        self._client = client
        self._winter = winter
        self._instants = {
            name: table[CLOCKS[name]].cast(pa.int64()).to_numpy()
            for name, table in winter.streams.items()
        }
        self._sent = dict.fromkeys(winter.streams, 0)
        self.rows = 0

    def send_until(self, instant: int) -> None:
        """Rows up to and with `instant`, and a heartbeat on each stream.  Raises RuntimeError if
        any is refused."""
        for name, table in self._winter.streams.items():
            start, stop = (
                self._sent[name],
                int(np.searchsorted(self._instants[name], instant, side="right")),
            )
            if stop > start:
                report = self._client.ingest(name, table.slice(start, stop - start))
                if report.accepted != stop - start:
                    raise RuntimeError(f"{name} did not take all rows: {report}")
            self._sent[name] = stop
            self.rows += stop - start
            self._client.heartbeat(name, instant)
