"""Which sub-groups should run more often, to run together: hybrid scheduling (Golab 2006, §8.4.4).

Cost    Sub-groups executed together scan their synopsis once, as far as the most expensive of them
        needs, and answer the others on the way; each pays for its own post-processing.  The cost of
        a schedule is what it costs per update in the long run, all periods starting together,
        blocks that are due together executed together.
Choice  A merging is a partition of the sub-groups into blocks; a block runs with its shortest
        period.  `cheapest` finds the best by dynamic programming, the most expensive scan first.
        All that the rest of the choice depends on is *which periods are in use* so far, so merged
        subsets are costed once:
          - a sub-group joins the longest period in use that is not longer than its own: its scan is
            then free, since a longer one runs at these times anyhow; a shorter period would cost
            more post-processing and gain nothing;
          - or it opens a period between that one and its own: its own, or that of a sub-group still
            to come, which is then bound to keep it.
        Sets that can't lead to less than the best schedule known are cut by a bound.  Up to `SMALL`
        sub-groups that is all.  Of more, only the most promising sets are kept at each step, the
        fewer the more sub-groups there are: if any had to go, the choice is good but not proven
        best (`exact` is False).  Sixty take hundredths of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dsms.schedulers.multiples import Multiples
from dsms.schedulers.tasks import Block, SubGroup, Task

SMALL = 10  # sub-groups: 2 ** 10 sets of periods at most


@dataclass(frozen=True, slots=True)
class CostModel:
    """Relative costs.

    synopsis  what is scanned: a basic interval synopsis combines all intervals of the window, an
              interval synopsis two to a power of two, a running synopsis subtracts once (§2.3.4)
    effort    of the choice among many sub-groups: sets of periods kept at a step times sub-groups
    adaptive  hybrid scheduling follows the backlog (`backlog`); the thesis chooses for the periods
              asked for, always
    """

    synopsis: Literal["basic", "interval", "running"] = "basic"
    effort: int = 1000
    adaptive: bool = True

    def access(self, task: Task) -> float:
        """Cost of the scan for one task."""
        match self.synopsis:
            case "basic":
                combined = task.length - 1
            case "interval":
                combined = 2 * (task.length.bit_length() - 1)
            case "running":
                combined = 1
        return combined * task.weight

    def sub_groups(self, tasks: Iterable[Task], periods: dict[str, int]) -> list[SubGroup]:
        """Tasks of equal `periods` put together, shortest period first; members in the order of
        `tasks`."""
        by_period: dict[int, list[Task]] = {}
        for task in tasks:
            by_period.setdefault(periods[task.name], []).append(task)
        return [self._sub_group(period, by_period[period]) for period in sorted(by_period)]

    def _sub_group(self, period: int, tasks: list[Task]) -> SubGroup:
        # CS8: one answer for all
        post = {t.name if t.same is None else ("same", t.same): t.post for t in tasks}
        access = max(self.access(t) for t in tasks)
        return SubGroup(period, access, sum(post.values()), tuple(t.name for t in tasks))


def once(groups: Iterable[SubGroup]) -> float:
    """Cost of one joint execution."""
    groups = list(groups)
    return max(g.access for g in groups) + sum(g.post for g in groups)


def rate(blocks: Iterable[Iterable[SubGroup]], multiples: Multiples | None = None) -> float:
    """Cost per update of a schedule in the long run.

    The part of a scan between two costs is paid whenever a block is due that goes so far; so a
    union of multiples is counted for each step of the costs, not a least common multiple of updates
    one by one."""
    merged = [tuple(b) for b in blocks]
    found = [
        (max(g.access for g in b), min(g.period for g in b), sum(g.post for g in b)) for b in merged
    ]
    found.sort(reverse=True)
    multiples = multiples or Multiples(period for _, period, _ in found)
    total, bits = 0.0, 0
    for at, (access, period, post) in enumerate(found):
        bits |= multiples[period]
        below = found[at + 1][0] if at + 1 < len(found) else 0.0
        total += (access - below) * multiples.share(bits) + post / period
    return total


@dataclass(frozen=True, slots=True)
class Choice:
    """The blocks of a schedule, its cost per update, and whether no merging is cheaper for
    certain."""

    blocks: tuple[Block, ...]
    cost: float
    exact: bool


def cheapest(groups: Sequence[SubGroup], effort: int = 1000, behind: int = 0) -> Choice:
    """The merging with the least cost per update.  Periods of the sub-groups must differ.

    behind  updates by which executions are late now: in overload all periods are longer by about as
            much (§8.4.2), and the cost is that of the periods that this leaves.  What differs by
            little then is worth merging.
    """
    if behind:
        back = {g.period + behind: g for g in groups}
        late = cheapest([replace(g, period=p) for p, g in back.items()], effort)
        return Choice(
            tuple(tuple(back[g.period] for g in block) for block in late.blocks),
            late.cost,
            late.exact,
        )
    if len(groups) < 2:
        return Choice(
            tuple((g,) for g in groups), rate([[g] for g in groups]) if groups else 0.0, True
        )
    states = 1 << SMALL if len(groups) <= SMALL else max(4, effort // len(groups))
    return _Search(groups, states).run()


@dataclass(frozen=True, slots=True)
class _State:
    """Costs so far of the sub-groups looked at, and the choices made: (choices before, period of
    the last one)."""

    spent: float
    bits: int
    share: float
    chosen: tuple | None


class _Search:
    """One run of the dynamic programme.  A set of used periods is a tuple, ascending."""

    def __init__(self, groups: Sequence[SubGroup], states: int) -> None:
        self.order = sorted(groups, key=lambda g: (-g.access, g.period))
        self.multiples = Multiples(g.period for g in groups)
        self.states, self.exact = states, self.multiples.exact
        simple = ([[g] for g in groups], [list(groups)])
        self.known = min((self._choice(blocks) for blocks in simple), key=lambda c: c.cost)
        self.post_left = [0.0]  # least post-processing of the last k sub-groups
        for group in reversed(self.order):
            self.post_left.append(self.post_left[-1] + group.post / group.period)

    def _choice(self, blocks: Sequence[Sequence[SubGroup]]) -> Choice:
        merged = tuple(
            sorted(
                (tuple(sorted(b, key=lambda g: g.period)) for b in blocks),
                key=lambda b: b[0].period,
            )
        )
        return Choice(merged, rate(merged, self.multiples), self.exact)

    def run(self) -> Choice:
        layer: dict[tuple[int, ...], _State] = {(): _State(0.0, 0, 0.0, None)}
        for at, group in enumerate(self.order):
            below = self.order[at + 1].access if at + 1 < len(self.order) else 0.0
            layer = self._cut(self._step(layer, at, group, group.access - below), at + 1, below)
        best = min(layer.values(), key=lambda s: s.spent, default=None)
        found = (
            self.known
            if best is None
            else min(self.known, self._choice(self._blocks(best)), key=lambda c: c.cost)
        )
        return Choice(found.blocks, found.cost, self.exact)

    def _step(
        self, layer: dict[tuple[int, ...], _State], at: int, group: SubGroup, drop: float
    ) -> dict[tuple[int, ...], _State]:
        out: dict[tuple[int, ...], _State] = {}
        to_come = [g.period for g in self.order[at:] if g.period <= group.period]
        for used, state in layer.items():
            join = max((p for p in used if p <= group.period), default=0)
            for period in (*((join,) if join else ()), *(p for p in to_come if p > join)):
                self._put(out, used, state, period, group.post / period, drop)
        return out

    def _put(
        self, out: dict, used: tuple[int, ...], state: _State, period: int, post: float, drop: float
    ) -> None:
        if period in used:
            bits, share = state.bits, state.share
        else:
            used = tuple(sorted((*used, period)))
            known = out.get(used)
            bits = known.bits if known else state.bits | self.multiples[period]
            share = known.share if known else self.multiples.share(bits)
        spent = state.spent + post + drop * share
        if used not in out or spent < out[used].spent:
            out[used] = _State(spent, bits, share, (state.chosen, period))

    def _cut(
        self, layer: dict[tuple[int, ...], _State], done: int, below: float
    ) -> dict[tuple[int, ...], _State]:
        """Without what can't win: what is scanned now is scanned as often to the end, and
        post-processing is due."""
        left = self.post_left[len(self.order) - done]
        bound = {used: s.spent + below * s.share + left for used, s in layer.items()}
        limit = self.known.cost * (1 + 1e-12)
        kept = sorted(
            (used for used in layer if bound[used] <= limit), key=lambda used: (bound[used], used)
        )
        if len(kept) > self.states:
            self.exact = False
        return {used: layer[used] for used in kept[: self.states]}

    def _blocks(self, state: _State) -> list[list[SubGroup]]:
        blocks: dict[int, list[SubGroup]] = {}
        chosen = state.chosen
        for group in reversed(self.order):
            assert chosen is not None
            chosen, period = chosen
            blocks.setdefault(period, []).append(group)
        return list(blocks.values())
