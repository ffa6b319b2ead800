"""Running rendered plans: DuckDB over Arrow memory as it stands, our own kernels in between.

`OneShot` is a connection; `Prepared` a plan rendered once, to be run at every boundary.  DuckDB is
imported when the first one is made, so that `import dsms` stays light.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.aggregates.sums import overflow
from dsms.api import Cancel
from dsms.errors import InternalError, UsageError
from dsms.oneshot.aggregates import SUM_OVERFLOW
from dsms.oneshot.answer_shape import AnswerShape
from dsms.oneshot.limits import Room, too_much
from dsms.oneshot.render import Renderer
from dsms.oneshot.steps import Env, LeafStep, SqlStep, Step, Take, WindowStep
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import Look, go_on
from dsms.plan.identity import width
from dsms.sql import logical as lp
from dsms.sql.types import INT, Schema
from dsms.state.batch import Batch

CHUNK = 1 << 16  # rows that DuckDB hands over at once
PATIENCE = 0.05  # seconds between two looks at a cancellation while DuckDB works
MOST_TABLES = 1000  # shapes of relations known to one connection

Leaves = Mapping[int, Sequence[Batch]]


class _Slot:
    """A table of DuckDB's whose rows are whatever Arrow table stands here."""

    def __init__(self) -> None:
        self.table: pa.Table | None = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        assert self.table is not None
        return self.table.schema.__arrow_c_schema__()


class OneShot:
    """Runs plans once.  Not thread-safe: the engine's thread calls it.

    memory_limit  bytes that a plan may take while it runs, in DuckDB and in rows between steps
                  (None: DuckDB's own limit); past it the run fails with DS633 and leaves nothing
                  behind
    """

    def __init__(self, memory_limit: int | None = None, threads: int = 1) -> None:
        self.memory_limit, self.threads = memory_limit, threads
        self._connection: Any = None
        self._slots: dict[str, _Slot] = {}

    def prepare(self, plan: lp.Node, *, identity: bool = False) -> Prepared:
        """A plan (an Output, or any node below) to be run again and again.

        `identity`: the answer gets the arrival numbers of each row's parts, in FROM order, as
        further int64 columns (`#0`, `#1`, ...), unless its rows have no parts
        (`dsms.plan.identity.by_value`)."""
        return Prepared(self, plan, identity)

    def run(
        self,
        plan: lp.Node,
        leaves: Leaves,
        at: int,
        errors: ErrorCounter,
        cancel: Cancel | None = None,
        *,
        identity: bool = False,
    ) -> pa.RecordBatch:
        """`Prepared.run`, once."""
        return self.prepare(plan, identity=identity).run(leaves, at, errors, cancel)

    def limit(self, memory_limit: int | None) -> None:
        """From now on another memory limit."""
        if memory_limit != self.memory_limit:
            self.close()
            self.memory_limit = memory_limit

    def close(self) -> None:
        """Let go of the connection and all it knows."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._slots.clear()

    # ------------------------------------------------------------ DuckDB

    def sql(
        self, text: str, tables: Mapping[str, pa.Table], take: Take, cancel: Cancel | None
    ) -> None:
        """Give `take` the rows of a text over tables, as they come.  Raises DS610, DS633, DS706."""
        connection = self._open(tables)
        try:
            with self._telling(cancel), _explained(text, cancel, self.memory_limit):
                for rows in connection.sql(text).to_arrow_reader(CHUNK):
                    take(rows)
        finally:
            for name in tables:
                self._slots[name].table = None

    def _open(self, tables: Mapping[str, pa.Table]) -> Any:
        if self._connection is None or len(self._slots) > MOST_TABLES:
            self.close()
            self._connection = _connect(self.memory_limit, self.threads)
        for name, table in tables.items():
            slot = self._slots.get(name)
            if slot is None:
                slot = self._slots[name] = _Slot()
                slot.table = table
                self._connection.register(name, slot)
            slot.table = table
        return self._connection

    @contextmanager
    def _telling(self, cancel: Cancel | None) -> Iterator[None]:
        """While DuckDB works, another thread checks whether it should stop."""
        if cancel is None:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(
            target=_watch, args=(cancel, done, self._connection), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(cancel: Cancel, done: threading.Event, connection: Any) -> None:
    while not done.wait(PATIENCE):
        try:
            cancel.check()
        except UsageError:
            connection.interrupt()


def _connect(memory_limit: int | None, threads: int) -> Any:
    import duckdb

    config: dict[str, Any] = {
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "enable_external_access": False,
        "preserve_insertion_order": False,
        "max_temp_directory_size": "0B",
    }
    if memory_limit is not None:
        config["memory_limit"] = f"{max(memory_limit, 1 << 20)}B"
    return duckdb.connect(":memory:", config=config)


@contextmanager
def _explained(text: str, cancel: Cancel | None, limit: int | None) -> Iterator[None]:
    """DuckDB's errors in our words."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        if cancel is not None:
            cancel.check()
        raise
    except duckdb.OutOfMemoryException as error:
        raise too_much(limit) from error
    # OSError: what Arrow makes of most errors of a reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise _meant(error, text, cancel, limit) from error


