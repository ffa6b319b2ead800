"""The live view of a persistent query: on a terminal a table that changes, else a line per row.

Of a query that has an answer (Rstream) the table is that as it is now, kept up from net changes; of
a periodic one it is the answer of the last boundary (empty, if there was nothing to tell), of any
other the newest rows.  Keys sort and filter it (`look`).  Ctrl-C leaves the view, not the shell;
lines end with their reader (`| head`), also where the query has nothing more to say.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from dsms.errors import DsmsError
from dsms.tabular.names import unique
from dsms_client.results import Push
from dsms_client.shell import look, show
from dsms_client.shell.look import Look
from dsms_client.visible import for_screen, prose, visible

if TYPE_CHECKING:
    from dsms_client.changes import Changes
    from dsms_client.sync import ChangesReader, Client, Subscription
    from dsms_client.view import View as Answer

MARKS = {"snapshot": "=", "insert": "+", "delete": "-", "result": ">", "progress": "."}
REFRESH = 0.1  # seconds between two drawings
SHOWN = 1000  # rows kept for the table
GOODBYE = 1.0  # seconds that a server may take to say it has stopped sending
LOOK = 0.5  # seconds between two looks whether anybody reads the lines


class Screen(Protocol):
    """Where the view is shown (`runner.Runner`)."""

    form: str

    @property
    def client(self) -> Client: ...

    @property
    def out(self) -> TextIO:
        """Where lines go."""
        ...

    def say(self, line: str = "") -> None: ...


def watch(runner: Screen, query: str, start: int | None) -> None:
    """Show the results of `query` until it ends or Ctrl-C.  Raises DsmsError if the subscription
    does."""
    drawn = sys.stdout.isatty() and runner.form == "table"
    present = _present(runner, query) if drawn and start is None else None
    if present is not None:
        with _shown(runner, present):
            _draw(runner, present, Present(present.view()))
        return
    results = runner.client.subscribe(query, start)
    with _shown(runner, results):
        if drawn:
            _draw(runner, results, View())
        else:
            _print(runner, results)


@contextlib.contextmanager
def _shown(runner: Screen, results: Subscription | ChangesReader) -> Iterator[None]:
    """Until the query ends or Ctrl-C; then the subscription is given up."""
    try:
        yield
    except KeyboardInterrupt:
        runner.say()
    finally:
        with contextlib.suppress(TimeoutError, DsmsError):
            results.close(GOODBYE)


def _present(runner: Screen, query: str) -> ChangesReader | None:
    """The net changes of a query that has an answer: who looks at it wants no more."""
    try:
        return runner.client.changes(query, conflate=True)
    except DsmsError as problem:
        if problem.code not in ("DS646", "DS603"):  # no answer; a server that knows no net changes
            raise
        return None


def _print(runner: Screen, results: Subscription) -> None:
    out = runner.out
    if runner.form == "csv":
        head = show.csv_line(unique(("$kind", "$at", *results.columns)))
        print(for_screen(head, out), file=out, flush=True)
    while (push := _next(results, out)) is not None:
        for line in push_lines(push, results.types, runner.form):
            print(for_screen(line, out), file=out, flush=True)


def _next(results: Subscription, out: TextIO) -> Push | None:
    """The next push.  Raises BrokenPipeError where the other end is closed."""
    while True:
        try:
            return results.next(timeout=LOOK)
        except TimeoutError:
            if not is_read(out):
                raise BrokenPipeError from None


def is_read(out: TextIO) -> bool:
    """False where `out` is a pipe, or a socket, whose other end is closed: a write would show it,
    but there may be none."""
    try:
        looking = select.poll()
        looking.register(out.fileno(), 0)  # hangups and errors are reported without being asked for
        return not looking.poll(0)
    except (AttributeError, OSError, ValueError):  # a system without poll; not a file; a closed one
        return True


def push_lines(push: Push, types: tuple[str, ...], form: str) -> list[str]:
    """A push as text, a line per row: its mark, its instant, its values."""
    if push.kind == "end":
        return [prose(f"the query has ended{': ' + push.message if push.message else ''}")]
    if push.kind == "progress":
        return [f". {show.instant(push.at)}  nothing"] if form == "table" else []
    if form == "json":
        names, kinds = ("$kind", "$at", *push.columns), ("STRING", "TIMESTAMP", *types)
        return list(show.as_json(names, kinds, _marked(push, push.kind)))
    rows = _marked(push, MARKS.get(push.kind, "?"))
    as_text = show.cell if form == "csv" else show.shown
    texts = [
        [as_text(v, t) for v, t in zip(row, ("STRING", "TIMESTAMP", *types), strict=True)]
        for row in rows
    ]
    if form == "csv":
        return [show.csv_line(text) for text in texts]
    return [f"{mark} {at}  {' | '.join(values)}" for mark, at, *values in texts]


def _marked(push: Push, mark: str) -> list[tuple[Any, ...]]:
    return [(mark, at, *row) for at, row in zip(push.instants, push.rows, strict=True)]


class View:
    """What the table shows: the content of a view, the last periodic answer, or the newest rows.

    An answer that is too long for one push comes in parts."""

    def __init__(self) -> None:
        self.is_view = False
        self.is_periodic = False
        self.at: int | None = None
        self.total = 0
        self.pushes = 0
        self._more = False  # of the last answer is still to come
        self._content: Counter[tuple[Any, ...]] = Counter()
        self._newest: deque[tuple[Any, ...]] = deque(maxlen=SHOWN)
        self._answer: list[tuple[Any, ...]] = []

    def add(self, push: Push) -> None:
        """Take a push in."""
        goes_on, self._more = self._more, push.more
        self.at = push.at if push.at is not None else self.at
        self.is_view = self.is_view or push.kind in ("snapshot", "delete")
        self.is_periodic = self.is_periodic or push.kind in ("result", "progress")
        self.total += len(push)
        self.pushes += 1
        match push.kind:
            case "snapshot" | "insert":
                self._content.update(push.rows)
                self._newest.extend(push.rows)
            case "delete":
                self._content.subtract(push.rows)
                self._content += Counter()  # forget what is gone
            case "result":
                self._answer = [*self._answer, *push.rows] if goes_on else list(push.rows)
            case "progress":
                self._answer = []
        if not self.is_view:
            self._content.clear()

    def __len__(self) -> int:
        """Rows that could be shown."""
        if self.is_periodic:
            return len(self._answer)
        return self._content.total() if self.is_view else len(self._newest)

    def rows(self, count: int) -> list[tuple[Any, ...]]:
        """At most `count` rows to show."""
        if self.is_periodic:
            return self._answer[:count]
        return (
            list(self._content.elements())[:count] if self.is_view else list(self._newest)[-count:]
        )

    def title(self, query: str) -> str:
        if self.is_periodic:
            count = f"{len(self._answer)} rows at this boundary, {self.total} result rows so far"
        else:
            count = (
                f"{self._content.total()} rows"
                if self.is_view
                else f"{self.total} result rows so far"
            )
        return f"{query} at {show.instant(self.at)}: {count}   (Ctrl-C leaves)"


class Present:
    """What the table shows of a query that has an answer: that as it is now."""

    def __init__(self, view: Answer) -> None:
        self._view = view
        self.pushes = 0

    def add(self, changes: Changes) -> None:
        """The reader has put it into the view."""
        self.pushes += 1

    def __len__(self) -> int:
        return len(self._view)

    def rows(self, count: int) -> list[tuple[Any, ...]]:
        """At most `count` rows to show."""
        return self._view.head(count)

    def title(self, query: str) -> str:
        at = show.instant(self._view.at)
        return f"{query} at {at}: {len(self._view)} rows   (Ctrl-C leaves)"


def _draw(runner: Screen, results: Subscription | ChangesReader, view: View | Present) -> None:
    from rich.live import Live

    seen, at = -1, Look(results.types)
    first = _picture(view, results, at)
    with look.typed() as typed, Live(first, auto_refresh=False, vertical_overflow="crop") as screen:
        over = False
        while not over and not at.left:
            over = _take(view, results)
            keys = typed()
            at.keys(keys)
            if view.pushes != seen or keys or over:
                screen.update(_picture(view, results, at, view.pushes != seen), refresh=True)
                seen = view.pushes
    if over:
        runner.say("the query has ended")


def _take(view: Any, results: Subscription | ChangesReader) -> bool:
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


def _picture(
    view: View | Present, results: Subscription | ChangesReader, at: Look, is_new: bool = False
) -> Any:
    """The table with its title and how many rows it leaves out; `is_new`: a push has come."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    most = max(3, shutil.get_terminal_size().lines - (8 if at.courses is None else 10))
    looked = view.rows(most if at.is_plain else look.MOST)
    chosen = at.chosen(looked)
    if is_new:
        at.note(chosen)
    out = Table(show_footer=at.courses is not None)
    cells = show.aligned(results.types, chosen[:most])
    for place, (column, sql) in enumerate(zip(results.columns, results.types, strict=True)):
        head, course = f"{visible(column)}{at.mark(place)}", at.course(place)
        out.add_column(Text(head), Text(course), no_wrap=True)
        if show.is_number(sql):
            cells[place] = [text.rjust(max(len(head), len(course))) for text in cells[place]]
    for row in zip(*cells, strict=True):
        out.add_row(*map(Text, row))
    total = len(view)
    count = total if at.is_plain else len(chosen)
    below = at.status(total, len(looked), count, min(most, len(chosen)))
    title = Text(visible(view.title(results.query)), style="italic", no_wrap=True)
    return Group(title, out, Text(visible(below), style="dim", no_wrap=True))
