"""What people see of a load: a progress bar, rejected lines, a summary."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Any

import numpy as np

from dsms.errors import UsageError
from dsms_client.files.pieces import Piece, Reject
from dsms_client.files.several import PER_FILE
from dsms_client.files.source import FileSource
from dsms_client.results import IngestReport
from dsms_client.visible import prose

_PLACE = re.compile(r"(?<=: )row (\d+)(?=: )")  # in what the server says of refused rows
MOST = 10_000  # rejects after which a load stops unless it is told otherwise
SHOWN = 20  # rejected lines printed; the rest is counted


class Reporter:
    """Writes to stderr; rejects go to a file if one is named.  `words`: what is said of options of
    `dsms load`, in other words."""

    def __init__(self, rejects: str | None, quiet: bool, words: Callable[[str], str] = str) -> None:
        self._path = rejects
        self._words = words
        self._quiet = quiet
        self._file: IO[str] | None = None
        self._writer: Any = None
        self._bar: Any = None
        self._task: Any = None
        self._paths: list[str] = []
        self._noted: set[str] = set()
        self.rejected = 0
        self.empty = 0  # lines that are no rows

    def __enter__(self) -> Reporter:
        if self._path is not None:
            try:
                self._file = open(self._path, "w", encoding="utf-8", newline="")
            except OSError as problem:
                raise UsageError(
                    "DS531", f"cannot write {self._path}: {problem.strerror}"
                ) from None
            self._writer = csv.writer(self._file)
            self._writer.writerow(("line", "reason", "text"))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._file is not None:
            self._file.close()

    def begin(self, paths: Sequence[str]) -> int:
        """These files are read: the number of the first one.  Shows a bar on a terminal."""
        first = len(self._paths)
        self._paths += paths
        if not self._quiet and not first and sys.stderr.isatty():
            self._show_bar(paths)
        return first

    def _show_bar(self, paths: Sequence[str]) -> None:
        name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
        size = os.path.getsize(paths[0]) if len(paths) == 1 and os.path.exists(paths[0]) else None
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rows]:,} rows"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(name, total=size, rows=0)
        self._bar.start()

    def file(self, number: int, source: FileSource) -> None:
        """That file is read now."""
        if self._bar is not None and len(self._paths) > 1:
            self._bar.update(self._task, description=source.name)

    def path(self, place: int) -> str:
        """The file that a line is of."""
        return self._paths[place // PER_FILE]

    def place(self, place: int) -> str:
        """A line for people; with its file, if there are several."""
        number, line = divmod(place, PER_FILE)
        return f"{self._paths[number]} line {line}" if len(self._paths) > 1 else f"line {line}"

    def _cell(self, place: int) -> int | str:
        number, line = divmod(place, PER_FILE)
        return f"{self._paths[number]}:{line}" if len(self._paths) > 1 else line

    def has_enough(self, most: int | None) -> bool:
        """Whether there were more than so many rejects, or as many as are told if nothing is said;
        says so."""
        limit = most if most is not None else (MOST if self._writer is None else None)
        if limit is None or self.rejected <= limit:
            return False
        self.say(
            f"stopped: more than {limit:,} lines were rejected "
            "(--max-rejects N allows more, --rejects FILE keeps them)"
        )
        return True

    def once(self, line: str) -> None:
        """A note that is not repeated for the next file."""
        if line not in self._noted:
            self._noted.add(line)
            self.note(line)

    def progress(self, done: int, rows: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, rows=rows)

    def piece(self, piece: Piece) -> None:
        """Tell what of a piece of the file is not sent."""
        self.empty += piece.empty
        self.reject(piece.rejects)

    def reject(self, rejects: list[Reject]) -> None:
        for bad in rejects:
            self.rejected += 1
            if self._writer is not None:
                reason = self._words(bad.reason)
                self._writer.writerow((self._cell(bad.line), reason, bad.text))
            elif self.rejected <= SHOWN:
                self.say(f"{self.place(bad.line)}: {bad.reason}")
            elif self.rejected == SHOWN + 1:
                self.say("... and more; --rejects FILE keeps them all")

    def refused(self, report: IngestReport, lines: np.ndarray) -> IngestReport:
        """The report with lines of the file for rows of the batch: those of the first row refused
        for each reason, which the server names.  The file of rejects has all that were not
        taken."""
        reasons = []
        for reason in report.reasons:
            place = _PLACE.search(reason)
            if place is not None and int(place[1]) < len(lines):
                line = int(lines[int(place[1])])
                reason = f"{reason[: place.start()]}{self.place(line)}{reason[place.end() :]}"
            reasons.append(reason)
        self._keep(report, lines)
        return replace(report, reasons=tuple(reasons), positions={})

    def _keep(self, report: IngestReport, lines: np.ndarray) -> None:
        if self._writer is None:
            return
        rows = [(row, reason) for reason, rows in report.positions.items() for row in rows]
        for row, reason in sorted(rows):
            said = "late" if reason == "late" else f"refused by the server: {reason}"
            self._writer.writerow((self._cell(int(lines[row])), said, ""))
        left = report.late + report.refused - len(rows)
        if left:
            self._writer.writerow(("", f"{left} more rows were late or refused", ""))

    @property
    def keeps(self) -> bool:
        """Whether rejects go to a file."""
        return self._writer is not None

    def say(self, line: str) -> None:
        line = self._words(line)
        if self._bar is not None:
            self._bar.console.print(prose(line), markup=False, highlight=False)
        else:
            print(prose(line), file=sys.stderr)

    def note(self, line: str) -> None:
        """Something worth knowing, unless --quiet."""
        if not self._quiet:
            self.say(line)

    def summary(self, stream: str, report: IngestReport, sent: int, seconds: float) -> None:
        """What became of the rows sent.  Frames, or first parts of them, that a server had taken
        when it died are in no report: they go again, and are known."""
        for reason in report.reasons:
            self.say(f"refused by the server: {reason}")
        parts = [f"{report.accepted:,} rows accepted by {stream}"]
        known = sent - report.accepted - report.late - report.refused - report.shed
        for count, what in (
            (known, "taken before the connection was lost"),
            (report.late, "late"),
            (report.refused, "refused"),
            (report.shed, "shed"),
            (self.rejected, "lines rejected"),
            (self.empty, f"empty line{'s' * (self.empty > 1)} left out"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        rate = f" ({report.accepted / seconds:,.0f} rows/s)" if seconds > 0.1 else ""
        self.note(", ".join(parts) + f" in {seconds:.1f} s{rate}")
