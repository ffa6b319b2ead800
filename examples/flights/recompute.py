"""Two of the answers once more, the slow way: from all rows, at one instant.  They must be what the server says."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from examples.flights.data import AIRPORTS, Winter

HOUR = 3_600_000_000  # µs


def window(rows: pa.Table, at: int, length: int) -> pa.Table:
    """The rows with timestamps in (at - length, at]."""
    instants = pc.cast(rows["departed"], pa.int64())
    return rows.filter(pc.and_(pc.greater(instants, at - length), pc.less_equal(instants, at)))


def delays(winter: Winter, at: int) -> dict[str, tuple[int, float, int]]:
    """Airport -> number, mean and greatest delay of the last hour's departures; airports without any are left out."""
    found = {}
    for airport in AIRPORTS:
        delay = window(winter.streams[airport.lower()], at, HOUR)["delay"]
        if len(delay):
            found[airport] = (len(delay), pc.sum(delay).as_py() / len(delay), pc.max(delay).as_py())
    return found


def reached(winter: Winter, at: int) -> set[str]:
    """Where flights of the last two hours from LaGuardia went."""
    return set(window(winter.streams["lga"], at, 2 * HOUR)["dest"].to_pylist())
