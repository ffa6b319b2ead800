"""Tables and plans as HTML, for notebooks: all text of others is escaped, what is long is cut, and
how much is left out is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from typing import Any

import pyarrow as pa

from dsms.lists import from_edge
from dsms.structs import from_edge as struct_texts
from dsms.tabular.texts import cell
from dsms.typed_texts import from_edge as physical

ROWS, COLUMNS, CHARACTERS = 20, 40, 200  # that are shown
PLAN = "plan"  # the only column of what EXPLAIN answers
_KINDS = (
    (pa.types.is_timestamp, "TIMESTAMP"),
    (pa.types.is_duration, "INTERVAL"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time, "TIME"),
)
_RIGHT = ' style="text-align:right"'


def table_html(table: pa.Table) -> str:
    """The first rows and columns, and how many there are; what EXPLAIN answers as it is laid
    out."""
    if table.column_names == [PLAN] and pa.types.is_string(table.schema[0].type):
        lines = table.column(0).slice(0, 10 * ROWS).to_pylist()
        return plan_html([str(line) for line in lines], table.num_rows)
    shown = table.select(range(min(COLUMNS, table.num_columns))).slice(0, ROWS)
    rows = zip(*map(_cells, shown.columns), strict=True) if shown.num_columns else ()
    numbers = [_is_number(c.type) for c in shown.columns]
    return rows_html(shown.column_names, rows, numbers, _size(table))


def rows_html(names: Sequence[str], rows: Any, numbers: Sequence[bool] = (), note: str = "") -> str:
    """Rows of texts under their names; columns of `numbers` stand to the right."""
    right = [*numbers, *[False] * (len(names) - len(numbers))]
    head = "".join(f"<th>{_cut(name)}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_RIGHT * r}>{_cut(text)}</td>" for text, r in zip(row, right, strict=True))
        + "</tr>"
        for row in rows
    )
    tail = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{tail}"


def names_html(declared: Mapping[str, Mapping[str, Sequence[Any]]]) -> str:
    """Streams, tables and queries with their columns (`Engine.names`)."""
    found = [(kind, name, columns) for kind, of in declared.items() for name, columns in of.items()]
    rows = [
        (kind, name, ", ".join(f"{c.name} {c.type}" for c in columns[:COLUMNS]))
        for kind, name, columns in found[: 5 * ROWS]
    ]
    left = len(found) - len(rows)
    counts = ", ".join(f"{len(of):,} {kind}" for kind, of in declared.items())
    note = counts + (f"; {left:,} more are not shown" if left else "")
    return rows_html(("kind", "name", "columns"), rows, note=note)


def plan_html(lines: Sequence[str], of: int) -> str:
    """A plan, line by line."""
    more = [f"… {of - len(lines):,} more lines"] if of > len(lines) else []
    return f"<pre>{escape(chr(10).join(chain(lines, more)))}</pre>"


def _size(table: pa.Table) -> str:
    rows, columns = table.num_rows, table.num_columns
    text = f"{rows:,} row{'s' * (rows != 1)}"
    text += f", the first {ROWS} shown" if rows > ROWS else ""
    return text + (f"; {COLUMNS} of {columns} columns shown" if columns > COLUMNS else "")


def _cells(column: pa.ChunkedArray) -> Iterator[str]:
    if pa.types.is_list(column.type) or pa.types.is_struct(column.type):
        whole = column.combine_chunks()
        texts = (from_edge if pa.types.is_list(column.type) else struct_texts)(whole).to_pylist()
        return ("NULL" if text is None else text for text in texts)
    sql = next((name for is_kind, name in _KINDS if is_kind(column.type)), "")
    values = (physical(column) if sql else column).to_pylist()
    return (cell(value, "BOOL" if isinstance(value, bool) else sql) for value in values)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _cut(text: str) -> str:
    left = len(text) - CHARACTERS
    return escape(text if left <= 0 else f"{text[:CHARACTERS]}… ({left:,} more characters)")
