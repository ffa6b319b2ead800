"""COUNT(*), COUNT(x), BOOL_AND, BOOL_OR: counters by group.  O(1) an event, one or two words a group."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.aggregates.base import Answers, Arg, ByGroup, Feed, grown


@njit(cache=True, nogil=True)
def _subtract_missing(code, sign, slot, emit, valid, missing, out):
    for i in range(len(code)):
        g = code[i]
        if len(valid) and not valid[slot[i]]:
            missing[g] += sign[i]
        if emit[i] >= 0:
            out[emit[i]] -= missing[g]


@njit(cache=True, nogil=True)
def _tally(code, sign, slot, emit, words, valid, tally, which, out, out_valid):
    """tally[g] = (false ones, true ones); the answer is whether there is none of the first (which=0) or any of the
    second (which=1)."""
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            tally[g, words[s]] += sign[i]
        t = emit[i]
        if t >= 0:
            out_valid[t] = tally[g, 0] + tally[g, 1] > 0
            out[t] = tally[g, 1] > 0 if which else tally[g, 0] == 0


@dataclass(slots=True)
class Count(ByGroup):
    """The group's rows less those whose argument is NULL or filtered out."""

    missing: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        out.valid[:] = True
        out.words[:] = feed.live
        if args and (len(args[0].valid) or len(self.missing)):
            self.missing = grown(self.missing, feed.groups)
            _subtract_missing(feed.code, feed.sign, feed.slot, feed.emit, args[0].valid, self.missing, out.words)

    @property
    def nbytes(self) -> int:
        return int(self.missing.nbytes)


@dataclass(slots=True)
class AllOrAny(ByGroup):
    """BOOL_AND (which=0), BOOL_OR (which=1)."""

    which: int
    tally: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        self.tally = grown(self.tally, feed.groups)
        (arg,) = args
        _tally(feed.code, feed.sign, feed.slot, feed.emit, arg.words, arg.valid, self.tally, self.which,
               out.words, out.valid)  # fmt: skip

    @property
    def nbytes(self) -> int:
        return int(self.tally.nbytes)