def _meant(error: Exception, text: str, cancel: Cancel | None, limit: int | None) -> Exception:
    """What an error says that came through a stream of rows, where all of them are of one kind."""
    message = str(error)
    if SUM_OVERFLOW in message:
        return overflow(INT)
    if "Out of Memory" in message or "failed to allocate" in message:
        return too_much(limit)
    if cancel is not None:
        cancel.check()
    return InternalError(
        "DS903",
        f"DuckDB refused what we rendered: {message}",
        hint=f"please report this with: {text}",
    )


# ---------------------------------------------------------------- prepared plans


@dataclass(slots=True)
class Prepared:
    """A rendered plan."""

    adhoc: OneShot
    plan: lp.Node
    identity: bool
    asked: AnswerShape = field(init=False)
    steps: list[Step] = field(init=False)
    done: list[list[str]] = field(init=False)  # per step the relations that no later step needs
    root: str = field(init=False)

    def __post_init__(self) -> None:
        self.asked = AnswerShape(self.plan, self.identity)
        renderer = Renderer()
        self.root = renderer.materialized(renderer.rel(self.asked.core, self.asked.ages)).name
        self.steps = renderer.steps
        self.done = over(self.steps, self.root)

    def __reduce__(self) -> tuple[type[Prepared], tuple[OneShot, lp.Node, bool]]:
        return Prepared, (self.adhoc, self.plan, self.identity)  # rendered again where it is read

    @property
    def schema(self) -> Schema:
        """Of the answer's own columns."""
        return self.asked.schema

    def run(
        self,
        leaves: Leaves,
        at: int,
        errors: ErrorCounter,
        cancel: Cancel | None = None,
        look: Look = go_on,
    ) -> pa.RecordBatch:
        """The answer at the instant `at`: in the order of ORDER BY, else rows with parts by arrival
        numbers in FROM order, others by their columns (NULLs last).

        leaves  per leaf number what `dsms.oneshot.reads.reads` says that the plan needs of it:
                batches, oldest first
        errors  rows that fail are NULL and counted there, or (`stop`) raise QueryError DS7xx
        look    called between stretches of work; it may raise
        """
        rows, ids = self.rows(leaves, at, errors, cancel, look)
        if not ids:
            return rows
        fields = [*rows.schema, *(pa.field(f"#{k}", pa.int64()) for k in range(len(ids)))]
        return pa.RecordBatch.from_arrays(
            [*rows.columns, *map(pa.array, ids)], schema=pa.schema(fields)
        )

    def rows(
        self,
        leaves: Leaves,
        at: int,
        errors: ErrorCounter,
        cancel: Cancel | None = None,
        look: Look = go_on,
    ) -> tuple[pa.RecordBatch, tuple[np.ndarray, ...]]:
        """`run`, with the arrival numbers apart (none unless asked for)."""
        room = Room(self.adhoc.memory_limit)
        env = Env(
            at,
            leaves,
            errors,
            lambda text, tables, take: self.adhoc.sql(text, tables, take, cancel),
            look,
            room,
        )
        if cancel is not None:
            env.look = _both(cancel.check, look)
        sizes: dict[str, int] = {}
        for step, done in zip(self.steps, self.done, strict=True):
            env.look()
            before = room.used
            env.rels[step.target] = step.run(env)
            # the first counts its rows as they come
            if not isinstance(step, SqlStep | LeafStep | WindowStep):
                room.take(sum(p.nbytes for p in env.rels[step.target]))
            sizes[step.target] = room.used - before
            for name in done:
                del env.rels[name]
                room.take(-sizes[name])
        return self._answer(env)

    def _answer(self, env: Env) -> tuple[pa.RecordBatch, tuple[np.ndarray, ...]]:
        asked = self.asked
        rows = env.in_one_part(self.root, asked.core.schema, width(asked.core) if asked.ages else 0)
        return asked.answer(rows, env.errors, env.look)


def over(steps: Sequence[Step], root: str) -> list[list[str]]:
    """Per step the relations that no later step needs; the root is needed at the end."""
    last = {name: k for k, step in enumerate(steps) for name in (step.target, *step.takes)}
    last.pop(root)
    return [[name for name, at in last.items() if at == k] for k in range(len(steps))]


def _both(first: Look, second: Look) -> Look:
    def look() -> None:
        first()
        second()

    return look
