"""What a query says that was hardly meant: for notes in the reply to CREATE QUERY and in EXPLAIN.

[NOW] beside boundaries    it holds the rows of the last instant before each boundary alone
INTERNAL aggregates        without a SLIDE of its own a block appends at each change, not once a
                           period
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsms.plan.variants import slides
from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.printer import to_sql
from dsms.sql.unbind import window_syntax
from dsms.sql.window import Now, Rows, Slide, Time, WindowSpec


def advice(output: lp.Output) -> tuple[str, ...]:
    """Sentences about a bound query, each with the form that was probably meant."""
    slide = None if output.restore else output.slide
    found = [*_instants(output.child, slide), *_changes(output.child, False)]
    return tuple(dict.fromkeys(found))


def _instants(node: lp.Node, slide: Slide | None) -> Iterator[str]:
    """`slide`: boundaries at which alone the rows of the node are looked at."""
    if slide is None or slide.by_rows:
        return
    if isinstance(node, lp.Append) and not node.mixed and not slides(node.child):
        return
    if isinstance(node, lp.Window) and isinstance(node.spec, Now):
        own = node.spec.slide if slide.calendar is None else slide
        meant = Time(slide.every, calendar=slide.calendar, slide=own, internal=node.spec.internal)
        yield (
            f"{_text(node.spec)} holds the rows of the last instant before each boundary alone; "
            f"those since the boundary before are {_text(meant)}"
        )
    for child in lp.children(node):
        yield from _instants(child, slide)


def _changes(node: lp.Node, inside: bool) -> Iterator[str]:
    """`inside`: the node stands in FROM of another block."""
    match node:
        case lp.Append(child, mixed=False, entries=False, departures=False) if (
            inside and not slides(child)
        ):
            block = list(_block(child))
            if any(isinstance(n, lp.GroupBy) and not at_close(n.child) for n in block):
                yield _periods(next((n.spec for n in block if isinstance(n, lp.Window)), None))
    for child in lp.children(node):
        yield from _changes(child, inside or isinstance(node, lp.Window))


def _periods(spec: WindowSpec | None) -> str:
    said = (
        "a block over INTERNAL windows appends its aggregates at each change of them; to append "
        "them once a period, give it a SLIDE"
    )
    match spec:
        case Time(calendar=None):
            return f"{said}: {_text(replace(spec, slide=Slide(spec.length)))}"
        case Rows():
            return f"{said}: {_text(replace(spec, slide=Slide(spec.count, by_rows=True)))}"
        case _:
            return said


def _block(node: lp.Node) -> Iterator[lp.Node]:
    """The nodes of the block itself, not of blocks that append within it."""
    yield node
    for child in lp.children(node):
        if not isinstance(child, lp.Append):
            yield from _block(child)


def _text(spec: WindowSpec) -> str:
    return f"[{to_sql(window_syntax(spec, ()))}]"
