"""Runs golden files (tests/golden/README.md), and fills in what they expect.

    python -m tests.golden_runner [FILE ...]             verify these files (all of them if none is named)
    python -m tests.golden_runner --write FILE ...       fill in what they expect; then read it!
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.stories import text
from tests.stories.declared import Declared
from tests.stories.judge import expected, take_in
from tests.stories.model import Line, Story

GOLDEN = Path(__file__).parent / "golden"


def files() -> list[Path]:
    """All golden files."""
    return sorted(GOLDEN.rglob("*.test"))


def load(path: Path) -> tuple[Story, Declared]:
    story = text.parse(path.read_text(encoding="utf-8"))
    return story, text.resolve(story)


def told(story: Story, query: str) -> list[Line]:
    """All that the file expects a query to push."""
    return [line for s in story.of("pushes") if s.name == query for line in s.lines]


def judged(story: Story, declared: Declared) -> dict[str, list[Line]]:
    """What the oracle says that each query pushes; nothing for stories that it can't play."""
    if "no-oracle" in story.flags:
        return {}
    given = take_in(declared, story)
    return {name: expected(output, given) for name, output in declared.queries.items()}


def write(path: Path) -> None:
    """Fill in what is expected."""
    story, declared = load(path)
    answers = judged(story, declared)
    for section in story.of("pushes"):
        if section.name in answers:
            section.lines = answers[section.name]
    path.write_text(text.render(story, declared), encoding="utf-8")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden_runner", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="fill in what is expected")
    chosen = parser.parse_args(argv)
    for path in chosen.files or files():
        if chosen.write:
            write(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
