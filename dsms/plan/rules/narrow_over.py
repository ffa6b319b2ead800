"""OVER keeps, and carries on, only the columns and calls that are read above it."""

from collections.abc import Iterator
from dataclasses import replace

from dsms.plan import windows
from dsms.plan.exprs import reads, remap, total
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Expr


def narrow_over(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Over(x, calls), e) -> Project(Over(Project(x), those that e reads), e).

    Calls look at rows, not at each other; which rows there are stays.  One that can fail stays,
    too: its errors are counted."""
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.Over)):
        return node
    over, wide, read = node.child, len(node.child.child.schema), reads(node.exprs)
    kept = [at for at, call in enumerate(_calls(over), wide) if at in read or not _total(call)]
    frames = _frames(over, wide, set(kept))
    needed = {i for i in read if i < wide} | _read(over, frames)
    if len(kept) == len(over.schema) - wide and not narrows(over.child, needed):
        return node
    child, moves = narrow(over.child, needed)
    places = moves | {old: len(child.schema) + k for k, old in enumerate(kept)}
    exprs = tuple(remap(e, places) for e in node.exprs)
    if not frames:
        return lp.Project(child, exprs, node.schema)
    slim = replace(
        over,
        child=child,
        window=windows.moved(over.window, moves),
        predicate=None if over.predicate is None else remap(over.predicate, moves),
        frames=tuple(_moved(frame, moves) for frame in frames),
        schema=child.schema + tuple(over.schema[at] for at in kept),
    )
    return lp.Project(slim, exprs, node.schema)


def _calls(over: lp.Over) -> Iterator[AggCall]:
    return (call for frame in over.frames for call in frame.calls)


def _exprs(call: AggCall) -> Iterator[Expr]:
    yield from call.args
    if call.filter is not None:
        yield call.filter


def _total(call: AggCall) -> bool:
    return all(map(total, _exprs(call)))


def _frames(over: lp.Over, first: int, kept: set[int]) -> list[lp.Frame]:
    """The frames of the calls whose columns are kept."""
    found = []
    for frame in over.frames:
        calls = tuple(call for at, call in enumerate(frame.calls, first) if at in kept)
        first += len(frame.calls)
        if calls:
            found.append(replace(frame, calls=calls))
    return found


def _read(over: lp.Over, frames: list[lp.Frame]) -> set[int]:
    """What these frames look at."""
    if not frames:
        return set()
    exprs = [e for frame in frames for e in frame.by]
    exprs += [e for frame in frames for call in frame.calls for e in _exprs(call)]
    exprs += [] if over.predicate is None else [over.predicate]
    return reads(exprs) | windows.reads(over.window)


def _moved(frame: lp.Frame, to: dict[int, int]) -> lp.Frame:
    calls = tuple(
        replace(
            call,
            args=tuple(remap(a, to) for a in call.args),
            filter=None if call.filter is None else remap(call.filter, to),
        )
        for call in frame.calls
    )
    return replace(frame, by=tuple(remap(e, to) for e in frame.by), calls=calls)
