"""Is what was pushed what should have been?  If not: the story, as a golden file that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dsms.sql.types import Type
from tests.oracle.values import canons
from tests.stories import cells, text
from tests.stories.declared import Declared
from tests.stories.model import Line, Story


def same_line(a: Line, b: Line) -> bool:
    return a.at == b.at and a.sign == b.sign and cells.same(a.values, b.values)


def same_lines(a: Sequence[Line], b: Sequence[Line], loose: bool = False) -> bool:
    """Equal rows in equal order; `loose`: the order among inserts (or deletes) of one instant does
    not matter."""
    if loose:
        a, b = sorted(a, key=_any_order), sorted(b, key=_any_order)
    return len(a) == len(b) and all(map(same_line, a, b))


def _any_order(line: Line) -> tuple:
    return (line.at, line.sign == "+", repr(canons(line.values)))


def complaint(
    story: Story, declared: Declared, name: str, want: Sequence[Line], got: Sequence[Line], who: str
) -> str:
    """The story with what was expected, and below it what came, marked where the two part."""
    for section in story.of("pushes"):
        if section.name == name:
            section.lines = list(want)
    types = declared.types_of(name)
    marked = "\n".join(_marked(want, got, types))
    return (
        f"{who} pushed something else\n\n{text.render(story, declared)}\n# {who} pushed\n{marked}\n"
    )


def _marked(want: Sequence[Line], got: Sequence[Line], types: list[Type]) -> list[str]:
    out = []
    for place, line in enumerate(got):
        right = place < len(want) and same_line(want[place], line)
        out.append(f"# {text.shown_line(line, types)}{'' if right else '   <--'}")
    return [*out, f"# ... and {len(want) - len(got)} rows less"] if len(want) > len(got) else out


def smaller(story: Story, wrong: Callable[[Story], str | None], tries: int = 150) -> Story:
    """The story without events that it goes wrong without, too."""
    found = True
    while found and tries > 0:
        found = False
        # the last one completes what came before
        for place in range(len(list(story.events())) - 2, -1, -1):
            tries -= 1
            less = _without(story, place)
            if tries > 0 and wrong(less) is not None:
                story, found = less, True
    return story


def _without(story: Story, place: int) -> Story:
    sections = []
    for section in story.sections:
        if section.kind == "input":
            count = len(section.events)
            if 0 <= place < count:
                section = replace(
                    section, events=section.events[:place] + section.events[place + 1 :]
                )
            place -= count
        sections.append(section)
    return replace(story, sections=sections)
