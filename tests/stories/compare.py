"""Is what was pushed what should have been?  If not: the story, as a golden file that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql.types import Type
from tests.stories import cells, text
from tests.stories.declared import Declared
from tests.stories.model import Line, Story


def same_line(a: Line, b: Line) -> bool:
    return a.at == b.at and a.sign == b.sign and cells.same(a.values, b.values)


def same_lines(a: Sequence[Line], b: Sequence[Line]) -> bool:
    return len(a) == len(b) and all(map(same_line, a, b))


def complaint(story: Story, declared: Declared, name: str, want: Sequence[Line], got: Sequence[Line], who: str) -> str:
    """The story with what was expected, and below it what came, marked where the two part."""
    for section in story.of("pushes"):
        if section.name == name:
            section.lines = list(want)
    types = declared.types_of(name)
    marked = "\n".join(_marked(want, got, types))
    return f"{who} pushed something else\n\n{text.render(story, declared)}\n# {who} pushed\n{marked}\n"


def _marked(want: Sequence[Line], got: Sequence[Line], types: list[Type]) -> list[str]:
    out = []
    for place, line in enumerate(got):
        right = place < len(want) and same_line(want[place], line)
        out.append(f"# {text.shown_line(line, types)}{'' if right else '   <--'}")
    return [*out, f"# ... and {len(want) - len(got)} rows less"] if len(want) > len(got) else out
