"""Which frames of which writer have been applied, so that one repeated after a reconnect or a
restart is not again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from dsms.rights.writers import user_of

Key = tuple[str, str]  # client, stream


@dataclass(frozen=True, slots=True)
class FramePart:
    """Rows of a frame: its writer, its number, how many of its rows there are up to and with these,
    and whether that is all of it.

    `position`: where its writer goes on reading once it is told no more than this (a source's text,
    which is behind the last whole frame); None: it says nothing of that"""

    client: str
    seq: int
    done: int
    last: bool
    position: str | None = None


@dataclass(slots=True)
class Writers:
    """The newest frame of each (client, stream); where there are too many, the user who has the
    most loses the entry that is longest unused.

    by_user  the keys of each user's writers, longest unused first"""

    limit: int = 100_000
    newest: OrderedDict[Key, FramePart] = field(default_factory=OrderedDict)
    by_user: dict[str, OrderedDict[Key, None]] = field(default_factory=dict)

    def applied(self, client: str, stream: str, seq: int) -> int | None:
        """How many rows of the frame have been applied; None: all of it, or a later frame has."""
        known = self.newest.get((client, stream))
        if known is None or seq > known.seq:
            return 0
        return None if seq < known.seq or known.last else known.done

    def forget_client(self, client: str) -> None:
        """The writer is no more."""
        for key in [k for k in self.newest if k[0] == client]:
            self._remove(key)

    def forget(self, stream: str) -> None:
        """The stream is dropped: one that is made under its name has had no frames."""
        for key in [k for k in self.newest if k[1] == stream]:
            self._remove(key)

    def note(self, part: FramePart, stream: str) -> None:
        """These rows are applied."""
        key = (part.client, stream)
        self._learn()
        self.newest[key] = part
        self.newest.move_to_end(key)
        own = self.by_user.setdefault(_user(key), OrderedDict())
        own[key] = None
        own.move_to_end(key)
        while len(self.newest) > self.limit:
            crowd = max(self.by_user, key=lambda user: len(self.by_user[user]))
            self._remove(next(iter(self.by_user[crowd])))

    def _learn(self) -> None:
        """A state of earlier versions does not say whose the entries are."""
        if self.newest and not self.by_user:
            for key in self.newest:
                self.by_user.setdefault(_user(key), OrderedDict())[key] = None

    def _remove(self, key: Key) -> None:
        self._learn()
        del self.newest[key]
        own = self.by_user[_user(key)]
        del own[key]
        if not own:
            del self.by_user[_user(key)]


def _user(key: Key) -> str:
    return user_of(key[0])
