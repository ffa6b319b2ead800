"""Runs statements and backslash commands, for the prompt and for scripts alike."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dsms.errors import DsmsError
from dsms.file_texts import is_like_file, like_file
from dsms_client.line import Line
from dsms_client.results import Done, Result
from dsms_client.shell import copying, meta, show
from dsms_client.shell.outside import paged
from dsms_client.shell.statements import Statement, script
from dsms_client.shell.variables import filled
from dsms_client.visible import for_screen, prose

if TYPE_CHECKING:
    from dsms_client.sync import Client


class Runner:
    """One session of the shell: its client, its settings, what it ran last."""

    def __init__(
        self,
        connect: Callable[[Line], Client],
        form: str = "table",
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.form = form
        self.timing = False
        self.interactive = False
        self.watching = False  # \\watch repeats a statement
        self.line = Line(self.complain)
        self.last: str | None = None
        self.problem: DsmsError | None = None  # of the last statement
        self.depth = 0  # of files that include files
        self.target: TextIO | None = None  # where \\o sends what is shown
        self.most: int | None = None  # rows of a table that are shown
        self.variables: dict[str, str] = {}
        self.changed: Callable[[], None] = lambda: None  # declarations may have changed
        self._out = out
        self._err = err
        self.client = connect(self.line)

    @property
    def out(self) -> TextIO:
        """Where lines go."""
        return self.target or self._out or sys.stdout

    def say(self, line: str = "") -> None:
        print(for_screen(line, self.out), file=self.out)

    def complain(self, line: str) -> None:
        print(prose(line), file=self._err or sys.stderr)

    def script(self, text: str) -> bool:
        """Run a text of statements and lines that begin with a backslash; False at the first that
        fails."""
        with self.line.waiting():
            return all(
                self.statement(piece) if isinstance(piece, Statement) else meta.run(self, piece)
                for piece in script(text)
            )

    def statement(self, statement: Statement) -> bool:
        """Run one statement and show its result; True if it went well."""
        self.last, self.problem = statement.text, None
        text = filled(statement.text, self.variables)
        began = time.perf_counter()
        went_well = True
        try:
            if copying.is_copy(text):
                results, went_well = [], self._copy(text)
            else:
                results = self._like_file(text) if is_like_file(text) else self.client.execute(text)
        except DsmsError as problem:
            self.problem = problem
            for line in show.error(problem, text, statement.line, statement.column):
                self.complain(line)
            return False
        except KeyboardInterrupt:
            if self.watching:
                raise
            self.complain("cancelled")
            if self.interactive:
                return False
            raise
        for result in results:
            self.show(result)
        if self.timing:
            self.say(f"time: {1000 * (time.perf_counter() - began):.1f} ms")
        return went_well

    def _copy(self, text: str) -> bool:
        """COPY: True if all rows were taken."""
        from dsms_client.files.report import Reporter
        from dsms_client.files.said import in_sql

        copy = copying.read(text)
        with Reporter(copy.rejects, quiet=False, words=in_sql) as reporter:
            return self.client.work(lambda client: copying.run(client, copy, reporter)).clean

    def _like_file(self, text: str) -> list[Result]:
        """CREATE ... LIKE FILE: of a file that is here its plain form; else the server looks."""
        from dsms_client.files.like import as_typed, declared, told

        like = like_file(text)
        if not Path(like.path).exists():
            return self.client.execute(text)
        found = declared(like)
        with as_typed(like, found):
            return [told(result, found) for result in self.client.execute(found.statement)]

    def show(self, result: Result) -> None:
        """Print one result."""
        if isinstance(result, Done):
            if self.form == "table" or self.interactive:
                self.say(prose(result.message))
            for warning in result.warnings:
                self.complain(f"NOTE: {warning}")
            self.changed()
            return
        if result.columns in (("plan",), ("explain",), ("text",)) and self.form == "table":
            for row in result.rows:  # a drawing, not a table
                self.say(prose(str(row[0])))
            return
        rows, form = result.rows, self.form
        lines = show.render(result.columns, result.types, rows, form, self.most)
        for line in paged(lines, self.out) if self.interactive and not self.watching else lines:
            self.say(line)
        if (
            self.form == "table"
            and (self.interactive or self.watching)
            and result.as_of is not None
        ):
            self.say(f"as of {show.instant(result.as_of)}")
        for line in show.notes(result):
            self.complain(line)
