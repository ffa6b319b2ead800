"""Text for people: tables with aligned columns, local times, statements with a caret under the
mistake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsms_client import DsmsError
from examples.flights.data import local


def title(text: str) -> str:
    return f"\n{text}\n{'-' * len(text)}"


def indent(text: str, by: str = "    ") -> str:
    return "\n".join(by + line if line else line for line in text.splitlines())


def moment(instant: int) -> str:
    """`Fri 8 Feb 14:05`, as clocks in New York showed it."""
    at = local(instant)
    return f"{at:%a} {at.day:>2} {at:%b %H:%M}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as what is in them; numbers to the right."""
    body = [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    right = [all(_number(row[k]) for row in body) for k in range(len(head))]
    return "\n".join(
        _line(row, widths, right) for row in [list(head), ["-" * w for w in widths], *body]
    )


def _number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdigit() or text in ("", "-")


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = [
        cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)
    ]
    return "  ".join(cells).rstrip()


def complaint(sql: str, error: DsmsError) -> str:
    """The statement with a caret where it went wrong, and what was said about it."""
    lines = sql.splitlines()
    if error.line is not None and error.column is not None:
        lines.insert(error.line, " " * (error.column - 1) + "^")
    return "\n".join([*lines, str(error)])
