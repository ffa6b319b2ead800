"""Histories of window updates and sub-window reads: recorded, printed, parsed and judged.  Knows no
scheduler.

    rQ1[0] w5[0] c5 rQ1[1] cQ1         Q1 reads, commits (or aborts: aQ1); T_5 updates slot 0 (Golab
                                       2006, §7.3)
    rQ1[b:0=5] wb:6[b:1] cb:6          ring b; a read that names which update's sub-window it got
                                       (several versions)

A read that names none gets what was written there last; before the first write, sub-windows are
those of the window that the first write moves.  A query over n sub-windows of a longer ring is
judged like one over a ring of n: update j takes j - n away from it, whatever slot that is in.
Graphs decide for queries that read nothing twice (`reads_are`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

OP = re.compile(r"([rwca])(Q\d+(?:\.\d+)?|(?:(\w+):)?(\d+))(?:\[(?:(\w+):)?(\d+)(?:=(-?\d+))?\])?")


@dataclass(frozen=True, slots=True)
class Op:
    """kind r, w, c or a; `number` is the update whose sub-window is read or written."""

    kind: str
    transaction: str
    ring: str = ""
    slot: int | None = None
    number: int | None = None

    def __str__(self) -> str:
        if self.slot is None:
            return self.kind + self.transaction
        at = f"{self.ring}:{self.slot}" if self.ring else str(self.slot)
        return f"{self.kind}{self.transaction}[{at}{f'={self.number}' if self.kind == 'r' else ''}]"


@dataclass(slots=True)
class History:
    """Operations in order, over rings of those sizes whose youngest sub-windows were `newest` in
    the beginning."""

    sizes: dict[str, int]
    newest: dict[str, int]
    ops: list[Op] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(str(op) for op in self.ops)

    def read(self, transaction: str, ring: str, number: int) -> None:
        """It reads that sub-window."""
        self.ops.append(Op("r", transaction, ring, number % self.sizes[ring], number))

    def write(self, ring: str, number: int) -> None:
        """A window update, committed at once."""
        name = f"{ring}:{number}" if ring else str(number)
        self.ops += [Op("w", name, ring, number % self.sizes[ring], number), Op("c", name)]

    def commit(self, transaction: str) -> None:
        """It commits."""
        self.ops.append(Op("c", transaction))

    def abort(self, transaction: str) -> None:
        """It is aborted."""
        self.ops.append(Op("a", transaction))

    def ends(self, kind: str = "c") -> dict[str, int]:
        """Which transactions commit (or abort), and where."""
        return {op.transaction: at for at, op in enumerate(self.ops) if op.kind == kind}

    def queries(self) -> list[str]:
        """Read transactions that commit."""
        return [t for t in self.ends() if t.startswith("Q")]

    def reads_of(self, transaction: str) -> dict[str, list[int]]:
        """Ring -> numbers it has read."""
        out: dict[str, list[int]] = {}
        for op in self.ops:
            if op.kind == "r" and op.transaction == transaction and op.number is not None:
                out.setdefault(op.ring, []).append(op.number)
        return out

    def writes(self, ring: str) -> list[tuple[int, int | None]]:
        """(number, position) of updates of the ring; None: the window was made of them before the
        history began."""
        first = self.newest[ring] - self.sizes[ring] + 1
        before: list[tuple[int, int | None]] = [
            (n, None) for n in range(first, self.newest[ring] + 1)
        ]
        done = [
            (op.number, at) for at, op in enumerate(self.ops) if op.kind == "w" and op.ring == ring
        ]
        return before + [(n, at) for n, at in done if n is not None]

    def newest_at(self, ring: str, position: int) -> int:
        """The youngest sub-window of the ring just before that operation."""
        return max(n for n, at in self.writes(ring) if at is None or at < position)


def parse(
    text: str, sizes: Mapping[str, int] | int, newest: Mapping[str, int] | None = None
) -> History:
    """A history from its text."""
    rings = {"": sizes} if isinstance(sizes, int) else dict(sizes)
    found = [OP.fullmatch(word) for word in text.split()]
    if None in found:
        raise ValueError(f"not an operation: {text.split()[found.index(None)]}")
    groups = [m.groups() for m in found if m is not None]
    first = {
        r: next((int(g[3]) for g in groups if g[0] == "w" and (g[2] or "") == r), n) - 1
        for r, n in rings.items()
    }
    history = History(rings, dict(newest or first))
    at = {
        (r, n % s): n
        for r, s in rings.items()
        for n in range(history.newest[r] - s + 1, history.newest[r] + 1)
    }
    for kind, name, _, number, ring, slot, version in groups:
        if slot is None:
            history.ops.append(Op(kind, name))
            continue
        item = (ring or "", int(slot))
        if kind == "w":
            at[item] = int(number)
        history.ops.append(Op(kind, name, *item, int(version) if version else at[item]))
    return history


def graph(history: History) -> set[tuple[str, str]]:
    """The serialization graph between committed queries and window updates: edges (before,
    after)."""
    edges = set()
    for query in history.queries():
        for ring, numbers in history.reads_of(query).items():
            for j, at in history.writes(ring):
                name = f"{ring}:{j}" if ring else str(j)
                if at is None:
                    name += "*"  # made the window before the history began
                same = [n for n in numbers if (j - n) % len(numbers) == 0]
                edges |= {(name, query) if j <= n else (query, name) for n in same}
    return edges


def window_serializable(history: History) -> bool:
    """Theorem 7.1: updates serialized before a query have smaller subscripts than those after it;
    ring by ring."""
    edges = graph(history)
    for query in history.queries():
        for ring in history.reads_of(query):
            before = [_subscript(t) for t, q in edges if q == query and _ring(t) == ring]
            after = [_subscript(t) for q, t in edges if q == query and _ring(t) == ring]
            if before and after and max(before) >= min(after):
                return False
    return True


def latest_window_serializable(history: History) -> bool:
    """Theorem 7.2: and updates that came before a query's commit are serialized before the
    query."""
    ends, edges = history.ends(), graph(history)
    done = {op.transaction: at for at, op in enumerate(history.ops) if op.kind == "w"}
    late = any(q in ends and done.get(t, ends[q]) < ends[q] for q, t in edges)
    return window_serializable(history) and not late


def reads_true_states(history: History) -> bool:
    """Definition 7.1: a query reads what the windows were at one instant, not later than its commit
    (it may lie before the history)."""
    return all(
        _reads_earlier_state(history, q) or any(_reads_state(history, q, p) for p in range(end + 1))
        for q, end in _ends_of_queries(history)
    )


def reads_latest_states(history: History) -> bool:
    """Definition 7.2: a query reads what the windows are as it commits."""
    return all(_reads_state(history, q, end) for q, end in _ends_of_queries(history))


def commit_order_preserving(history: History) -> bool:
    """Operations in conflict are ordered as the commits of their transactions (Golab 2006,
    §7.6)."""
    ends = history.ends()
    return all(ends[a] < ends[b] for a, b in graph(history) if a in ends and b in ends)


def reads_are(history: History, wanted: Mapping[str, Mapping[str, int]]) -> bool:
    """Committed queries have read as many sub-windows of each ring as asked, none of them twice."""
    for query in history.queries():
        got = history.reads_of(query)
        if {r: len(n) for r, n in got.items()} != dict(wanted[query.split(".")[0]]):
            return False
        if any(len(set(n)) < len(n) for n in got.values()):
            return False
    return True


def _reads_state(history: History, query: str, position: int) -> bool:
    newest = {ring: history.newest_at(ring, position) for ring in history.sizes}
    reads = history.reads_of(query).items()
    return all(sorted(n) == list(range(newest[r] - len(n) + 1, newest[r] + 1)) for r, n in reads)


def _reads_earlier_state(history: History, query: str) -> bool:
    reads = history.reads_of(query).items()
    return all(
        max(n) <= history.newest[r] and sorted(n) == list(range(min(n), min(n) + len(n)))
        for r, n in reads
    )


def _ends_of_queries(history: History) -> Iterable[tuple[str, int]]:
    ends = history.ends()
    return [(q, ends[q]) for q in history.queries()]


def _subscript(transaction: str) -> int:
    return int(transaction.rstrip("*").rpartition(":")[2])


def _ring(transaction: str) -> str:
    return transaction.rpartition(":")[0]
