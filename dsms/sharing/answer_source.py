"""What a member is answered from: columns of its feed, or of several feeds that cover its predicate
(§8.3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import State
from dsms.sharing.column import AggregateColumn
from dsms.sharing.feed import Feed, SingleFeed
from dsms.sql.expr import AggCall


@dataclass(frozen=True, slots=True)
class SignedFeed:
    """A feed, whose cells are added or (`less`) taken away; `sources`: the column of it for each
    aggregate."""

    feed: Feed
    sources: Mapping[AggCall, AggCall]
    less: bool = False

    def column(self, call: AggCall) -> AggregateColumn:
        return self.feed.columns[self.sources[call]]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSource:
    """Members with the same one are probed together.  `how` as in `covers.Cover`; empty for a feed
    of its own."""

    parts: tuple[SignedFeed, ...]
    how: str = ""
    key: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        found = tuple((id(p.feed), p.less, tuple(p.sources.items())) for p in self.parts)
        object.__setattr__(self, "key", found)

    def __getstate__(self) -> dict[str, Any]:
        """Without its key, in which ids of this process stand."""
        return {"parts": self.parts, "how": self.how}

    def __setstate__(self, state: dict[str, Any]) -> None:
        AnswerSource.__init__(self, state["parts"], state["how"])

    @property
    def single(self) -> bool:
        """Whether one feed answers it."""
        return len(self.parts) == 1

    def column(self, call: AggCall) -> AggregateColumn:
        """The (first) column that answers an aggregate."""
        return self.parts[0].column(call)

    def columns(self) -> Iterator[tuple[Feed, AggregateColumn]]:
        """Every column that it reads, once."""
        for part in self.parts:
            for source in dict.fromkeys(part.sources.values()):
                yield part.feed, part.feed.columns[source]

    def reads(self, feed: SingleFeed) -> bool:
        return any(p.feed is feed for p in self.parts)

    def probe(self, call: AggCall, *asked: np.ndarray) -> State:
        """Cells of the spans, over all parts."""
        first, *rest = self.parts
        if not rest:
            return first.column(call).probe(*asked)
        groups = max(p.column(call).synopsis.groups for p in self.parts)
        for part in self.parts:
            part.column(call).grow(groups)
        column = first.column(call)
        state = column.probe(*asked)
        for part in rest:
            more = part.column(call).probe(*asked)
            state = (column.algebra.subtract if part.less else column.algebra.combine)(state, more)
        return state

    def lower(self, call: AggCall, state: State, cell: np.ndarray | None = None) -> pa.Array:
        """Answers, of all cells or those at `cell`."""
        column = self.column(call)
        return column.lower(call, state if cell is None else column.algebra.take(state, cell))
