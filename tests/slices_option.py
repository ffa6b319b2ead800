"""`pytest --slices tests/server`: how long slices held the engine's thread, over all tests.

Servers in this process are measured, those in processes of their own are not.  What a server loads
behind its socket is there at the beginning.  Nothing is asserted: a busy machine is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from dsms import warmup
from dsms.sql import mistakes
from dsms.sql.grammar import parser
from tests.slices import Group, Slices, collected, table

KEY = "dsms_slices"


class SlicesPlugin:
    """Measures in each process that runs tests, and tells the sum in the one that reports."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._measuring: AbstractContextManager[Slices] = collected(places=False)
        self._slices: Slices | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        warmup.load()  # as `dsms serve` does before most statements come
        parser()
        mistakes.ready()
        self._slices = self._measuring.__enter__()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._slices is not None:
            self._slices.place = item.nodeid.rpartition("/")[2]
        return (yield)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        assert self._slices is not None
        self._measuring.__exit__(None, None, None)
        found = {k: (g.wall, g.cpu, g.long) for k, g in self._slices.groups.items()}
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[KEY] = found
        else:
            self._join(found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._join(getattr(node, "workeroutput", {}).get(KEY, {}))

    def _join(
        self, found: dict[str, tuple[list[float], list[float], list[tuple[float, str]]]]
    ) -> None:
        for kind, parts in found.items():
            self.groups.setdefault(kind, Group()).join(Group(*parts))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("slices of the engine's thread")
        terminalreporter.write_line(table(self.groups))
