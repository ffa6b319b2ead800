"""What is to be done where a call takes too long.

One thread watches call after call, and ends when it finds none: a thread for each call would take
longer to begin than most calls take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Watch:
    """`late` is called if something takes longer than it may, from another thread.

    until  when what is under way has to be over (None: nothing is)
    wakes  when the thread looks again (None: there is no thread)"""

    late: Callable[[], None]
    until: float | None = None
    wakes: float | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def begin(self, seconds: float) -> None:
        """Something begins that may take so long."""
        with self.changed:
            self.until = until = time.monotonic() + seconds
            if self.wakes is None:
                self.wakes = until
                threading.Thread(target=self._look, daemon=True).start()
            elif until < self.wakes:
                self.changed.notify()

    def end(self) -> None:
        """It is over."""
        with self.changed:
            self.until = None

    def close(self) -> None:
        """No more is to come for now."""
        with self.changed:
            self.until = None
            self.changed.notify()

    def _look(self) -> None:
        with self.changed:
            try:
                while self.until is not None:
                    self.wakes = self.until
                    left = self.wakes - time.monotonic()
                    if left > 0:
                        self.changed.wait(left)
                    else:
                        self.until = None
                        self.late()
            finally:
                self.wakes = None
