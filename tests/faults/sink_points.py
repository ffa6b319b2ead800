"""What `dsms subscribe --output` leaves of a file when it is killed: any beginning of what it had
written, of which the whole rows can be read, and whoever goes on behind the last one has them all.

Parquet is not among the formats: such a file is one only when its end has been written.
"""

from __future__ import annotations

import csv
import io
import json
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from dsms_client.changes import Changes, changes_of
from dsms_client.files.written import writer

FORMS = ("json", "csv", "arrow")
COLUMNS, TYPES = ("w", "n"), ("STRING", "INT")
WORDS = ("plain", 'a "quoted" one', "two\nlines", "ünïcödé ✓", "", "a,b", None)
Row = tuple[int, str | None, int]  # number, w, n


class Cuts:
    """`points`: (format, bytes that are left of the file)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def points(self) -> list[tuple[str, int]]:
        return [(form, cut) for form in FORMS for cut in range(len(self._whole[form][0]) + 1)]

    @cached_property
    def _whole(self) -> dict[str, tuple[bytes, list[tuple[int, int]]]]:
        return {form: written(self._folder / f"whole.{form}", form, 0) for form in FORMS}

    def suffer(self, point: tuple[str, int]) -> None:
        """Raises AssertionError with what differs."""
        form, cut = point
        data, marks = self._whole[form]
        got = readable(form, data[:cut])
        assert got == ROWS[: len(got)]
        assert len(got) >= max((count for size, count in marks if size <= cut), default=0)
        again, _ = written(self._folder / f"again.{form}", form, len(got))
        assert got + readable(form, again) == ROWS


def written(path: Path, form: str, start: int) -> tuple[bytes, list[tuple[int, int]]]:
    """The file, and after each piece (the bytes that the system has, the rows that are in them)."""
    out, marks, number = writer(form, path, COLUMNS, TYPES), [], start
    while number < len(ROWS):
        piece = ROWS[number : number + 1 + number % 5]
        out.write(_changes(piece))
        number += len(piece)
        marks.append((path.stat().st_size, number - start))
    out.close()
    return path.read_bytes(), marks


def _changes(rows: list[Row]) -> Changes:
    push = {
        "seq": rows[0][0],
        "kind": "changes",
        "at": rows[-1][0],
        "data": [[w, n] for _, w, n in rows],
        "signs": [1] * len(rows),
        "ats": [seq for seq, *_ in rows],
    }
    return changes_of(push, "q", COLUMNS, TYPES)


def readable(form: str, data: bytes) -> list[Row]:
    """The whole rows of a file that may lack its end."""
    if form == "arrow":
        return _of_batches(data)
    text = data[: data.rfind(b"\n") + 1].decode()
    if form == "json":
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
        return [(row["$seq"], row.get("w"), row["n"]) for row in rows]
    while text.count('"') % 2:  # the last line ends within quotes
        text = text[: text.rfind("\n", 0, -1) + 1]
    found = list(csv.reader(io.StringIO(text, newline="")))[1:]
    return [(int(seq), _cell(w, int(n)), int(n)) for seq, _, _, w, n in found]


def _cell(text: str, n: int) -> str | None:
    """NULL and empty text differ by quotes, which this reader takes away."""
    return text or WORDS[n % len(WORDS)]


def _of_batches(data: bytes) -> list[Row]:
    rows: list[Row] = []
    try:
        for batch in pa.ipc.open_stream(data):
            columns = (batch.column(name).to_pylist() for name in ("$seq", "w", "n"))
            rows += zip(*columns, strict=True)
    except (pa.ArrowInvalid, OSError, EOFError):
        pass  # here it was cut
    return rows


ROWS: list[Row] = [(n, WORDS[n % len(WORDS)], n) for n in range(40)]
