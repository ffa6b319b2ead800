"""What the readers of files give: batches of good rows, and rejected lines with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.tabular.kinds import arrow_type
from dsms_client.files.options import Options
from dsms_client.files.text import convert, reason

Column = tuple[str, str]  # name and SQL type
NO_TEXT = "not UTF-8 text"


@dataclass(frozen=True, slots=True)
class Reject:
    """A line (from 1; in Parquet and Arrow a row's number) that is not a row of the stream, and
    why."""

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


def numbered(piece: Piece, numbers: np.ndarray) -> Piece:
    """A piece whose lines were counted from 0: `numbers` are those that they have."""
    rejects = [replace(reject, line=int(numbers[reject.line])) for reject in piece.rejects]
    return replace(piece, lines=numbers[piece.lines], rejects=rejects)


def merged(one: Piece, other: Piece) -> Piece:
    """The rows and rejects of two pieces, by their lines."""
    lines = np.concatenate([one.lines, other.lines])
    order = np.argsort(lines)
    rows = pa.Table.from_batches([one.batch, other.batch]).combine_chunks().take(pa.array(order))
    rejects = sorted([*one.rejects, *other.rejects], key=lambda reject: reject.line)
    batch = pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in rows.columns], names=rows.column_names
    )
    return Piece(batch, lines[order], rejects)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which columns of the file feed which of the stream (several: their texts, a blank between
    them); `missing` ones are NULL, `unused` ones are left out."""

    columns: tuple[Column, ...]
    source: tuple[tuple[str, ...], ...]  # file columns for each
    unused: tuple[str, ...]
    options: Options = field(default_factory=Options)

    @property
    def missing(self) -> list[str]:
        return [c for (c, _), s in zip(self.columns, self.source, strict=True) if not s]

    @property
    def used(self) -> list[str]:
        """The columns of the file that are read, each once."""
        return list(dict.fromkeys(name for parts in self.source for name in parts))


def map_columns(
    header: Sequence[str], columns: Sequence[Column], renamed: dict[str, str]
) -> Mapping:
    """Match a file's header with a stream's columns: a name as it is written, else in any case,
    else with `_` for what a name without quotes can't have (``id.orig_h`` is ``id_orig_h``);
    `renamed` maps stream columns to file columns, or to several: ``date+time``.

    Raises DS532 if no column fits, a renamed one is not there, or one that is wanted is there
    several times, be it in another case.
    """
    wanted = {k.casefold(): v for k, v in renamed.items()}
    asked_for = {part for text in renamed.values() for part in parts_of(text, header)}
    source: list[tuple[str, ...]] = []
    for name, _ in columns:
        asked = wanted.pop(name.casefold(), None)
        if asked is not None:
            source.append(tuple(there(part, header) for part in parts_of(asked, header)))
            continue
        taken = {other for other, _ in columns if other != name} | asked_for
        found = _the_one(name, [h for h in header if h not in taken])
        source.append(() if found is None else (found,))
    if wanted:
        known = ", ".join(n for n, _ in columns)
        raise UsageError(
            "DS532", f"the stream has no column {', '.join(wanted)}", hint=f"it has {known}"
        )
    if not any(source):
        known = ", ".join(n for n, _ in columns)
        raise UsageError(
            "DS532",
            f"no column of the file ({', '.join(header)}) is one of the stream's ({known})",
            hint="name them in the header, or use --map stream_column=file_column; a file without "
            "a line of names needs --no-header",
        )
    used = {name for parts in source for name in parts}
    return Mapping(tuple(columns), tuple(source), tuple(h for h in header if h not in used))


def parts_of(text: str, header: Sequence[str]) -> list[str]:
    """The columns that ``date+time`` names, unless one is called so."""
    return [text] if text in header else [part.strip() for part in text.split("+")]


def there(asked: str, header: Sequence[str]) -> str:
    """The column of the file that is meant.  Raises DS532."""
    found = _named(asked, header)
    if found is None:
        raise UsageError(
            "DS532", f"the file has no column {asked}", hint=f"it has {', '.join(header)}"
        )
    return found


def _named(wanted: str, header: Sequence[str]) -> str | None:
    """The column of a file that is called so, if any.  Raises DS532 if it could be several."""
    exact = [h for h in header if h == wanted]
    return _the_one(wanted, exact or header)


def _the_one(wanted: str, header: Sequence[str]) -> str | None:
    folded = wanted.strip().casefold()
    found = [h for h in header if h.strip().casefold() == folded]
    if not found:
        found = [h for h in header if plain_name(h) == folded]
    if len(found) > 1:
        raise several(wanted, found)
    return found[0] if found else None


def several(wanted: str, found: Sequence[str]) -> UsageError:
    """DS532: nothing says which one is meant."""
    what = f"the file has {len(found)} columns called {wanted}: {', '.join(found)}"
    return UsageError("DS532", what, hint="give each a name of its own in the file")


def check_apart(names: Sequence[str]) -> None:
    """Raises DS532 for columns of one name, which nothing tells apart."""
    for name in names:
        if names.count(name) > 1:
            raise several(name, [n for n in names if n == name])


def plain_name(name: str) -> str:
    """A name as it can be written without quotes, in small letters."""
    return re.sub(r"\W+", "_", name.strip()).strip("_").casefold()


def texts_of(found: dict[str, pa.Array], parts: Sequence[str], rows: int) -> pa.Array:
    """The texts (or what Arrow made of them) of a column; NULL where any part of it is."""
    if not parts:
        return pa.nulls(rows, arrow_type("STRING"))
    if len(parts) == 1:
        return found[parts[0]]
    return pc.binary_join_element_wise(*(found[part] for part in parts), " ")


def typed(
    texts: dict[str, pa.Array], lines: np.ndarray, mapping: Mapping
) -> tuple[pa.RecordBatch, np.ndarray, list[Reject]]:
    """Columns of text (by file column) -> good rows, their lines, rejects."""
    arrays: list[pa.Array] = []
    bad: dict[int, str] = {}
    for (name, sql), parts in zip(mapping.columns, mapping.source, strict=True):
        column = texts_of(texts, parts, len(lines))
        array, wrong = convert(column, sql, mapping.options)
        arrays.append(array)
        note(bad, wrong, column, name, sql, mapping.options)
    rejects: list[Reject] = []
    batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in mapping.columns])
    if bad:
        at = np.array(sorted(bad), np.int64)
        whole = _whole_lines(texts, at)
        rejects = [
            Reject(line, bad[i], text)
            for line, i, text in zip(lines[at].tolist(), at.tolist(), whole, strict=True)
        ]
        good = np.delete(np.arange(len(lines)), at)
        batch, lines = batch.take(pa.array(good)), lines[good]
    return batch, lines, rejects


