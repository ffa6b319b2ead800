"""Calendar fields, DATE_TRUNC, zones, and ways between numbers and instants.  All floor, before
1970 too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import InternalError
from dsms.lengths import LENGTH_UNITS
from dsms.operators.expressions.arithmetic import HIGH, LOW, in_years, refuse, without
from dsms.operators.expressions.arrays import (
    Value,
    both,
    either,
    floats,
    from_floats,
    from_ints,
    ints,
    present,
    relabel,
    spread,
)
from dsms.operators.expressions.errors import (
    ARGUMENT,
    BEYOND_LENGTHS,
    BEYOND_YEARS,
    RANGE,
    ErrorCounter,
)
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.operators.expressions.zones import Zone, zone
from dsms.sql.expr import NOW, Call
from dsms.sql.functions.constants import unit_name
from dsms.sql.types import Kind

DAY = LENGTH_UNITS["day"]
_MONDAY = 4 * DAY  # 1970-01-05
_STAMP = pa.timestamp("us")
_FAR = 2**62  # longer than any two instants are apart
_START = from_ints(np.zeros(1, np.int64))[0]  # 1970


def _constant(args: Sequence[Node], at: int) -> str | None:
    """The constant text at that place; None if there is no such argument."""
    if at >= len(args):
        return None
    const = args[at].const
    if const is None or not const.is_valid:
        raise InternalError("DS904", f"argument {at + 1} should be a constant; please report this")
    return str(const.as_py())


def _zone_at(args: Sequence[Node], at: int) -> Zone | None:
    name = _constant(args, at)
    return None if name is None or name == "UTC" else zone(name)


def _of(at: int, step: Callable[[ErrorCounter, pa.Array], pa.Array]) -> Kernel:
    """The kernel of the argument at that place, the others being constants that shaped it."""
    return lambda errors, *args: step(errors, spread(args[at], length(*args)))


# --- fields


def _week_day(x: pa.Array) -> pa.Array:
    return pc.day_of_week(x, count_from_zero=True, week_start=7)


_FIELDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "isoyear": pc.iso_year,
    "day": pc.day,
    "dow": _week_day,
    "isodow": lambda x: pc.day_of_week(x, count_from_zero=False, week_start=1),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": lambda x: from_ints(ints(x) // 1000 % 60_000, present(x)),
    "microsecond": lambda x: from_ints(ints(x) % 60_000_000, present(x)),
}


def _field(function: Callable[[pa.Array], pa.Array]) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        where = _zone_at(args, 1)

        def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
            if where is not None:
                x = in_years(
                    errors, from_ints(where.to_local(ints(x)), present(x)), "the local time"
                )
            return function(relabel(x, _STAMP))

        return Built(_of(0, step), where is not None)

    return build


# --- DATE_TRUNC


def floor_to(unit: str, x: np.ndarray) -> np.ndarray:
    """The start of the calendar unit, in µs of the same (local or UTC) time line."""
    match unit:
        case "week":
            return x - (x - _MONDAY) % LENGTH_UNITS["week"]
        case "month" | "quarter" | "year":
            return _days_floored(unit, x // DAY) * DAY
    return x - x % LENGTH_UNITS[unit]


def _days_floored(unit: str, days: np.ndarray) -> np.ndarray:
    """The first day of each day's month, quarter or year; by a table if the batch spans fewer days
    than it has rows."""
    if len(days) == 0:
        return days
    low, high = int(days.min()), int(days.max())
    if high - low < len(days):
        return _first_day(unit, np.arange(low, high + 1))[days - low]
    return _first_day(unit, days)


def _first_day(unit: str, days: np.ndarray) -> np.ndarray:
    dates = days.astype("M8[D]")
    if unit == "year":
        return dates.astype("M8[Y]").astype("M8[D]").astype(np.int64)
    months = dates.astype("M8[M]").astype(np.int64)
    months = months // 3 * 3 if unit == "quarter" else months
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def floor_in_zone(unit: str, x: np.ndarray, where: Zone) -> np.ndarray:
    """The start of the unit under a zone: calendar from the day on, elapsed time from the day's
    start below."""
    local = where.to_local(x)
    if LENGTH_UNITS.get(unit, DAY) >= DAY:
        return where.first_instant(floor_to(unit, local))
    day = where.first_instant(local - local % DAY)
    return day + (x - day) // LENGTH_UNITS[unit] * LENGTH_UNITS[unit]


def _date_trunc(call: Call, args: Sequence[Node]) -> Built:
    unit = unit_name(_constant(args, 0) or "")
    where = _zone_at(args, 2)
    if call.type.kind is Kind.INTERVAL:
        return Built(_of(1, _floor_length(unit)), True)

    def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        if where is not None:
            local = in_years(
                errors, from_ints(where.to_local(ints(x)), present(x)), "the local time"
            )
            x = either(pc.is_valid(local), x, None) if local.null_count > x.null_count else x
        here = present(x)
        values = ints(x) if here is None else np.where(here, ints(x), 0)
        starts = floor_to(unit, values) if where is None else floor_in_zone(unit, values, where)
        return in_years(errors, from_ints(starts, here), "DATE_TRUNC")

    return Built(_of(1, step), where is not None)


def _floor_length(unit: str) -> Callable[[ErrorCounter, pa.Array], pa.Array]:
    def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        values = ints(x)
        with np.errstate(over="ignore"):
            out = values - values % LENGTH_UNITS[unit]
        return refuse(
            errors,
            from_ints(out, present(x)),
            out > values,
            [x],
            RANGE,
            "DATE_TRUNC leaves INTERVAL",
            BEYOND_LENGTHS,
        )

    return step


# --- DATE_BIN


def _date_bin(call: Call, args: Sequence[Node]) -> Built:
    return Built(_binned, True)


def _binned(errors: ErrorCounter, size: Value, x: Value, origin: Value = _START) -> pa.Array:
    n = length(size, x, origin)
    steps = ints(size)
    bad = np.broadcast_to(steps <= 0, n)
    past = (ints(x) - ints(origin)) % np.where(steps > 0, steps, 1)
    here = both(both(present(size), present(x)), present(origin))
    starts = np.broadcast_to(ints(x) - np.minimum(past, _FAR), n)
    out = from_ints(starts, None if here is None else np.broadcast_to(here, n))
    out = refuse(errors, out, bad, [size, x, origin], ARGUMENT, "DATE_BIN has bins of no length")
    return in_years(errors, out, "DATE_BIN")


# --- numbers and instants


def _epoch(call: Call, args: Sequence[Node]) -> Built:
    return Built(_of(0, lambda errors, x: from_floats(ints(x) / 1e6, present(x))))


def _epoch_ms(call: Call, args: Sequence[Node]) -> Built:
    return Built(_of(0, lambda errors, x: from_ints(ints(x) // 1000, present(x))))


def _times(x: pa.Array, factor: int, errors: ErrorCounter, what: str) -> pa.Array:
    try:
        return pc.multiply_checked(x, factor)
    except pa.ArrowInvalid:
        low, high = -(-LOW // factor), HIGH // factor
        fitting = without(
            errors,
            [x],
            lambda v: (v < low) | (v > high),
            RANGE,
            f"{what} leaves the range of the type",
            BEYOND_YEARS if what == "TO_TIMESTAMP" else BEYOND_LENGTHS,
        )
        return pc.multiply_checked(fitting, factor)


_EPOCH = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _to_timestamp(call: Call, args: Sequence[Node]) -> Built:
    if args[0].type.kind is Kind.FLOAT:
        return Built(_of(0, _from_seconds), True)
    unit = unit_name(_constant(args, 1) or "s")

    def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        if unit == "ns":
            out = from_ints(ints(x) // 1000, present(x))
        else:
            out = _times(x, _EPOCH[unit], errors, "TO_TIMESTAMP")
        return in_years(errors, out, "TO_TIMESTAMP")

    return Built(_of(0, step), True)


def _from_seconds(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    with np.errstate(all="ignore"):
        values = np.rint(floats(x) * 1e6)
    bad = ~((values >= -(2.0**63)) & (values < 2.0**63))
    out = from_ints(np.where(bad, 0, values).astype(np.int64), present(x))
    return in_years(
        errors,
        refuse(errors, out, bad, [x], RANGE, "TO_TIMESTAMP leaves TIMESTAMP", BEYOND_YEARS),
        "TO_TIMESTAMP",
    )


def _make_interval(call: Call, args: Sequence[Node]) -> Built:
    factor = LENGTH_UNITS[unit_name(_constant(args, 1) or "")]
    return Built(_of(0, lambda errors, x: _times(x, factor, errors, "MAKE_INTERVAL")), True)


def _date_diff(call: Call, args: Sequence[Node]) -> Built:
    unit = LENGTH_UNITS[unit_name(_constant(args, 0) or "")]

    def kernel(errors: ErrorCounter, name: Value, a: Value, b: Value) -> pa.Array:
        n = length(name, a, b)
        return pc.divide(pc.subtract(spread(b, n), spread(a, n)), unit)

    return Built(kernel)


# --- zones


def _at_zone(call: Call, args: Sequence[Node]) -> Built:
    where = zone(_constant(args, 1) or "")

    def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        return in_years(errors, from_ints(where.to_local(ints(x)), present(x)), "AT TIME ZONE")

    return Built(_of(0, step), True)


def _from_zone(call: Call, args: Sequence[Node]) -> Built:
    where = zone(_constant(args, 1) or "")

    def step(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        return in_years(errors, from_ints(where.first_instant(ints(x)), present(x)), "FROM_ZONE")

    return Built(_of(0, step), True)


def _now(call: Call, args: Sequence[Node]) -> Node:
    """Never evaluated: it is a constant by then (dsms.oneshot.now)."""

    def run(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        raise InternalError("DS904", "NOW() has no value yet; please report this")

    return Node(run, call.type, None, True)


BUILDERS: dict[str, Builder] = {
    NOW: _now,
    **{name: _field(function) for name, function in _FIELDS.items()},
    "epoch": _epoch,
    "epoch_us": lambda call, args: Built(lambda errors, x: x),
    "epoch_ms": _epoch_ms,
    "date_trunc": _date_trunc,
    "date_bin": _date_bin,
    "to_timestamp": _to_timestamp,
    "make_interval": _make_interval,
    "date_diff": _date_diff,
    "at_zone": _at_zone,
    "from_zone": _from_zone,
}
