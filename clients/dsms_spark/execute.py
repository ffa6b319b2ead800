"""One-time queries that read archives, run on Spark: what they mean is what `dsms.oneshot` makes of
them over live rows.

`run_job` runs what an engine hands over (`dsms.storage.archive.job`), `Runner` gives it to an
engine in this process (`Settings(archive_runner=Runner())`), `query` asks archives without any
engine.  On a cluster, dsms must be installed where Spark's Python workers run.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.oneshot.answer_shape import AnswerShape
from dsms.oneshot.dialect import SPARK
from dsms.oneshot.limits import Room
from dsms.oneshot.pushdown import needed
from dsms.oneshot.relation import column_names
from dsms.oneshot.run import over
from dsms.oneshot.scalars import all_exact
from dsms.oneshot.steps import Env
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import go_on
from dsms.plan.identity import width
from dsms.python_functions import Functions, host
from dsms.storage.archive.job import OVERTAKEN, TRIES, ArchiveJob
from dsms.storage.archive.schema import stored
from dsms_spark.failures import explained
from dsms_spark.mapped import no_sql
from dsms_spark.query import Asked, ask
from dsms_spark.relations import Relations
from dsms_spark.rendering import SparkRenderer
from dsms_spark.session import get_session, prepared, sister_of
from dsms_spark.steps import Runner as Steps
from dsms_spark.tasks import connected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE = 0.05  # seconds between two looks at a cancellation while Spark works
AGAIN = 2.0  # ... and between two requests to stop
AT_ONCE = 4  # queries of one engine


def run_job(spark: SparkSession, job: ArchiveJob, cancel: Cancel | None = None) -> pa.RecordBatch:
    """The answer, with physical types, in its order.

    Raises DS610 (cancelled), DS633 (more rows at once than the limit), DS7xx (a row failed), DS954
    (the archive was updated twice meanwhile), and what Spark says of its own troubles."""
    asked = AnswerShape(job.plan)
    with _sister(spark) as session, _stopping(session, cancel), explained(cancel, job.limit):
        renderer = SparkRenderer(prefix=f"dsms_{uuid.uuid4().hex[:8]}_")
        root = renderer.materialized(renderer.rel(asked.core, asked.ages)).name
        look = go_on if cancel is None else cancel.check
        room = Room(job.limit)
        env = Env(job.at, job.given, ErrorCounter("stop"), no_sql, look, room)  # type: ignore[arg-type]
        held = Relations(session, renderer.shapes, room, look)
        steps = Steps(job, needed(job.plan, job.at), held, env)
        try:
            for step, done in zip(renderer.steps, over(renderer.steps, root), strict=True):
                steps.run(step)
                for name in done:
                    env.rels.pop(name, None)
            first = _first(held, root, asked)
            env.rels[root] = held.rows(root) if first is None else first
            rows = env.in_one_part(root, asked.core.schema, width(asked.core) if asked.ages else 0)
            return asked.answer(rows, env.errors, look)[0]
        finally:
            held.close()


def _first(held: Relations, root: str, asked: AnswerShape) -> list | None:
    """Where ORDER BY has a LIMIT and Spark orders exactly as we do: no more rows than that are
    fetched."""
    if asked.sort is None or asked.sort.limit is None or root in held.local:
        return None
    keys = all_exact([e for e, _, _ in asked.sort.keys], column_names(), SPARK)
    if keys is None:
        return None
    texts = [_sorted(k, d, n) for k, (_, d, n) in zip(keys, asked.sort.keys, strict=True)]
    texts += [_sorted(f"c{k}", False, False) for k in range(len(asked.core.schema))]
    frame: DataFrame = held.narrowed(root)
    view = f"{root}_sorted"
    frame.createOrReplaceTempView(view)
    held.views.add(view)
    count = asked.sort.offset + asked.sort.limit
    ordered = held.spark.sql(f"SELECT * FROM {view} ORDER BY {', '.join(texts)} LIMIT {count}")
    return held.collected(ordered, held.shapes[root])


def _sorted(text: str, descending: bool, nulls_first: bool) -> str:
    return f"{text} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


@contextmanager
def _sister(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with views of its own, where there are such."""
    if connected(spark):
        yield prepared(spark)
        return
    with sister_of(spark) as sister:
        yield sister