def note(
    bad: dict[int, str],
    wrong: np.ndarray,
    texts: pa.Array,
    name: str,
    sql: str,
    options: Options,
) -> None:
    """Say of each of these rows, unless something was said before, what is wrong with its value."""
    if not len(wrong):
        return
    said: dict[str, str] = {}
    for at, text in zip(wrong.tolist(), texts.take(pa.array(wrong)).to_pylist(), strict=True):
        if at in bad:
            continue
        if text not in said:
            said[text] = f"{name}: {text!r} is not {sql}{reason(text, sql, options)}"
        bad[at] = said[text]


def line_of(values: Iterable[str]) -> str:
    """What a line of CSV with these values looks like."""
    return ",".join(
        '"' + v.replace('"', '""') + '"' if any(c in v for c in ',"\r\n') else v for v in values
    )


def _whole_lines(texts: dict[str, pa.Array], at: np.ndarray) -> list[str]:
    """As `line_of` makes them."""
    cells = [_cells(column.take(pa.array(at))) for column in texts.values()]
    return pc.binary_join_element_wise(*cells, ",").to_pylist()  # type: ignore[no-any-return]


def _cells(column: pa.Array) -> pa.Array:
    values = column.fill_null("")
    special = pc.match_substring_regex(values, '[,"\r\n]')
    if not pc.any(special, min_count=0).as_py():
        return values
    doubled = pc.replace_substring(values, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), values)
