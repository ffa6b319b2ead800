"""Parts of plans: which are the same, and what the state of one rests on.

Two parts are the same if they have the same operators over the same streams and tables, whatever
their columns and relations are called: then they make the same rows of the same input, and one
operator may work for both (Golab 2006, §2.4.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from hashlib import blake2b
from typing import Any

from dsms.plan import windows
from dsms.plan.identity import leaves, numbering
from dsms.plan.physical import Phys, State
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef, TableDef
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.lately import Lately
from dsms.sql.types import Field
from dsms.sql.window import (
    Landmark,
    Lasting,
    Now,
    Session,
    Time,
    Unbounded,
    When,
)

Path = tuple[int, ...]
Key = bytes

_with_answers, _without = Lately[dict[Path, Key]](2), Lately[dict[Path, Key]](2)
_CHILDREN = {"child", "left", "right", "inputs"}
_NAMES = {"schema", "alias", "leaf", "first", "names"}


def keys_of(phys: Phys, answers: bool = True) -> dict[Path, Key]:
    """What tells a plan's parts apart: a digest by the path from the root.

    What lies in a block over INTERNAL windows is left out: it is no part of its own.  Without
    `answers` those of other queries, which the plan reads, are left out, too."""
    known = (_with_answers if answers else _without).of(phys)
    if known is None:
        known = {}
        _key(phys, (), known, answers)
        (_with_answers if answers else _without).put(phys, known, 1)
    return dict(known)


def _key(phys: Phys, path: Path, found: dict[Path, Key], answers: bool) -> Key:
    closed = isinstance(phys.node, lp.Append) or (isinstance(phys.node, lp.Answer) and not answers)
    inner = {} if closed else found
    below = [_key(child, (*path, k), inner, answers) for k, child in enumerate(phys.children)]
    said = (type(phys.node).__name__, phys.variant, phys.pattern.name, phys.strategy, phys.width)
    kept = [_kept(state) for state in phys.states]
    parts = (said, kept, _content(phys.node), _order(phys.node), below)
    found[path] = blake2b(repr(parts).encode(), digest_size=16).digest()
    return found[path]


def _kept(state: State) -> tuple[object, ...]:
    return state.kind, state.of, state.lazy, state.partitions if state.fixed else 0


def _order(node: lp.Node) -> list[int]:
    """In which order its leaves stand in FROM: rows of one instant are sorted by it."""
    numbers = [leaf.leaf for leaf in lp.leaves_of(node)]
    places = {leaf: k for k, leaf in enumerate(sorted(set(numbers)))}
    return [places[leaf] for leaf in numbers]


def _content(node: Any) -> list[object]:
    """What a node says, without its inputs and without names."""
    types = [str(f.type) for f in node.schema]
    said = [f.name for f in fields(node) if f.name not in _CHILDREN | _NAMES]
    return [types, *((name, _plain(getattr(node, name))) for name in said)]


def told_of(node: Any) -> object:
    """What a logical plan says but for names: two that are equal mean the same."""
    return type(node).__name__, _content(node), [told_of(below) for below in lp.children(node)]


def _plain(value: Any) -> object:
    match value:
        case Col():
            return "column", value.index, str(value.type)
        case Lit():
            return "constant", repr(value.value), str(value.type)
        case Call():
            return value.fn, _plain(value.args), str(value.type), _plain(value.params)
        case AggCall() | lp.Frame() | Session() | When():
            return [
                (f.name, _plain(getattr(value, f.name))) for f in fields(value) if f.name != "name"
            ]
        case StreamDef() | TableDef():
            return value.home
        case lp.TableScan():
            return _content(value)
        case Field():
            return str(value.type)
        case tuple() | list():
            return [_plain(v) for v in value]
        case _:
            return repr(value)


# ---------------------------------------------------------------- places in a plan


def node_at(phys: Phys, path: Path) -> Phys:
    """The node there."""
    for k in path:
        phys = phys.children[k]
    return phys


def streams_of(node: lp.Node) -> dict[int, str]:
    """Keys of its streams, by leaf number, in FROM order."""
    scans = [leaf for leaf in lp.leaves_of(node) if isinstance(leaf, lp.StreamScan)]
    return {s.leaf: s.stream.home for s in sorted(scans, key=lambda s: s.leaf)}


def tables_of(node: lp.Node) -> tuple[str, ...]:
    """Keys of the tables that it reads or looks into."""
    scans = (leaf for leaf in lp.leaves_of(node) if isinstance(leaf, lp.TableScan))
    return tuple(dict.fromkeys(s.table.home for s in scans))


def expressions_of(node: lp.Node) -> Iterator[Expr]:
    """All that is evaluated in the node and below."""
    for n in lp.nodes_of(node):
        for f in fields(n):
            if f.name not in _CHILDREN:
                yield from _expressions(getattr(n, f.name))


def _expressions(value: Any) -> Iterator[Expr]:
    match value:
        case Col() | Lit() | Call():
            yield value
        case AggCall():
            yield from _expressions(value.args)
            yield from _expressions(value.filter)
        case Session() | When():
            yield from windows.expressions(value)
        case lp.Frame():
            yield from _expressions((value.by, value.calls))
        case tuple():
            for v in value:
                yield from _expressions(v)


# ---------------------------------------------------------------- what it rests on


def is_of_arrivals(node: lp.Node) -> bool:
    """Whether each of its rows is made of arrivals alone, whatever else has come: without some of
    the arrivals it would make the same rows but those that have one of them as a part."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Values():
            return True
        case lp.Window():
            in_time = isinstance(node.spec, Time | Now | Unbounded | Landmark | Lasting)
            return in_time and is_of_arrivals(node.child)
        case lp.Join():
            sides = is_of_arrivals(node.left) and is_of_arrivals(node.right)
            return node.kind == "inner" and sides
        case lp.MultiJoin():
            return all(map(is_of_arrivals, node.inputs))
        case lp.Select() | lp.Project() | lp.JoinNRR():
            return is_of_arrivals(node.child)
        case _:
            return False


def is_of_live_rows(node: lp.Node) -> bool:
    """Whether what its operators keep follows from the arrivals that are alive and, of a GROUP BY,
    from what it has reported."""
    match node:
        case lp.GroupBy():
            return is_of_live_rows(node.child)
        case lp.Answer():  # whenever it is read from, it is there as a whole
            return True
        case lp.Window() | lp.Select() | lp.Project():
            own = not isinstance(node, lp.Window) or is_of_arrivals(node)
            return own and is_of_live_rows(node.child)
        case _:
            return is_of_arrivals(node)


def columns_from(node: lp.Node, first: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Which id columns hold arrival numbers of those stream leaves, each with what `first` says of
    its leaf.  Of rows made of arrivals alone."""
    where, numbers, found = leaves(node), numbering(node), dict[int, int]()
    for k, leaf in enumerate(where):
        if leaf in first and not numbers[k] and leaf not in found:
            found[leaf] = k
    return tuple((k, first[leaf]) for leaf, k in found.items())
