"""Which periodic queries run now: earliest deadline first, similar queries together (Golab 2006,
§8.4).

A scheduler is pure bookkeeping over one group of queries that share synopses; it runs nothing and
knows no clock.  Its owner tells it of updates (`updated`), asks what to run (`next`), and says when
it has run (`done`).

Deadlines   d(T) = n after each execution and after registration, one less with each update.  The
            heap holds absolute update counts, so an update touches nothing; an entry that no longer
            holds is dropped when it comes up.  Blocks that run are not in the heap.  A late
            execution is not made up for: d(T) = n again, so overload lengthens periods instead of
            growing.
Blocks      Tasks that always run together, with one deadline: sub-groups of one period, merged or
            not.
              none          sub-groups run alone (Algorithm 9)
              aggressive    all tasks are one block with the shortest period
              conservative  sub-groups run together if their deadlines are equal (Algorithm 10)
              hybrid        sub-groups are merged where that is cheaper (`hybrid.cheapest`), then as
                            above
Sharing     For conservative and hybrid, once the first deadline has passed: `late` runs all late
            blocks together, `late-pending` also those that are due just now (Algorithm 11).
Adaptive    Hybrid follows the backlog, unless its cost model says not to: it merges for the periods
            that overload leaves (`hybrid.cheapest`), and `late-pending` also takes blocks that
            would be late at the next turn, as those are that have fewer updates left than
            executions are late now.
Order       Lowest d(T), then highest priority, then shortest period, then earliest registered.
Early       With `only_due=False` also blocks whose deadline lies ahead are handed out, lowest d(T)
            first, but none twice between two updates: it would only repeat its answer.
Changes     Blocks are formed anew at the next question after tasks came or went, or when the
            backlog has changed much.  A block's deadline is the earliest of its members' own; being
            merged makes nothing late: a query that is moved to a shorter period that has passed
            already is due now, not late.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from dsms.errors import InternalError
from dsms.schedulers.backlog import Backlog
from dsms.schedulers.hybrid import CostModel, cheapest
from dsms.schedulers.multiples import Multiples
from dsms.schedulers.tasks import Block, Lateness, SubGroup, Task, check_technique, shared_periods


@dataclass(slots=True)
class _Record:
    """What is known of a task.  `base`: count of updates when it last ran, or was registered."""

    task: Task
    order: int
    base: int
    ran_at: int | None = None  # count of updates of the last execution
    running: bool = False
    last: int = 0
    total: int = 0
    executions: int = 0

    def ran(self, count: int) -> None:
        self.last = max(0, count - self.base - self.task.period)
        self.total += self.last
        self.executions += 1
        self.base = self.ran_at = count


@dataclass(slots=True)
class _Block:
    members: tuple[str, ...]
    period: int
    priority: int
    order: int
    deadline: int = 0  # absolute

    def entry(self) -> _Entry:
        return self.deadline, -self.priority, self.period, self.order, self.members


_Entry = tuple[int, int, int, int, tuple[str, ...]]


class QueryScheduler:
    """One group of queries that share synopses (computation sharing rules say which may).

    technique  none | aggressive | conservative | hybrid;  sharing  "" | late | late-pending;
               raises UsageError DS420
    """

    def __init__(
        self,
        technique: str = "hybrid",
        sharing: str = "late-pending",
        cost: CostModel | None = None,
    ) -> None:
        self.technique, self.sharing = check_technique(technique, sharing)
        self.cost = cost or CostModel()
        self.count = 0  # updates so far
        self._records: dict[str, _Record] = {}
        self._gone: set[str] = set()  # removed while running
        self._registered = 0
        self._blocks: dict[tuple[str, ...], _Block] = {}  # by members
        self._block_of: dict[str, _Block] = {}
        self._heap: list[_Entry] = []
        self._changed = False
        self._backlog = Backlog()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, name: str) -> bool:
        return name in self._records

    # ------------------------------------------------------------------ tasks come and go

    def add(self, task: Task) -> None:
        """Register a task; its first deadline is its period away.  Names must differ."""
        if task.name in self._records:
            raise InternalError(
                "DS930", f"task {task.name} is scheduled already; please report this"
            )
        self._records[task.name] = _Record(task, self._registered, self.count)
        self._registered += 1
        self._changed = True

    def remove(self, name: str) -> None:
        """Forget a task, also while it waits or runs; `done` may still name it then."""
        if self._record(name).running:
            self._gone.add(name)
        del self._records[name]
        self._changed = True

    def _record(self, name: str) -> _Record:
        if name not in self._records:
            raise InternalError("DS930", f"task {name} is not scheduled; please report this")
        return self._records[name]

    # ------------------------------------------------------------------ the loop

    def updated(self, times: int = 1) -> None:
        """All synopses of the group have taken in `times` more intervals."""
        self.count += times

    def next(self, only_due: bool = True) -> tuple[str, ...]:
        """Names to execute together now, () if there is nothing to do; they run until `done`."""
        self._settle()
        skipped: list[_Block] = []
        first = self._pop(skipped)
        chosen: list[_Block] = []
        if first is not None and (not only_due or first.deadline <= self.count):
            chosen = [first, *self._together(first, skipped)]
        elif first is not None:
            skipped.append(first)
        for block in skipped:
            heapq.heappush(self._heap, block.entry())
        names = [name for block in chosen for name in block.members]
        for name in names:
            self._records[name].running = True
        return tuple(sorted(names, key=self._rank))

    def done(self, names: Iterable[str]) -> None:
        """They have been executed: d(T) = n."""
        blocks: dict[tuple[str, ...], _Block] = {}
        for name in names:
            record = self._records.get(name)
            if name in self._gone and not (record and record.running):
                self._gone.discard(name)  # removed while it ran; another may have its name now
                continue
            record = self._record(name)
            if not record.running:
                raise InternalError("DS930", f"task {name} was not running; please report this")
            record.running = False
            record.ran(self.count)
            if not self._changed:
                block = self._block_of[name]
                blocks[block.members] = block
        for block in blocks.values():
            self._follow(max(0, self.count - block.deadline))
            block.deadline = min(self._records[n].base for n in block.members) + block.period
            if not self._running(block):
                heapq.heappush(self._heap, block.entry())

    def peek(self, only_due: bool = True) -> tuple[int, int] | None:
        """d(T) and priority of what `next` would hand out first, or None."""
        self._settle()
        skipped: list[_Block] = []
        first = self._pop(skipped)
        for block in skipped if first is None else (*skipped, first):
            heapq.heappush(self._heap, block.entry())
        if first is None or (only_due and first.deadline > self.count):
            return None
        return first.deadline - self.count, first.priority

    def _pop(self, skipped: list[_Block], upto: int | None = None) -> _Block | None:
        """Take the first block that may run out of the heap, if its deadline is at most `upto`;
        those on the way that have run since the last update into `skipped`."""
        while self._heap and (upto is None or self._heap[0][0] <= upto):
            entry = heapq.heappop(self._heap)
            block = self._blocks.get(entry[-1])
            if block is None or block.entry() != entry:
                continue  # no longer holds
            if self._may_run(block):
                return block
            skipped.append(block)
        return None

    def _may_run(self, block: _Block) -> bool:
        return any(self._records[name].ran_at != self.count for name in block.members)

    def _running(self, block: _Block) -> bool:
        return any(self._records[name].running for name in block.members)

    def _together(self, first: _Block, skipped: list[_Block]) -> list[_Block]:
        """The other blocks that run with `first`."""
        if self.technique in ("none", "aggressive"):
            return []
        upto = first.deadline
        if upto < self.count and self.sharing:
            upto = (
                self.count + int(self._backlog.average)
                if self.sharing == "late-pending"
                else self.count - 1
            )
        found = []
        while (block := self._pop(skipped, upto)) is not None:
            found.append(block)
        return found

    def _follow(self, late: int) -> None:
        """A scheduler that is not adaptive keeps no backlog."""
        if self.technique == "hybrid" and self.cost.adaptive and self._backlog.ran(late):
            self._changed = True

    # ------------------------------------------------------------------ blocks

    def _settle(self) -> None:
        """Form the blocks anew if they must be."""
        if not self._changed:
            return
        self._changed = False
        blocks = {b.members: b for b in map(self._form, self._plan())}
        self._blocks = blocks
        self._block_of = {name: block for block in blocks.values() for name in block.members}
        self._heap = [block.entry() for block in blocks.values() if not self._running(block)]
        heapq.heapify(self._heap)

    def _plan(self) -> tuple[Block, ...]:
        tasks = sorted((r.task for r in self._records.values()), key=lambda t: self._rank(t.name))
        sharing = self.technique in ("conservative", "hybrid")
        periods = shared_periods(tasks) if sharing else {t.name: t.period for t in tasks}
        groups = self.cost.sub_groups(tasks, periods)
        match self.technique:
            case "aggressive":
                return (tuple(groups),) if groups else ()
            case "hybrid":
                return cheapest(groups, self.cost.effort, self._backlog.level).blocks
            case _:
                return tuple((g,) for g in groups)

    def _form(self, groups: tuple[SubGroup, ...]) -> _Block:
        members = tuple(sorted((name for g in groups for name in g.members), key=self._rank))
        period = groups[0].period
        records = [self._records[name] for name in members]
        priority = max(r.task.priority for r in records)
        own = min(max(r.base + period, min(r.base + r.task.period, self.count)) for r in records)
        return _Block(members, period, priority, min(r.order for r in records), own)

    def _rank(self, name: str) -> tuple[int, int]:
        record = self._records[name]
        return -record.task.priority, record.order

    # ------------------------------------------------------------------ what is to be seen

    def lateness(self, name: str) -> Lateness:
        """How a task fares."""
        self._settle()
        record, block = self._record(name), self._block_of[name]
        average = record.total / record.executions if record.executions else 0.0
        return Lateness(
            record.last, average, record.executions, block.deadline - self.count, block.period
        )

    def blocks(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Period and names of the tasks that always run together, shortest period first."""
        self._settle()
        found = sorted(self._blocks.values(), key=lambda b: (b.period, b.order))
        return tuple((b.period, b.members) for b in found)

    def together(self) -> float:
        """Queries per execution in the long run, without overload: from b / log2 b on, a basic
        interval synopsis of b intervals is faster to query than an interval synopsis (§8.3.1)."""
        blocks = self.blocks()
        if not blocks:
            return 0.0
        runs = sum(len(members) / period for period, members in blocks)
        if self.technique == "none":
            return runs / sum(1 / period for period, _ in blocks)
        return runs / Multiples(period for period, _ in blocks).union(
            period for period, _ in blocks
        )
