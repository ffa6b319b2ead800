"""The engine dies while queries are replaced, paused, resumed and renamed: afterwards there is the
old query or the new one, and what was told stays told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import pipeline
from dsms.settings import Settings
from tests.cancelling import told
from tests.effort import effort
from tests.faults.simfiles import Crashed, Plan
from tests.recovery_world import World as Files

S = 1_000_000
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 40 s] GROUP BY k"
STATEMENTS = (
    f"CREATE OR REPLACE QUERY q AS {COUNTS}",
    "PAUSE QUERY q",
    "RESUME QUERY q",
    f"CREATE OR REPLACE QUERY q AS {COUNTS} HAVING COUNT(*) > 5",
    "ALTER QUERY q SET (result_log = 5000)",
    "CREATE OR REPLACE QUERY q AS SELECT k, SUM(v) AS n FROM s [RANGE 9 s] GROUP BY k",
    "ALTER QUERY q RENAME TO r",
    "CREATE OR REPLACE QUERY r AS SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k",
)
ROWS = 3  # a step


@dataclass
class Dying(Files):
    """Rows and statements in turn; `left`: calls of `Engine.store` until it dies."""

    left: int | None = None
    after: bool = False
    stores: int = 0
    known: list[tuple] = field(default_factory=list)  # what readers have been told

    def open(self, *accept_loss: str) -> None:
        settings = Settings(checkpoint_bytes=self.checkpoint_bytes)
        self.engine = Engine(str(self.data), settings, self.files)
        assert self.engine.runtime.durable is not None
        self.engine.runtime.durable.least = 1
        store = self.engine.store

        def counted(*given: object) -> None:
            self.stores += 1
            if self.left is not None and self.stores == self.left and not self.after:
                raise Crashed
            store(*given)  # type: ignore[arg-type]
            if self.left is not None and self.stores == self.left:
                raise Crashed

        self.engine.store = counted  # type: ignore[method-assign, assignment]

    def declare(self) -> None:
        for text in (
            "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h "
            "WITH (durability = sync)",
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k",
        ):
            if not self.there(text):
                self.engine.execute(text)

    def there(self, text: str) -> bool:
        return text.split()[2] in self.engine.runtime.catalog.names() or "r" in self.queries()

    def queries(self) -> list[str]:
        return list(self.engine.runtime.catalog.queries)

    def step(self, i: int) -> None:
        """Rows; done again if they were not acknowledged."""
        at = range(ROWS * i, ROWS * i + ROWS)
        rows = [[n % 3, n, n * S] for n in at]
        self.engine.ingest("s", rows, client="w", seq=i)
        self.read()

    def read(self) -> None:
        (name,) = self.queries()
        self.known += told(self.engine.subscribe(name, len(self.known)))

    def play(self) -> Iterator[None]:
        """All of it; goes on where it is."""
        for number, text in enumerate(STATEMENTS):
            while self.sent < 4 * (number + 1):
                self.step(self.sent)
                self.sent += 1
                yield
            if number < len(STATEMENTS) - 2 and "r" in self.queries():
                continue
            slices = self.engine.slices(text)
            try:
                for n, _ in enumerate(slices):
                    if n % 3 == 2:
                        self.step(self.sent)
                        self.sent += 1
                    yield
            except DsmsError as error:
                assert error.code == "DS401" and "RENAME" in text, error
        self.step(self.sent)

    def check(self) -> None:
        """Behind a restart."""
        runtime = self.engine.runtime
        assert list(runtime.queries) == self.queries() and len(self.queries()) == 1
        assert self.engine.recovered is not None
        for note in self.engine.recovered.notes:
            assert "as it was before it was changed" in note
        (name,) = self.queries()
        lines = told(self.engine.subscribe(name, 0))
        assert lines[: len(self.known)] == self.known
        view: Counter[tuple] = Counter()
        for _, kind, _, *row in lines:
            view[tuple(row)] += 1 if kind == "insert" else -1
        (rows,) = self.engine.execute(f"SELECT * FROM {name}")
        assert +view == Counter(tuple(r.values()) for r in rows.data.to_pylist())  # type: ignore[union-attr]

    def check_end(self) -> None:
        (name,) = self.queries()
        assert name == "r"
        last = ROWS * (self.sent + 1) - 2  # the last complete instant
        expected = Counter(n % 3 for n in range(last - 8, last + 1))
        (rows,) = self.engine.execute("SELECT * FROM r")
        assert {r["k"]: r["n"] for r in rows.data.to_pylist()} == dict(expected)  # type: ignore[union-attr]
        self.known = told(self.engine.subscribe("r", 0))
        self.crash("kill", 0)
        self.open()
        self.check()


def died(folder: Path, files_at: int | None, stores: int | None, after: bool) -> Dying:
    """A run that dies once, and is played to its end after that."""
    world = Dying(folder, "sync", 4000)
    world.files.plan, world.left, world.after = Plan(files_at, None, after), stores, after
    try:
        world.open()
        world.declare()
        for _ in world.play():
            pass
    except Crashed:
        world.crash("kill", files_at or stores or 0)
        world.left = None
        world.open()
        if world.engine.runtime.catalog.queries:
            world.check()
        world.declare()
        for _ in world.play():
            pass
    world.check_end()
    return world


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SLICE", 4)


def test_an_undisturbed_run_comes_to_its_end(tmp_path: Path) -> None:
    world = died(tmp_path, None, None, False)
    assert world.stores > 12


@pytest.mark.parametrize("after", [False, True])
def test_it_dies_at_any_statement(tmp_path: Path, after: bool) -> None:
    whole = died(tmp_path / "whole", None, None, False)
    for n in range(1, whole.stores + 1) if effort() else range(1 + after, whole.stores + 1, 3):
        died(tmp_path / str(n), None, n, after)


def test_it_dies_at_any_write(tmp_path: Path) -> None:
    whole = Dying(tmp_path / "whole", "sync", 4000)
    whole.open()
    whole.declare()
    for _ in whole.play():
        pass
    assert whole.files.count > 100
    for at in range(3, whole.files.count, 5 if effort() else 92):
        died(tmp_path / str(at), at, None, bool(at % 2))
