"""Rows that a stream can't take, whenever they come: without a usable timestamp, or without a value
where there must be one; and one that comes too early."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.intake.columns import TICKS, int_values, to_micros, unlocked
from dsms.intake.convert import Refusal
from dsms.intake.values import duration_text, instant_text
from dsms.sql.catalog import StreamDef
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Kind, Schema


def timestamps(
    definition: StreamDef, column: pa.Array, kept: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[Refusal, ...]]:
    """Timestamps (µs), the positions that have a usable one (None: all), and what is wrong with
    the others."""
    ts = unlocked(int_values(column))
    if definition.schema[definition.timestamp or 0].type.kind is Kind.INT:
        ts = to_micros(ts, TICKS[definition.unit or "us"])
    refusals: list[Refusal] = []
    good = np.ones(len(ts), bool)
    if column.null_count:
        good = column.is_valid().to_numpy(zero_copy_only=False)
        at = np.flatnonzero(~good)
        refusals.append(
            _refusal("NULL timestamp", places(at, kept), _column_is(definition, "NULL"))
        )
    if len(ts) and (ts.min() < MIN_INSTANT or ts.max() > MAX_INSTANT):
        inside = (ts >= MIN_INSTANT) & (ts <= MAX_INSTANT)
        at = np.flatnonzero(good & ~inside)
        if len(at):
            detail = _column_is(definition, str(column[int(at[0])].as_py()))
            refusals.append(_refusal("outside the years 0001-9999", places(at, kept), detail))
        good &= inside
    return ts, (np.flatnonzero(good) if refusals else None), tuple(refusals)


def _column_is(definition: StreamDef, text: str) -> str:
    return f"column {definition.schema[definition.timestamp or 0].name} is {text}"


def too_far(definition: StreamDef, places: np.ndarray, ts: int, known: int) -> Refusal:
    detail = (
        f"{instant_text(ts)} is more than MAX FUTURE "
        f"{duration_text(definition.max_future or 0)} after {instant_text(known)}, the "
        "newest instant so far; if time really went on, send heartbeats first, in steps no "
        "longer than that"
    )
    return _refusal("beyond MAX FUTURE", places, detail)


def without_nulls(
    schema: Schema, cols: tuple[pa.Array, ...]
) -> tuple[tuple[pa.Array, ...], tuple[Refusal, ...]]:
    """The rows that have a value in each NOT NULL column, which a stream of the same types need
    not have had."""
    bad = np.zeros(len(cols[0]), bool)
    for f, col in zip(schema, cols, strict=True):
        if not f.nullable and col.null_count:
            bad |= col.is_null().to_numpy(zero_copy_only=False)
    if not bad.any():
        return cols, ()
    where = np.flatnonzero(bad)
    refusal = Refusal("NULL in a NOT NULL column", len(where), int(where[0]), "LATE INTO")
    return take(cols, np.flatnonzero(~bad)), (refusal,)


def take(cols: tuple[pa.Array, ...], index: np.ndarray) -> tuple[pa.Array, ...]:
    """The rows at those positions."""
    where = pa.array(index)
    return tuple(c.take(where) for c in cols)


def places(at: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
    """Positions of rows in what the writer sent."""
    return at if kept is None else kept[at]


def _refusal(reason: str, places: np.ndarray, detail: str) -> Refusal:
    return Refusal(reason, len(places), int(places[0]), detail, places)
