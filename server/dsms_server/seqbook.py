"""Which frames of which writer have been applied, so that one repeated after a reconnect is not applied again.

The engine does the same check itself.  The server needs its own because it applies a big frame in slices, and only the
last of them may carry the frame's number.
"""

from __future__ import annotations

from collections import OrderedDict


class SeqBook:
    """The newest applied `seq` by (client, stream); the entries longest unused go first when there are too many."""

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._newest: OrderedDict[tuple[str, str], int] = OrderedDict()

    def knows(self, client: str, stream: str) -> bool:
        return (client, stream) in self._newest

    def applied(self, client: str, stream: str, seq: int) -> bool:
        """True if this frame, or a later one, was applied."""
        newest = self._newest.get((client, stream))
        return newest is not None and seq <= newest

    def note(self, client: str, stream: str, seq: int) -> None:
        """Remember that this frame was applied."""
        key = (client, stream)
        self._newest[key] = max(seq, self._newest.get(key, seq))
        self._newest.move_to_end(key)
        while len(self._newest) > self._limit:
            self._newest.popitem(last=False)
