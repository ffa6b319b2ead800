"""Changes that wait for a reader who only wants the present -> what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dsms.forms import bags
from dsms_client.changes import Changes
from dsms_client.results import Data


def present(waiting: Sequence[Changes]) -> list[Changes]:
    """A snapshot as it came, then the net change since; of a periodic query the newest answer; the
    end of the query."""
    ends = [c for c in waiting if c.kind == "end"]
    told = [c for c in waiting if c.kind != "end"]
    if any(_is_answer(c) for c in told):
        return [*_newest(told), *ends]
    first = [c for c in told if c.kind == "snapshot"]
    rest = [c for c in told if c.kind != "snapshot"]
    return [*first, *([_net(rest)] if len(rest) > 1 else rest), *ends]


def _is_answer(changes: Changes) -> bool:
    return changes.kind == "progress" or (len(changes) > 0 and not changes.sign[-1])


def _newest(told: Sequence[Changes]) -> list[Changes]:
    """The last answer, with all its parts."""
    first = len(told) - 1
    while first and told[first - 1].more:
        first -= 1
    return list(told[first:])


def _net(changes: Sequence[Changes]) -> Changes:
    last = changes[-1]
    rows = pa.concat_tables([c.data.table() for c in changes]).combine_chunks()
    left, sign = bags.net(rows.columns, np.concatenate([c.sign for c in changes]))
    data = Data.of_table(last.columns, last.types, rows.take(left))
    ats = pa.array([last.at], pa.int64()).take(pa.array(np.zeros(len(sign), np.int64)))
    return replace(last, seq=last.next_seq, data=data, sign=sign, ats=ats, conflated=True)
