"""How far a job is: a bar on a terminal, lines of text elsewhere if asked for; always on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Bar:
    """Called with a sentence, or a sentence and how many of how many steps are done."""

    def __init__(self, what: str, quiet: bool = False) -> None:
        self._what, self._bar, self._task = what, None, None
        self._show = not quiet and sys.stderr.isatty()

    _bar: Any
    _task: Any

    def __enter__(self) -> Bar:
        if self._show:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
            )

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[steps]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=None, steps="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int = 0, known: int = 0) -> None:
        if self._bar is not None:
            steps = f"{done}/{known}" if known else ""
            self._bar.update(
                self._task,
                description=f"{self._what}: {what}",
                completed=done,
                total=known or None,
                steps=steps,
            )
