"""The live view of a persistent query: on a terminal a table that changes, else a line per row.

A query that sends a snapshot or deletions is a view, and the table is its current content.  Of any other the table
shows the newest rows.  Ctrl-C leaves the view, not the shell.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from dsms_client.results import Push
from dsms_client.shell import show

if TYPE_CHECKING:
    from dsms_client.shell.runner import Runner
    from dsms_client.sync import Subscription

MARKS = {"snapshot": "=", "insert": "+", "delete": "-", "result": ">"}
REFRESH = 0.1  # seconds between two drawings
SHOWN = 1000  # rows kept for the table


def watch(runner: Runner, query: str, start: int | None) -> None:
    """Show the results of `query` until it ends or Ctrl-C.  Raises DsmsError if the subscription does."""
    with runner.client.subscribe(query, start) as results:
        try:
            if sys.stdout.isatty() and runner.form == "table":
                _draw(runner, results)
            else:
                _print(runner, results)
        except KeyboardInterrupt:
            runner.say()


def _print(runner: Runner, results: Subscription) -> None:
    for push in results:
        for line in push_lines(push, results.types, runner.form):
            print(line, file=runner._out or sys.stdout, flush=True)


def push_lines(push: Push, types: tuple[str, ...], form: str) -> list[str]:
    """A push as text, a line per row: its mark, its instant, its values."""
    if push.kind == "end":
        return [f"the query has ended{': ' + push.message if push.message else ''}"]
    if form == "json":
        names, kinds = ("$kind", "$at", *push.columns), ("STRING", "TIMESTAMP", *types)
        return list(show.as_json(names, kinds, _marked(push, push.kind)))
    rows = _marked(push, MARKS.get(push.kind, "?"))
    texts = [[show.cell(v, t) for v, t in zip(row, ("STRING", "TIMESTAMP", *types), strict=True)] for row in rows]
    if form == "csv":
        return [show._csv_line(text) for text in texts]
    return [f"{mark} {at}  {' | '.join(values)}" for mark, at, *values in texts]


def _marked(push: Push, mark: str) -> list[tuple[Any, ...]]:
    return [(mark, at, *row) for at, row in zip(push.instants, push.rows, strict=True)]


class View:
    """What the table shows: the content of a view, the last periodic answer, or the newest rows."""

    def __init__(self) -> None:
        self.is_view = False
        self.at: int | None = None
        self.total = 0
        self._content: Counter[tuple[Any, ...]] = Counter()
        self._newest: deque[tuple[Any, ...]] = deque(maxlen=SHOWN)

    def add(self, push: Push) -> None:
        """Take a push in."""
        self.at = push.at if push.at is not None else self.at
        if push.kind in ("snapshot", "delete"):
            self.is_view = True
        self.total += len(push)
        match push.kind:
            case "snapshot" | "insert":
                self._content.update(push.rows)
                self._newest.extend(push.rows)
            case "delete":
                self._content.subtract(push.rows)
                self._content += Counter()  # forget what is gone
            case "result":
                self._newest.clear()
                self._newest.extend(push.rows)
        if not self.is_view:
            self._content.clear()

    def rows(self, count: int) -> list[tuple[Any, ...]]:
        """At most `count` rows to show."""
        return list(self._content.elements())[:count] if self.is_view else list(self._newest)[-count:]

    def title(self, query: str) -> str:
        count = f"{self._content.total()} rows" if self.is_view else f"{self.total} result rows so far"
        return f"{query} at {show.instant(self.at)}: {count}   (Ctrl-C leaves)"


def _draw(runner: Runner, results: Subscription) -> None:
    from rich.live import Live

    view, seen = View(), -1
    with Live(_picture(view, results), auto_refresh=False, vertical_overflow="crop") as screen:
        while not _take(view, results):
            if view.total != seen:
                screen.update(_picture(view, results), refresh=True)
                seen = view.total
        screen.update(_picture(view, results), refresh=True)
    runner.say("the query has ended")


def _take(view: View, results: Subscription) -> bool:
    """Take what comes within a short while; True if the query has ended."""
    until = time.monotonic() + REFRESH
    while (left := until - time.monotonic()) > 0:
        try:
            push = results.next(timeout=left)
        except TimeoutError:
            return False
        if push is None or push.kind == "end":
            return True
        view.add(push)
    return False


def _picture(view: View, results: Subscription) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    out = Table()
    for column, sql in zip(results.columns, results.types, strict=True):
        out.add_column(column, justify="right" if sql.partition("(")[0] in show._RIGHT else "left", no_wrap=True)
    for row in view.rows(max(3, shutil.get_terminal_size().lines - 7)):
        out.add_row(*(show.cell(v, t) for v, t in zip(row, results.types, strict=True)))
    return Group(Text(view.title(results.query), style="italic", no_wrap=True), out)
