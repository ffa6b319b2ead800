"""What the readers of files give: batches of good rows, and rejected lines with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms_client.columns import arrow_type
from dsms_client.files.text import convert, reason

Column = tuple[str, str]  # name and SQL type


@dataclass(frozen=True, slots=True)
class Reject:
    """A line (from 1; the row number in Parquet) that is not a row of the stream, and why."""

    line: int
    reason: str
    text: str


@dataclass(slots=True)
class Piece:
    """Good rows with the stream's columns, in order; `lines` are theirs.  `done`: bytes of the file
    read so far.  `empty`: lines without anything that are no rows."""

    batch: pa.RecordBatch
    lines: np.ndarray
    rejects: list[Reject] = field(default_factory=list)
    done: int = 0
    empty: int = 0


Pieces = Iterator[Piece]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which column of the file feeds which of the stream; `missing` ones are NULL, `unused` ones
    are left out.  `unit`: of numbers that are instants."""

    columns: tuple[Column, ...]
    source: tuple[str | None, ...]  # file column for each
    unused: tuple[str, ...]
    unit: str | None = None

    @property
    def missing(self) -> list[str]:
        return [c for (c, _), s in zip(self.columns, self.source, strict=True) if s is None]

    @property
    def used(self) -> list[str]:
        return [s for s in self.source if s is not None]


def map_columns(
    header: Sequence[str], columns: Sequence[Column], renamed: dict[str, str]
) -> Mapping:
    """Match a file's header with a stream's columns: a name as it is written, else in any case;
    `renamed` maps stream columns to file columns.

    Raises DS532 if no column fits, a renamed one is not there, or one that is wanted is there
    several times, be it in another case.
    """
    wanted = {k.casefold(): v for k, v in renamed.items()}
    source = []
    for name, _ in columns:
        asked = wanted.pop(name.casefold(), None)
        taken = {other for other, _ in columns if other != name} | set(renamed.values())
        found = (
            _named(asked, header)
            if asked
            else _the_one(name, [h for h in header if h not in taken])
        )
        if asked is not None and found is None:
            raise UsageError(
                "DS532", f"the file has no column {asked}", hint=f"it has {', '.join(header)}"
            )
        source.append(found)
    if wanted:
        known = ", ".join(n for n, _ in columns)
        raise UsageError(
            "DS532", f"the stream has no column {', '.join(wanted)}", hint=f"it has {known}"
        )
    if all(name is None for name in source):
        known = ", ".join(n for n, _ in columns)
        raise UsageError(
            "DS532",
            f"no column of the file ({', '.join(header)}) is one of the stream's ({known})",
            hint="name them in the header, or use --map stream_column=file_column",
        )
    return Mapping(tuple(columns), tuple(source), tuple(h for h in header if h not in source))


def _named(wanted: str, header: Sequence[str]) -> str | None:
    """The column of a file that is called so, if any.  Raises DS532 if it could be several."""
    exact = [h for h in header if h == wanted]
    return _the_one(wanted, exact or header)


def _the_one(wanted: str, header: Sequence[str]) -> str | None:
    folded = wanted.strip().casefold()
    found = [h for h in header if h.strip().casefold() == folded]
    if len(found) > 1:
        raise UsageError(
            "DS532",
            f"the file has {len(found)} columns called {wanted}: {', '.join(found)}",
            hint="give each a name of its own in the file",
        )
    return found[0] if found else None


def typed(
    texts: dict[str, pa.Array], lines: np.ndarray, mapping: Mapping
) -> tuple[pa.RecordBatch, np.ndarray, list]:
    """Columns of text (by file column) -> good rows, their lines, rejects."""
    arrays: list[pa.Array] = []
    bad: dict[int, str] = {}
    for (name, sql), source in zip(mapping.columns, mapping.source, strict=True):
        if source is None:
            arrays.append(pa.nulls(len(lines), arrow_type(sql)))
            continue
        array, wrong = convert(texts[source], sql, mapping.unit)
        arrays.append(array)
        for at in wrong.tolist():
            text = texts[source][at].as_py()
            bad.setdefault(at, f"{name}: {text!r} is not {sql}{reason(text, sql)}")
    rejects = [Reject(int(lines[i]), why, _line(texts, i)) for i, why in sorted(bad.items())]
    batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in mapping.columns])
    if bad:
        good = np.setdiff1d(np.arange(len(lines)), list(bad))
        batch, lines = batch.take(pa.array(good)), lines[good]
    return batch, lines, rejects


def _line(texts: dict[str, pa.Array], at: int) -> str:
    return ",".join("" if (v := column[at].as_py()) is None else v for column in texts.values())
