"""Which column says when a row was, in what form, and how late rows are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms_client.files import times
from dsms_client.files.options import Options
from dsms_client.files.pieces import plain_name
from dsms_client.files.text import convert

# names of event time, the likeliest first; then endings of them
NAMES = ("ts", "time", "timestamp", "datetime", "event_time", "date", "t", "epoch")
ENDINGS = ("_ts", "_time", "_timestamp", "_datetime", "_date", "_at", "time", "ts_ms", "time_ms",
           "ts_us", "ts_ns")  # a table  # fmt: skip
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EARLIEST, LATEST = 315_532_800, 4_102_444_800  # 1980 and 2100, in seconds
SECOND = 1_000_000
_CLOCK = r"^[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?$"
STEPS = (
    *((n, "SECOND") for n in (1, 2, 5, 10, 15, 30)),
    *((n, "MINUTE") for n in (1, 2, 5, 10, 15, 30)),
    *((n, "HOUR") for n in (1, 2, 3, 6, 12)),
    *((n, "DAY") for n in (1, 2, 3, 7, 14, 30)),
)
LENGTHS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The column of the file, types that follow from it, how its values are read, and why."""

    column: str | None
    types: dict[str, str]
    options: Options
    notes: tuple[str, ...]


def joined_day(
    texts: dict[str, pa.Array], types: dict[str, str]
) -> tuple[str, str, pa.Array] | None:
    """Two columns, of days and of times of day, and their values as one."""
    columns = list(texts)
    for day, clock in itertools.pairwise(columns):
        if types[day] != "TIMESTAMP" or types[clock] != "STRING":
            continue
        there = pc.match_substring_regex(texts[clock].drop_null(), _CLOCK)
        if (
            len(there)
            and pc.all(there).as_py()
            and not pc.any(pc.match_substring(texts[day], ":")).as_py()
        ):
            both = pc.binary_join_element_wise(texts[day], texts[clock], " ")
            if len(both.drop_null()) and not len(convert(both, "TIMESTAMP")[1]):
                return day, clock, both
    return None


def choose_time(
    texts: dict[str, pa.Array],
    types: dict[str, str],
    names: dict[str, str],
    options: Options,
    asked: str | None,
) -> Chosen:
    """Raises DS533 for a column that is not there, or has no times."""
    found: dict[str, tuple[Options, str]] = {}
    for name, values in texts.items():
        how = _how(name, values, types[name], options, asked is not None)
        if how is not None:
            found[name] = how
    gaps = {name: texts[name].null_count for name in found if texts[name].null_count}
    if asked is not None:
        column: str | None = _asked(asked, texts, names, found)
    else:
        column = _likeliest([name for name in found if name not in gaps])
    if column is None:
        said = "no column of times was found: rows are stamped as they arrive (--timestamp COLUMN)"
        if (likeliest := _likeliest(list(gaps))) is not None:
            said = (
                f"no time: {names[likeliest]} would be, but {_missing(gaps, likeliest, texts)}; "
                f"rows are stamped as they arrive (--timestamp {names[likeliest]} takes it all the "
                "same, and rows without it are refused and counted)"
            )
        return Chosen(None, {}, _with_forms(options, texts, types, None), (said,))
    read, why = found[column]
    notes = [f"time: {names[column]}, {why}"]
    if column in gaps:
        gap = _missing(gaps, column, texts)
        notes.append(f"{names[column]}: {gap}; such rows are refused and counted")
    others = [names[n] for n in found if n != column and types[n] == "TIMESTAMP"]
    if others:
        notes.append(f"times, too: {', '.join(others)} (--timestamp COLUMN takes another)")
    kept = _with_forms(read, texts, types, column)
    return Chosen(column, {column: "TIMESTAMP"}, kept, tuple(notes))


def _missing(gaps: dict[str, int], name: str, texts: dict[str, pa.Array]) -> str:
    return f"it is missing in {gaps[name]:,} of {len(texts[name]):,} rows of the sample"


