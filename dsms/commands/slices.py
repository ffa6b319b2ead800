"""Statements at work, in slices: what whoever runs them sees of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, Protocol, TypeVar

from dsms.api import Result
from dsms.running.holds import Hold

T = TypeVar("T")


class Ready(Protocol):
    """Work that may be done in another thread, if it is `ready`."""

    @property
    def ready(self) -> bool: ...

    def run(self) -> None: ...


class Statement(Protocol):
    """A statement at work, in slices.  `step` and `close` belong to the engine's thread.

    result  once it is done
    """

    result: Result | None

    @property
    def ready(self) -> bool:
        """Whether what comes next touches nothing of the engine: `run` does it, in any thread, or
        the next `step`."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether `run` mostly waits until another process has done the work, for seconds or
        minutes."""
        ...

    @property
    def waits(self) -> Hold | None:
        """What it waits for: until that is over a step does nothing."""
        ...

    def step(self) -> bool:
        """The next slice; True: it is done.  Raises what ended it, and is over then."""
        ...

    def run(self) -> None:
        """Do what comes next, if it is `ready`.  Errors come with the next `step`."""
        ...

    def close(self) -> None:
        """It is not wanted any more."""
        ...


class OneSlice:
    """A statement that is done in one slice."""

    ready = elsewhere = False
    waits = None

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work, self.result = work, None

    result: Result | None

    def step(self) -> bool:
        """Do it."""
        self.result = self._work()
        return True

    def run(self) -> None:
        """It is never `ready`."""

    def close(self) -> None:
        """There is nothing that could be left half done."""


class Apart(Generic[T]):
    """Work that touches nothing of the engine: `run` does it in any thread, once."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._found: T | None = None
        self._failure: Exception | None = None

    @property
    def ready(self) -> bool:
        """Whether it is still to be done."""
        return self._work is not None

    def run(self) -> None:
        """Do it; an error is kept for `result`."""
        work, self._work = self._work, None
        if work is None:
            return
        try:
            self._found = work()
        except Exception as error:
            self._failure = error

    def result(self) -> T:
        """What came of it.  Raises what ended it."""
        self.run()
        if self._failure is not None:
            raise self._failure
        return self._found  # type: ignore[return-value]


Free = Generator[Ready | None, Any, T]  # pieces that wait for nobody
Pieces = Generator[Ready | Hold | None, Any, T]


def one_by_one(lines: Iterable[T]) -> Free[list[T]]:
    """All of them, each made in a piece of its own."""
    found: list[T] = []
    for line in lines:
        found.append(line)
        yield None
    return found


class SeveralSlices:
    """A statement that is done a piece after the other.

    Between two pieces others come in.  Where one yields what is `ready`, that may be run in another
    thread before the next piece, which asks for it otherwise.  Where one yields a `Hold` it waits
    for that."""

    elsewhere = False

    def __init__(self, pieces: Pieces[Result]) -> None:
        self._pieces, self._next = pieces, None
        self.result = None

    result: Result | None
    _next: Ready | Hold | None

    @property
    def ready(self) -> bool:
        return self._apart is not None and self._apart.ready

    @property
    def waits(self) -> Hold | None:
        held = isinstance(self._next, Hold) and not self._next.over.done()
        return self._next if held else None  # type: ignore[return-value]

    @property
    def _apart(self) -> Ready | None:
        return None if isinstance(self._next, Hold) else self._next

    def step(self) -> bool:
        """The next piece."""
        try:
            self._next = next(self._pieces)
        except StopIteration as end:
            self.result = end.value
            return True
        return False

    def run(self) -> None:
        """What may be done apart."""
        if self._apart is not None:
            self._apart.run()

    def close(self) -> None:
        """Nothing has been stored or applied, unless it is done."""
        self._pieces.close()
