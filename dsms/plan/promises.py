"""How far what a stream promises reaches up a plan: of which values no row comes any more on an
edge (the propagation of punctuations: Tucker, Maier, Sheard and Fegaras 2003; Golab 2006, §2.2.1).

What is known of an edge is `Known`: for each column of the promise the positions at which its value
stands.  Only edges on which no deletion is sent are followed: what leaves does so by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dsms.plan.physical import Pattern, Phys
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import Kind
from dsms.sql.window import Landmark, Now, Time, Unbounded, WindowSpec

Path = tuple[int, ...]
Known = tuple[frozenset[int], ...]  # by column of the promise: where its value stands on an edge
# of the combinations, with values by position in the columns of a stream (its key): which it has
# promised, bool[n]
Covers = Callable[[str, Mapping[int, int]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Reached:
    """A node to which a promise has come up.

    path   of the node;  child: from which of its inputs
    known  where the values stand on that input
    some   of which combinations of values it is true, bool[n]
    lasts  of which inputs of the node rows never leave
    times  positions on that input of what rises with the timestamp of the stream's rows, as
           expressions over its columns"""

    path: Path
    node: lp.Node
    child: int
    known: Known
    some: np.ndarray
    times: Mapping[int, Expr]
    lasts: tuple[bool, ...]

    @property
    def stays(self) -> bool:
        """Whether what is known of that input is final."""
        return self.lasts[self.child]


def reached(
    phys: Phys, leaf: Path, columns: tuple[int, ...], n: int, covers: Covers
) -> Iterator[Reached]:
    """The nodes above a stream's leaf to which promises of these of its columns, n combinations of
    values, come, from below."""
    known: Known = tuple(frozenset((c,)) for c in columns)
    some, chain = np.ones(n, np.bool_), [phys]
    for k in leaf:
        chain.append(chain[-1].children[k])
    times = _timestamp(chain[-1].node)
    for depth in range(len(leaf) - 1, -1, -1):
        below, here, k = chain[depth + 1], chain[depth], leaf[depth]
        if below.strict or not some.any() or not all(known):
            return
        lasts = tuple(child.pattern is Pattern.MON for child in here.children)
        yield Reached(leaf[:depth], here.node, k, known, some, times, lasts)
        if _comes_back(here):
            return
        known, times = _above(here.node, k, known), _times_above(here.node, times)
        for j, other in enumerate(here.children):
            if j != k:  # rows of the other inputs make some of these, too
                some = some & _covered(other, _beside(here.node, j, known), n, covers)


def _comes_back(phys: Phys) -> bool:
    """Whether rows come on its output that no row of its input brings: a value of DISTINCT comes
    again when the row that stood for it leaves its window and a younger one does not."""
    return isinstance(phys.node, lp.Distinct) and phys.children[0].pattern is not Pattern.MON


def _timestamp(node: lp.Node) -> dict[int, Expr]:
    assert isinstance(node, lp.StreamScan)
    at = node.stream.timestamp
    if at is None or node.schema[at].type.kind is not Kind.TIMESTAMP:
        return {}
    return {at: Col(at, node.schema[at].type, node.schema[at].name)}


def _times_above(node: lp.Node, times: Mapping[int, Expr]) -> dict[int, Expr]:
    match node:
        case lp.Window() | lp.Select() | lp.Answer() | lp.Distinct():
            return dict(times)
        case lp.Project(exprs=exprs):
            return {k: found for k, e in enumerate(exprs) if (found := rising(e, times))}
        case _:
            return {}


def rising(expr: Expr, times: Mapping[int, Expr]) -> Expr | None:
    """The expression over a stream's columns that an expression over an edge is, if its value is
    never less for a row with a later timestamp."""
    match expr:
        case Col(index) if index in times:
            return times[index]
        case Call("date_trunc" | "date_bin" as fn, (Lit() as unit, inside), type_, ()):
            found = rising(inside, times)
            return None if found is None else Call(fn, (unit, found), type_)
        case _:
            return None


def _above(node: lp.Node, child: int, known: Known) -> Known:
    """Where the values stand on a node's output, given that they stand there on that input."""
    match node:
        case lp.Window(spec=spec) if _at_once(spec):
            return known
        case lp.Select() | lp.Answer() | lp.Distinct() | lp.Union():
            return known
        case lp.Project(exprs=exprs):
            return tuple(_renamed(exprs, places) for places in known)
        case lp.Join(kind="inner") | lp.MultiJoin():
            first, inputs = firsts(node), lp.children(node)
            sides = [
                known if j == child else across(node, child, j, known) for j in range(len(inputs))
            ]
            moved = [
                [{p + at for p in places} for places in side]
                for at, side in zip(first, sides, strict=True)
            ]
            return tuple(frozenset().union(*parts) for parts in zip(*moved, strict=True))
        case _:
            return tuple(frozenset() for _ in known)


