"""A reader that only wants the present: of what it has not taken yet the net change is kept.

What a view's rows that wait sum up to replaces them whenever they have doubled, and once more when
the reader takes them.  So what waits is bounded by the answer (what has left and what has entered
it), not by how much has happened, and each row is summed up O(1) times, amortized.  Of a periodic
query the answer of the newest boundary stands for all before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsms.api import Chunk, NetChange, Push, Subscription, joined
from dsms.errors import UsageError
from dsms.forms import bags
from dsms.sql.logical import Output

FEW_BYTES = 1 << 20  # that wait before they are summed up, however small the answer is


@dataclass
class Conflating(Subscription):
    """A subscription without a limit on what may wait: it is never too slow."""

    _summed_bytes: int = 0  # what was left the last time

    def give(self, item: Push | Chunk) -> None:
        """The engine's side: queue a push or a chunk of result rows."""
        if self.closed:
            return
        quiet = not self.waiting
        self.waiting.append(item)
        self.pending_bytes += _size(item)
        if self.pending_bytes > max(FEW_BYTES, 2 * self._summed_bytes):
            self._sum_up()
        if quiet and self.on_ready is not None:
            self.on_ready()

    def take_chunks(self) -> list[Push | Chunk]:
        """The net change since the last time, after the snapshot, if that waits."""
        self._sum_up()
        self._summed_bytes = 0
        return super().take_chunks()

    def _sum_up(self) -> None:
        self.waiting = net(self.waiting)
        self.pending_bytes = self._summed_bytes = sum(map(_size, self.waiting))


def check_conflation(name: str, output: Output) -> None:
    """Raise DS646 where there is no answer whose changes could be summed up."""
    if output.kind != "rstream" or output.restore:
        raise UsageError(
            "DS646",
            f"query {name} has no answer that one could see the present of: it tells "
            + ("what was between two boundaries, too" if output.restore else "single rows"),
            hint="subscribe without `conflate`, or register it as SELECT Rstream(...)",
        )


def net(waiting: Sequence[Push | Chunk]) -> list[Push | Chunk]:
    """What a subscription was given, in order -> what it comes to."""
    ends = [item for item in waiting if isinstance(item, Push) and item.kind == "end"]
    told = [item for item in waiting if not (isinstance(item, Push) and item.kind == "end")]
    if any(_is_whole(item) for item in told):
        return [*_newest(told), *ends]
    first = [item for item in told if isinstance(item, Push)]
    chunks = [item for item in told if isinstance(item, Chunk)]
    return [*first, *([_net_of(chunks)] if chunks else []), *ends]


def _is_whole(item: Push | Chunk) -> bool:
    """Whether it stands for all that came before: of a periodic query."""
    if isinstance(item, Push):
        return item.kind == "progress"
    return len(item) > 0 and not item.sign[-1]


def _newest(told: Sequence[Push | Chunk]) -> list[Push | Chunk]:
    """The answer of the newest boundary, which may be that there are no rows."""
    last = told[-1]
    if isinstance(last, Push):
        return [last]
    at = last.at[-1]
    parts: list[Chunk] = []
    for item in reversed(told):
        if not isinstance(item, Chunk) or item.at[-1] != at:
            break
        parts.append(item)
    whole = joined(parts[::-1])
    rows = whole.after(whole.seq + int(np.searchsorted(whole.at, at)))
    return [NetChange(_next(last), rows.sign, rows.at, rows.data, upto=int(at))]


def _net_of(chunks: Sequence[Chunk]) -> NetChange:
    last = chunks[-1]
    if isinstance(last, NetChange) and len(chunks) == 1:
        return last
    upto = last.upto if isinstance(last, NetChange) else int(last.at[-1])
    whole = joined(chunks)
    rows, signs = bags.net(whole.data.columns, whole.sign)
    at = np.full(len(rows), upto)
    return NetChange(_next(last), signs, at, whole.data.take(rows), upto=upto)


def _next(chunk: Chunk) -> int:
    """The number of the row that follows a chunk."""
    return chunk.seq if isinstance(chunk, NetChange) else chunk.seq + len(chunk)


def _size(item: Push | Chunk) -> int:
    if isinstance(item, Chunk):
        return item.nbytes
    return 0 if item.data is None else int(item.data.nbytes)
