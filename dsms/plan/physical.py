"""The physical plan: each logical node with its pattern, operator variant, state structure and
cost.

The planner (`dsms.plan`) produces it, EXPLAIN prints it, `dsms.operators.build` turns it into
running operators.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from dsms.sql.logical import Node

Strategy = Literal["upa", "direct", "nt"]


class Pattern(IntEnum):
    """How the rows of an edge go away (Golab 2006, §3.2).  An operator that copes with one copes
    with those below it."""

    MON = 0  # never
    WKS = 1  # in the order they came             -> a FIFO queue is enough
    WK = 2  # at instants known when they came    -> order by expiry, no deletions are sent
    STR = 3  # at instants not known beforehand   -> deletions are sent


@dataclass(frozen=True, slots=True)
class State:
    """How an operator keeps one of its inputs (or its output).

    fifo      queue in arrival order, which is expiry order
    calendar  circular array of `partitions` buckets by expiry (Golab 2006, §3.5.2)
    list      arrival order, searched from end to end for what has expired (the DIRECT strategy)
    hash      by identity; every death is announced (the negative tuple strategy, or mostly
              premature deaths)
    grow      never shrinks (unbounded input)
    """

    kind: Literal["none", "fifo", "calendar", "list", "hash", "grow"] = "none"
    partitions: int = 0
    # expiry may wait (joins); eager operators must see every expiry at its instant
    lazy: bool = False
    # what is kept: "input", "left", "right", "output", "output + youngest", "counts"...
    of: str = "input"
    # `partitions` was asked for; otherwise it is a first guess, and the queue adapts
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """Per unit of time (one second of event time): work in row operations, and what it rests on."""

    total: float = 0.0  # of the whole sub-tree
    own: float = 0.0
    rate: float = 0.0  # rows/s out (positive and negative)
    size: float = 0.0  # live rows of the output
    distinct: float = 0.0  # estimated distinct keys


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """The global order of a MultiJoin's inputs and its cost per unit of time; the next best."""

    order: tuple[int, ...]
    cost: float
    second: tuple[int, ...]
    second_cost: float


@dataclass(frozen=True, slots=True)
class Adaptive:
    """How a MultiJoin without an order goes about: what becomes of partitions when another index is
    chosen, when it is chosen (None: each attribute has a hash index), and the cost per unit of time
    as expected."""

    migration: Literal["nothing", "all", "partial"] | None
    tuning: Literal["continuous", "periodic", "triggered", "hybrid"] | None
    cost: float


@dataclass(frozen=True, slots=True)
class Phys:
    """A node of the physical plan.

    `variant` (per logical node):
      StreamScan  stream;  TableScan  table;  Values  values
      Window      time | time-negative | now | now-negative | rows | partitioned | unbounded |
                  landmark
                  | historical | historical-negative | historical-rows
                  | historical-unbounded | historical-landmark
                  | session | session-gaps (each row has its own) | when
                  (each also -close: rows come when their episode ends)
      Select, Project, Union   as named ("select", "project", "merge")
      Unnest      "unnest"
      Join        hash | nested-loop (each inner, left, right or full as the logical node says)
                  | hash-shedding | nested-loop-shedding (inner: rows of its windows are let go)
                  | hash-each (inner: one of several equalities must hold)
      MultiJoin   pipeline (one equality for all inputs; also pipeline-shedding) | adaptive (any
                  equalities)
      JoinNRR     probe (input not strict) | probe-stored (strict input: results kept per live row)
      AsofJoin    merge (left input not strict) | merge-stored (strict: as probe-stored)
      Match       automaton | automaton-negative
      Over        frames
      SemiJoin    counting (by key) | matching (by left row)
      SetOp       counting
      Distinct    input-storing | delta-star | counting
      GroupBy     array | deque (one MIN or MAX over rows that leave in order)
                  | closing (of episodes as they end)
      TopN        first | skyband | ordered
      Append      append | append-negative | netted | periodic
      Answer      answer (of another query, as it runs)
      Output      view (Rstream) | stream (Istream/Dstream)
    """

    node: Node
    children: tuple[Phys, ...]
    pattern: Pattern
    variant: str
    states: tuple[State, ...] = ()  # one per kept input, left to right; for Output: of the result
    cost: Cost = field(default_factory=Cost)
    strategy: Strategy = "upa"
    width: int = 1  # number of id columns of the output edge
    rules: tuple[str, ...] = ()  # on the root: names of the rewrites that made this plan
    notes: tuple[str, ...] = ()  # what the user should know of this node: state that grows, ...
    order: JoinOrder | Adaptive | None = None  # of a MultiJoin
    wants: tuple[bytes, ...] = ()  # on the root: keys of parts that it might share (`plan.above`)

    @property
    def strict(self) -> bool:
        """Whether the output edge may carry deletions."""
        return self.pattern is Pattern.STR or (
            self.strategy == "nt" and self.pattern is not Pattern.MON
        )

    def state(self, k: int) -> State:
        """How the k-th kept input is kept; a queue that only grows if nothing is said."""
        return self.states[k] if k < len(self.states) else State("grow")
