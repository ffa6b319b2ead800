"""Which logs are open: no more at once than a share of the descriptors that the process may have.

Before one more is opened, the one that was written longest ago is let go of; its next record opens
it again.  Logs that are on the disk go first.  Any other is brought there before: what the system
has to tell of pages that it could not write it tells whoever has the file open, so a file that was
opened again later may not hear of it.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from dsms.storage.log import LogWriter

SHARE = 4  # the fourth part of the descriptors
LEAST = 4  # logs, however few descriptors there are


def allowed() -> int:
    """How many logs may be open at once, under the process's limit of descriptors as it is now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 62 if soft == resource.RLIM_INFINITY else max(LEAST, soft // SHARE)


@dataclass(slots=True)
class OpenLogs:
    """most  gives the number of logs that may be open"""

    most: Callable[[], int] = allowed
    # the one written last is the last
    _streams: OrderedDict[LogWriter, str] = field(default_factory=OrderedDict)

    def used(self, stream: str, log: LogWriter) -> None:
        """The stream's log is open, and about to be written."""
        self._streams[log] = stream
        self._streams.move_to_end(log)

    def gone(self, log: LogWriter) -> None:
        """No more records come."""
        self._streams.pop(log, None)

    def make_room(self, sync: Callable[[str, LogWriter], None]) -> None:
        """Let go of logs until one more may be open; `sync` brings a stream's log to the disk, or
        notes why it can't (then it stays open: its stream takes no rows, and it goes with the next
        checkpoint)."""
        for log in [log for log in self._streams if not log.is_open]:
            del self._streams[log]
        while len(self._streams) >= self.most():
            log = next((log for log in self._streams if log.is_synced), next(iter(self._streams)))
            stream = self._streams.pop(log)
            if not log.is_synced:
                sync(stream, log)
            if log.is_synced:
                log.rest()
