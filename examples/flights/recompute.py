"""Some of the answers once more, the slow way: from all rows, at one instant.  They must be what
the server says."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from examples.flights.data import AIRPORTS, Winter

HOUR = 3_600_000_000  # µs


def window(rows: pa.Table, at: int, length: int) -> pa.Table:
    """The rows with timestamps in (at - length, at]."""
    instants = pc.cast(rows["departed"], pa.int64())
    return rows.filter(pc.and_(pc.greater(instants, at - length), pc.less_equal(instants, at)))


def delays(winter: Winter, at: int) -> dict[str, tuple[int, float, int]]:
    """Airport -> number, mean and greatest delay of the last hour's departures; airports without
    any are left out."""
    found = {}
    for airport in AIRPORTS:
        delay = window(winter.streams[airport.lower()], at, HOUR)["delay"]
        if len(delay):
            found[airport] = (len(delay), pc.sum(delay).as_py() / len(delay), pc.max(delay).as_py())
    return found


def hourly(winter: Winter, boundary: int) -> dict[str, tuple[int, float, int]]:
    """Airport -> number, mean and 90 % quantile of the delays in the three hours before the
    boundary."""
    found = {}
    for airport in AIRPORTS:
        delay = sorted(
            window(winter.streams[airport.lower()], boundary - 1, 3 * HOUR)["delay"].to_pylist()
        )
        if delay:
            found[airport] = (
                len(delay),
                sum(delay) / len(delay),
                delay[-(-9 * len(delay) // 10) - 1],
            )
    return found


def busiest(winter: Winter, begin: int, end: int) -> list[tuple[str, int]]:
    """The three carriers with most departures from LaGuardia in [begin, end), and their number."""
    carriers = Counter(window(winter.streams["lga"], end - 1, end - begin)["carrier"].to_pylist())
    return sorted(carriers.items(), key=lambda item: (-item[1], item[0]))[:3]


def totals(winter: Winter, at: int) -> tuple[int, int | None]:
    """Number and greatest delay of LaGuardia's departures of the last six hours."""
    delay = window(winter.streams["lga"], at, 6 * HOUR)["delay"]
    return len(delay), pc.max(delay).as_py()


def by_carrier(winter: Winter, at: int, length: int, upto: int) -> list[tuple[str, int, int, int]]:
    """Carrier, number, sum and greatest of the delays of departures in (at - length, upto], from
    all airports."""
    found: dict[str, list[int]] = {}
    for airport in AIRPORTS:
        rows = window(winter.streams[airport.lower()], upto, length - (at - upto))
        for carrier, delay in zip(
            rows["carrier"].to_pylist(), rows["delay"].to_pylist(), strict=True
        ):
            found.setdefault(carrier, []).append(delay)
    return [(carrier, len(delays), sum(delays), max(delays)) for carrier, delays in found.items()]


def reached(winter: Winter, at: int) -> set[str]:
    """Where flights of the last two hours from LaGuardia went."""
    return set(window(winter.streams["lga"], at, 2 * HOUR)["dest"].to_pylist())
