"""Answers of periodic queries: whole, in a fixed order, and what differs between two of them.

Rows with parts are ordered and identified by the arrival numbers of their parts in FROM order; rows
without parts (aggregates, DISTINCT, set operations) are ordered by their columns, left to right,
and identified by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.operators.sort import by_columns
from dsms.sql.types import Schema
from dsms.state.columns import all_joined, all_taken
from dsms.state.intern import Intern


@dataclass(frozen=True, slots=True)
class Answer:
    """n rows: values, and for rows with parts the arrival numbers in FROM order (else no ids)."""

    n: int
    cols: tuple[pa.Array, ...]
    ids: tuple[np.ndarray, ...] = ()

    def take(self, index: np.ndarray) -> Answer:
        """The rows at `index`, in that order."""
        return Answer(len(index), all_taken(self.cols, index), tuple(i[index] for i in self.ids))

    def in_order(self) -> Answer:
        """The rows in their fixed order."""
        if self.n < 2:
            return self
        if self.ids:
            return self.take(np.lexsort(self.ids[::-1]))
        return self.take(by_columns(self.cols, self.n))


def no_rows(schema: Schema, width: int = 0) -> Answer:
    """The empty answer."""
    nothing = np.empty(0, np.int64)
    return Answer(0, tuple(pa.array([], f.type.arrow) for f in schema), (nothing,) * width)


def concat(answers: Sequence[Answer]) -> Answer:
    """All rows, one answer after the other."""
    if len(answers) == 1:
        return answers[0]
    return Answer(
        sum(a.n for a in answers),
        all_joined(a.cols for a in answers),
        tuple(np.concatenate(i) for i in zip(*(a.ids for a in answers), strict=True)),
    )


def new_rows(now: Answer, before: Answer) -> Answer:
    """The rows of `now` that are not in `before`, as bags."""
    if not before.n or not now.n:
        return now
    codes = _codes(concat([before, now]))
    old, new = codes[: before.n], codes[before.n :]
    had = np.bincount(old, minlength=int(codes.max()) + 1)
    return now.take(np.flatnonzero(_copy(new) >= had[new]))


def lost_rows(came: Answer, now: Answer) -> Answer:
    """Of the rows that came since the last evaluation, those that are gone again: the youngest
    equal ones stay."""
    if not came.n:
        return came
    codes = _codes(concat([came, now]))
    arrived, present = codes[: came.n], codes[came.n :]
    size = int(codes.max()) + 1
    came_of, there = np.bincount(arrived, minlength=size), np.bincount(present, minlength=size)
    return came.take(
        np.flatnonzero(_copy(arrived) < (came_of - np.minimum(came_of, there))[arrived])
    )


def _codes(rows: Answer) -> np.ndarray:
    if rows.ids:
        return Intern(len(rows.ids)).codes([pa.array(i) for i in rows.ids], rows.n)
    if not rows.cols:
        return np.zeros(rows.n, np.int64)
    return Intern(len(rows.cols)).codes(rows.cols, rows.n)


def _copy(codes: np.ndarray) -> np.ndarray:
    """For each row how many equal ones stand before it."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    lengths = np.diff(np.append(first, len(ranked)))
    out = np.empty(len(codes), np.int64)
    out[order] = np.arange(len(codes)) - np.repeat(first, lengths)
    return out