def _at_once(spec: WindowSpec) -> bool:
    """Whether rows enter a window when they come, or never."""
    match spec:
        case Unbounded(until=0) | Landmark(until=0) | Time(until=0, calendar=None) | Now():
            return True
        case _:
            return False


def _renamed(exprs: tuple[Expr, ...], places: frozenset[int]) -> frozenset[int]:
    return frozenset(k for k, e in enumerate(exprs) if isinstance(e, Col) and e.index in places)


def firsts(node: lp.Join | lp.MultiJoin) -> list[int]:
    """Where the columns of each input of a join begin among all."""
    sizes = [len(child.schema) for child in lp.children(node)]
    return [sum(sizes[:j]) for j in range(len(sizes))]


def across(node: lp.Join | lp.MultiJoin, child: int, other: int, known: Known) -> Known:
    """Where the values stand on another input of a join; nowhere, if no equality says so."""

    def met(places: frozenset[int]) -> Iterator[int]:
        for same in node.keys:
            here, there = same[child], same[other]
            if isinstance(here, Col) and isinstance(there, Col) and here.index in places:
                yield there.index

    return tuple(frozenset(met(places)) for places in known)


def _beside(node: lp.Node, other: int, out: Known) -> dict[int, int]:
    """By position on that other input, whose value a row of the output with these values has."""
    shift = firsts(node)[other] if isinstance(node, lp.Join | lp.MultiJoin) else 0
    size = len(lp.children(node)[other].schema)
    return {p - shift: c for c, places in enumerate(out) for p in places if 0 <= p - shift < size}


def _covered(phys: Phys, known: Mapping[int, int], n: int, covers: Covers) -> np.ndarray:
    """Of which of n combinations no row comes on that edge; `known` says by position which column
    of the combination stands there."""
    nothing = np.zeros(n, np.bool_)
    if phys.strict or not known or _comes_back(phys):
        return nothing
    match phys.node:
        case lp.StreamScan() as scan if scan.live:
            return covers(scan.stream.home, known)
        case lp.Window(spec=spec) if _at_once(spec):
            return _covered(phys.children[0], known, n, covers)
        case lp.Select() | lp.Answer() | lp.Distinct():
            return _covered(phys.children[0], known, n, covers)
        case lp.Project(exprs=exprs):
            named = {exprs[p]: c for p, c in known.items()}
            below = {e.index: c for e, c in named.items() if isinstance(e, Col)}
            return _covered(phys.children[0], below, n, covers)
        case lp.Union():
            parts = [_covered(child, known, n, covers) for child in phys.children]
            return np.logical_and.reduce(parts)
        case (lp.Join(kind="inner") | lp.MultiJoin()) as join:
            sides = _by_input(join, known)
            parts = [_covered(c, k, n, covers) for c, k in zip(phys.children, sides, strict=True)]
            return np.logical_and.reduce(parts)
        case _:
            return nothing


def _by_input(join: lp.Join | lp.MultiJoin, known: Mapping[int, int]) -> list[dict[int, int]]:
    """What is known of each input of a join, if that is of its output."""
    ends = [*firsts(join)[1:], len(join.schema)]
    sides = [
        {p - first: c for p, c in known.items() if first <= p < end}
        for first, end in zip(firsts(join), ends, strict=True)
    ]
    for same in join.keys:
        cols = [(side, e.index) for side, e in zip(sides, same, strict=True) if isinstance(e, Col)]
        given = [side[at] for side, at in cols if at in side]
        for side, at in cols if given else ():
            side.setdefault(at, given[0])
    return sides
