"""Rows and errors as text: table, csv, json (a line per row), vertical."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dsms.errors import DsmsError
from dsms.tabular.names import unique
from dsms.tabular.texts import cell, instant
from dsms_client.files.source import NULLS
from dsms_client.results import RowSet
from dsms_client.visible import prose, visible

FORMATS = ("table", "csv", "json", "vertical")
_CSV_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$|^\ufeff')
_RIGHT = ("INT", "FLOAT", "DECIMAL")
_PLAIN = re.compile(r"-?\d+\.\d+")
DECIMALS, SMALL = 6, 0.001  # digits of a FLOAT in a table, but for smaller ones
Rows = Sequence[Sequence[Any]]


def render(
    columns: Sequence[str], types: Sequence[str], rows: Rows, form: str, most: int | None = None
) -> Iterator[str]:
    """The lines that show the rows; of a table, or a line per value, at most so many rows, and how
    many more there are.  What is data (csv, json) is never cut off."""
    cut = form in ("table", "vertical") and most is not None and len(rows) > most
    yield from {"table": table, "csv": as_csv, "json": as_json, "vertical": vertical}[form](
        columns, types, rows[:most] if cut else rows
    )
    if cut and most is not None:
        more = len(rows) - most
        yield f"… {more:,} more row{'' if more == 1 else 's'} (\\limit all shows them)"


def is_number(sql: str) -> bool:
    """Whether values of the type stand to the right."""
    return sql.partition("(")[0] in _RIGHT


def shown(value: Any, sql: str) -> str:
    """`cell` on one line, without what would steer a terminal."""
    return visible(cell(value, sql))


def aligned(types: Sequence[str], rows: Rows) -> list[list[str]]:
    """The cells of a table, by column; those of numbers have one length."""
    values = zip(*rows, strict=True) if rows else [()] * len(types)
    return [
        _numbers(column, sql) if is_number(sql) else [shown(value, sql) for value in column]
        for column, sql in zip(values, types, strict=True)
    ]


def _numbers(values: Sequence[Any], sql: str) -> list[str]:
    """To the right; points stand below each other.  Of FLOATs at most DECIMALS digits stand behind
    the point (all, where the number is so small that these would say little): csv, json and a line
    per value have all digits."""
    texts = [cell(_rounded(value) if sql == "FLOAT" else value, sql) for value in values]
    behind = [len(text) - text.rfind(".") if _PLAIN.fullmatch(text) else 0 for text in texts]
    most = max(behind, default=0)
    padded = [t + " " * (most - n) if n else t for t, n in zip(texts, behind, strict=True)]
    widest = max(map(len, padded), default=0)
    return [text.rjust(widest) for text in padded]


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value) or 0 < abs(value) < SMALL:
        return value
    return round(value, DECIMALS)


def notes(answer: RowSet) -> Iterator[str]:
    """What is to be known of an answer beside its rows, for stderr."""
    if answer.waiting:
        yield waiting(answer.waiting, answer.as_of)
    if answer.since is not None:
        yield since(answer.since)
    if answer.approximate is not None:
        yield approximate(answer.approximate)
    if answer.share is not None:
        yield share(answer.share)


def waiting(rows: int, as_of: int | None) -> str:
    """That an answer lacks rows which have been taken, for stderr: stdout may be data."""
    what = f"{rows} accepted row{' waits' if rows == 1 else 's wait'}"
    when = "from before any clock" if as_of is None else f"as of {instant(as_of)}"
    return f"NOTE: the answer is {when}: {what} behind the clock (SHOW STREAMS says for what)"


def since(us: int) -> str:
    """That an answer lacks rows which are not kept any more, for stderr."""
    return (
        f"NOTE: the answer is complete from {instant(us)} on: rows before that are not kept any "
        "more (WITH (complete = required) refuses it instead)"
    )


def approximate(share: float) -> str:
    """That groups of an answer may miss a threshold, for stderr."""
    return (
        f"NOTE: the answer is approximate: groups may miss the threshold of HAVING by {share:.0%} "
        "of it, and none above it is missing"
    )


def share(kept: float) -> str:
    """That an answer lacks rows that were shed, for stderr."""
    return (
        f"NOTE: the answer rests on {kept:.1%} of the rows that came: the others were shed, as "
        "they came too fast (SHOW STREAMS says where), or were too many to be joined (SHOW QUERIES)"
    )


def table(columns: Sequence[str], types: Sequence[str], rows: Rows) -> Iterator[str]:
    """Aligned columns under a rule, numbers to the right, and the number of rows."""
    columns, cells_of = [visible(c) for c in columns], aligned(types, rows)
    widths = [max([len(c), *map(len, cells)]) for c, cells in zip(columns, cells_of, strict=True)]
    right = [is_number(t) for t in types]
    if columns:
        yield " | ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True)).rstrip()
        yield "-+-".join("-" * w for w in widths)
    for text in zip(*cells_of, strict=True):
        cells = [
            t.rjust(w) if r else t.ljust(w) for t, w, r in zip(text, widths, right, strict=True)
        ]
        yield " | ".join(cells).rstrip()
    yield f"({len(rows)} row{'' if len(rows) == 1 else 's'})"


def as_csv(columns: Sequence[str], types: Sequence[str], rows: Rows) -> Iterator[str]:
    """A header and the rows.  NULL is empty, empty text is "" (as in PostgreSQL's CSV); a text that
    `dsms load` would take for NULL is quoted.  Each column has a name of its own (`unique`)."""
    yield csv_line(unique(columns))
    for row in rows:
        yield csv_line([None if v is None else cell(v, t) for v, t in zip(row, types, strict=True)])


def csv_line(values: Sequence[str | None]) -> str:
    return ",".join("" if v is None else _csv_cell(v) for v in values)


def _csv_cell(text: str) -> str:
    """Quoted where it has to be.  What is NULL is no text here, so what looks like it is quoted."""
    if text not in NULLS and not _CSV_SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def as_json(columns: Sequence[str], types: Sequence[str], rows: Rows) -> Iterator[str]:
    """An object per row and line; instants, lengths of time, decimals, bytes and what no JSON
    number is (NaN, Infinity) are text.  Each column has a name of its own (`unique`)."""
    keys = [json.dumps(column, ensure_ascii=False) for column in unique(columns)]
    for row in rows:
        values = [_json_value(v, t) for v, t in zip(row, types, strict=True)]
        pairs = [f"{key}: {value}" for key, value in zip(keys, values, strict=True)]
        yield f"{{{', '.join(pairs)}}}"


def _json_value(value: Any, sql: str) -> str:
    """As JSON; of a list or struct all digits of what it holds, as they stand there."""
    if value is not None and sql.startswith(("LIST", "STRUCT")):
        return str(value)
    plain = value is None or isinstance(value, (bool, str)) or sql == "INT"
    if not plain and not (isinstance(value, float) and math.isfinite(value)):
        value = cell(value, sql)
    return json.dumps(value, ensure_ascii=False)


def vertical(columns: Sequence[str], types: Sequence[str], rows: Rows) -> Iterator[str]:
    """A line per value."""
    columns = [visible(c) for c in columns]
    width = max(map(len, columns), default=0)
    for number, row in enumerate(rows, 1):
        yield f"--- row {number} ---"
        for column, value, sql in zip(columns, row, types, strict=True):
            yield f"{column.ljust(width)} : {shown(value, sql)}"


def error(problem: DsmsError, text: str, line: int = 1, column: int = 1) -> Iterator[str]:
    """An error with the offending line of `text` and a caret under the column.

    `line` and `column`: where `text` begins in the file it was taken from.
    """
    place = ""
    if problem.line is not None and problem.column is not None:
        shift = column - 1 if problem.line == 1 else 0
        place = f" at line {problem.line + line - 1}, column {problem.column + shift}"
    yield prose(f"{type(problem).__name__} {problem.code}{place}: {problem.message}")
    if problem.line is not None and problem.column is not None:
        lines = re.split(r"\r?\n", text)
        if 1 <= problem.line <= len(lines):
            before, rest = (
                lines[problem.line - 1][: problem.column - 1],
                lines[problem.line - 1][problem.column - 1 :],
            )
            yield f"  {prose(before)}{prose(rest)}"
            yield "  " + "".join("\t" if c == "\t" else " " for c in prose(before)) + "^"
    if problem.hint:
        yield prose(f"HINT: {problem.hint}")