def _with_forms(
    options: Options, texts: dict[str, pa.Array], types: dict[str, str], column: str | None
) -> Options:
    """With the formats of all other columns of times."""
    formats = list(options.time_formats)
    for name in texts:
        if types[name] == "TIMESTAMP" and name != column:
            formats += [f for f in times.guess(texts[name]) if f not in formats]
    return replace(options, time_formats=tuple(formats))


def _asked(
    asked: str,
    texts: dict[str, pa.Array],
    names: dict[str, str],
    found: dict[str, tuple[Options, str]],
) -> str:
    for name in texts:
        if asked.casefold() in (name.casefold(), names[name].casefold()):
            if name not in found:
                there = texts[name].drop_null()
                example = repr(there[0].as_py()) if len(there) else "it is empty"
                raise UsageError(
                    "DS533",
                    f"column {name} has no times that are known: {example}",
                    hint="say how they are written: --time-format FORMAT, --time-unit s",
                )
            return name
    raise UsageError(
        "DS533", f"the file has no column {asked}", hint=f"it has {', '.join(names.values())}"
    )


def _how(
    name: str, column: pa.Array, sql: str, options: Options, any_name: bool
) -> tuple[Options, str] | None:
    """How the values are times, and why one thinks so; None if they are none."""
    column = column.drop_null()
    if not len(column):
        return None
    if sql == "TIMESTAMP":
        if not len(convert(column, "TIMESTAMP", options)[1]):
            return options, "which holds times"
        unit = _unit(column, options)
        if unit is not None:
            return replace(options, unit=unit), f"numbers in {unit} since 1970"
        formats = times.guess(column)
        if not formats:
            return None
        form = formats[0]
        return replace(options, time_formats=(*options.time_formats, form)), f"written {form}"
    if sql in ("INT", "FLOAT") and (any_name or _rank(name) < len(NAMES) + len(ENDINGS)):
        unit = _unit(column, options)
        if unit is not None:
            return replace(options, unit=unit), f"numbers in {unit} since 1970"
    if sql == "STRING" and any_name and len(formats := times.guess(column)) > 1:
        ways = " or ".join(formats)
        return replace(options, time_formats=(formats[0],)), f"written {ways}: the first is taken"
    return None


def _unit(column: pa.Array, options: Options) -> str | None:
    """The unit in which all these numbers are instants of our days."""
    try:
        values = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None
    if options.unit is not None:
        return options.unit
    for unit, scale in UNITS.items():
        if len(values) and values.min() >= EARLIEST * scale and values.max() <= LATEST * scale:
            return unit
    return None


def _rank(name: str) -> int:
    """How likely a name is that of event time; the smaller the likelier."""
    plain = plain_name(name)
    if plain in NAMES:
        return NAMES.index(plain)
    ends = [i for i, ending in enumerate(ENDINGS) if plain.endswith(ending)]
    return len(NAMES) + (ends[0] if ends else len(ENDINGS))


def _likeliest(found: Sequence[str]) -> str | None:
    return min(found, key=_rank, default=None)


def slack_for(
    texts: dict[str, pa.Array], column: str | None, options: Options
) -> tuple[str | None, list[str]]:
    """A SLACK with which no row of the sample is late, with half as much again to spare."""
    if column is None:
        return None, []
    array = convert(texts[column], "TIMESTAMP", options)[0].drop_null()
    values = np.asarray(array)
    if not len(values):
        return None, []
    late = int((np.maximum.accumulate(values) - values).max())
    if not late:
        return None, []
    steps = [(n, u) for n, u in STEPS if n * LENGTHS[u] * SECOND >= late * 1.5]
    if not steps:
        said = f"rows are up to {late / SECOND / 86_400:.0f} days late: sort the file by time"
        return None, [said]
    count, unit = steps[0]
    said = f"slack: rows of the sample are up to {late / SECOND:g} s late"
    return f"{count} {unit}{'S' * (count > 1)}", [said]
