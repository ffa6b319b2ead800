"""How far the Spark jobs of requests have got: stages done and all that are known, asked for now
and then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

PERIOD = 0.25  # seconds between two looks


class Watch:
    """Looks while there is a listener.  `jobs of a group` are those with that Spark job group."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker
        self._listeners: dict[str, Callable[[int, int], None]] = {}
        self._change = threading.Condition()
        threading.Thread(target=self._run, name="dsms-watch", daemon=True).start()

    def add(self, group: str, tell: Callable[[int, int], None]) -> None:
        """From now on `tell(stages done, stages known)` is called when that changes."""
        with self._change:
            self._listeners[group] = tell
            self._change.notify()

    def remove(self, group: str) -> None:
        """No more."""
        with self._change:
            self._listeners.pop(group, None)

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._listeners:
                    self._change.wait()
                listeners = dict(self._listeners)
            for group, tell in listeners.items():
                try:
                    tell(*stages(self._tracker, group))
                # Spark is stopping, or the listener is gone: progress is optional
                except Exception:
                    self.remove(group)
            with self._change:
                self._change.wait(PERIOD)


def stages(tracker: Any, group: str) -> tuple[int, int]:
    """Stages that are done, and all that are known, of a group's jobs."""
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is None:
            continue
        ids = list(info.stageIds)
        known += len(ids)
        done += len(ids) if info.status == "SUCCEEDED" else sum(_is_done(tracker, i) for i in ids)
    return done, known


def _is_done(tracker: Any, stage: int) -> bool:
    info = tracker.getStageInfo(stage)
    return info is not None and info.numCompletedTasks >= info.numTasks > 0
