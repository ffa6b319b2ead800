"""Which frames of which writer have been applied, so that one repeated after a reconnect or a
restart is not again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FramePart:
    """Rows of a frame: its writer, its number, how many of its rows there are up to and with these,
    and whether that is all of it."""

    client: str
    seq: int
    done: int
    last: bool


@dataclass(slots=True)
class Writers:
    """The newest frame of each (client, stream); the entries longest unused go first when there are
    too many."""

    limit: int = 100_000
    newest: OrderedDict[tuple[str, str], FramePart] = field(default_factory=OrderedDict)

    def applied(self, client: str, stream: str, seq: int) -> int | None:
        """How many rows of the frame have been applied; None: all of it, or a later frame has."""
        known = self.newest.get((client, stream))
        if known is None or seq > known.seq:
            return 0
        return None if seq < known.seq or known.last else known.done

    def forget(self, stream: str) -> None:
        """The stream is dropped: one that is made under its name has had no frames."""
        for key in [k for k in self.newest if k[1] == stream]:
            del self.newest[key]

    def note(self, part: FramePart, stream: str) -> None:
        """These rows are applied."""
        key = (part.client, stream)
        self.newest[key] = part
        self.newest.move_to_end(key)
        while len(self.newest) > self.limit:
            self.newest.popitem(last=False)