@contextmanager
def _stopping(spark: SparkSession, cancel: Cancel | None) -> Iterator[None]:
    """While Spark works, another thread checks whether it should stop."""
    if cancel is None:
        yield
        return
    tag, over_ = f"dsms-{uuid.uuid4().hex}", threading.Event()
    spark.addTag(tag)
    watcher = threading.Thread(
        target=_watch, args=(cancel, over_, lambda: spark.interruptTag(tag)), daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        over_.set()
        watcher.join()
        spark.removeTag(tag)


def _watch(cancel: Cancel, done: threading.Event, stop: Callable[[], Any]) -> None:
    pause = PATIENCE
    while not done.wait(pause):
        try:
            cancel.check()
        except DsmsError:
            stop()
            pause = AGAIN  # jobs that begin later are stopped, too


class Runner:
    """Runs the archive queries of an engine in this process: `Settings(archive_runner=Runner())`.

    spark   the session to use; else one is made when the first query comes
    master  see `dsms_spark.session.get_session`
    """

    def __init__(self, spark: SparkSession | None = None, master: str | None = None) -> None:
        self._spark, self._master = spark, master
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="dsms-archive")

    def run(self, job: ArchiveJob, cancel: Cancel | None = None) -> pa.RecordBatch:
        """The answer of a query.  One that is cancelled ends at once; Spark's tasks stop when they
        notice.

        Raises DS650..DS654 where there is no Spark, and what `run_job` raises."""
        running = self._pool.submit(self._run, job, cancel)
        while True:
            try:
                return running.result(None if cancel is None else PATIENCE)
            except NotYet:
                if cancel is not None and not running.done():
                    cancel.check()

    def _run(self, job: ArchiveJob, cancel: Cancel | None) -> pa.RecordBatch:
        with self._lock:
            if self._spark is None:
                self._spark = get_session(self._master)
        return run_job(self._spark, job, cancel)


def query(
    urls: str | Iterable[str],
    sql: str,
    spark: SparkSession | None = None,
    limit: int | None = None,
    functions: str | Functions | None = None,
) -> pa.Table:
    """What a SELECT over archives answers, without a server: FROM ARCHIVE name [window], of any of
    these archives.

    urls   archives, or a folder below which they lie; what they hold last counts as now
    limit  bytes of rows that may be held at once where they can't stay with Spark
    functions  folder of functions in Python that CREATE FUNCTION before the SELECT names
    TIMESTAMPs are Arrow's (µs, UTC), INTERVALs count microseconds.
    Raises QueryError for a wrong SELECT, DS414 for what only a server could answer, DS95x for
    archives that can't be read, and what `run_job` raises, DS954 where updates overtake it again
    and again."""
    if functions is not None:
        made = Functions(functions) if isinstance(functions, str) else functions
        host.name(made.checked())
    asked = ask(urls, sql, limit)
    session = spark if spark is not None else get_session()
    asked, rows = run_asked(session, asked, lambda: ask(urls, sql, limit))
    schema = asked.bound.schema
    columns = [
        stored(c.cast(f.type.arrow), f.type) for c, f in zip(rows.columns, schema, strict=True)
    ]
    return pa.table(columns, names=[f.name for f in asked.bound.schema])


def run_asked(
    spark: SparkSession, asked: Asked, again: Callable[[], Asked]
) -> tuple[Asked, pa.RecordBatch]:
    """The answer, and what it answers: where updates overtake it, it is asked `again`, TRIES times
    in all."""
    for left in reversed(range(TRIES)):
        try:
            return asked, run_job(spark, asked.job)
        except UsageError as problem:
            if problem.code != OVERTAKEN or not left:
                raise
            asked = again()
    raise AssertionError
