"""How far a Spark job has got: tasks done and all that are known, reported while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PERIOD = 0.2  # seconds between two looks
GROUP = "spark.jobGroup.id"


def connected(spark: Any) -> bool:
    """Whether it is a session of Spark Connect, which has no context."""
    return "connect" in type(spark).__module__


@contextmanager
def watched(spark: Any, tell: Callable[..., object], what: str) -> Iterator[None]:
    """`tell(what, tasks done, tasks known)` while the Spark jobs of this thread run.

    Jobs of a group that the caller has named are watched by the caller; without a listener nothing
    is asked."""
    if connected(spark):
        yield
        return
    context = spark.sparkContext
    if context.getLocalProperty(GROUP) is not None:
        yield
        return
    group = f"dsms-{threading.get_ident()}-{id(tell)}"
    context.setJobGroup(group, what, interruptOnCancel=True)
    over = threading.Event()
    thread = threading.Thread(
        target=_look, args=(context.statusTracker(), group, over, tell, what), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        context.setLocalProperty(GROUP, None)


def _look(
    tracker: Any, group: str, over: threading.Event, tell: Callable[..., object], what: str
) -> None:
    reported = (0, 0)
    while not over.wait(PERIOD):
        try:
            now = tasks(tracker, group)
            if now != reported and now[1]:
                tell(what, *now)
        except Exception:  # Spark is stopping, or the listener is gone: progress is optional
            return
        reported = now


def tasks(tracker: Any, group: str) -> tuple[int, int]:
    """Tasks done, and all that are known, of a group's jobs."""
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in [] if info is None else info.stageIds:
            at = tracker.getStageInfo(stage)
            if at is not None:
                done, known = done + at.numCompletedTasks, known + at.numTasks
    return done, known
