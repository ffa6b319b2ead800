"""Runs golden files (tests/golden/README.md), and fills in what they expect.

python -m tests.golden_runner [FILE ...]             verify these files (all of them if none is
named) python -m tests.golden_runner --write FILE ...       fill in what they expect; then read it!
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from dsms.api import Rows
from dsms.errors import DsmsError
from dsms.sql.binder.options import OPTIONS
from dsms.sql.types import Kind, Type, decimal
from tests.effort import effort
from tests.oracle.values import canons
from tests.stories import cells, text
from tests.stories.compare import complaint, same_lines
from tests.stories.declared import Declared
from tests.stories.judge import answer, expected, kind, registered, take_in
from tests.stories.model import Line, Section, Story
from tests.stories.play import Way, all_ways, drawn_way, play, rows_of

GOLDEN = Path(__file__).parent / "golden"
PATHS = OPTIONS["path"].choices


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
    queries = declared.queries.items()
    return {
        name: expected(output, given, registered(story, declared, name)) for name, output in queries
    }


def verify(path: Path, ways: Sequence[Way] | None = None) -> list[str]:
    """What is wrong with the file, or with the engine: every way to run it, and the oracle, must
    say what it says."""
    story, declared = load(path)
    silent = [
        name for name in declared.queries if not any(s.name == name for s in story.of("pushes"))
    ]
    wrong = [f"no `pushes {name}` says what {name} pushes" for name in silent]
    for name, lines in judged(story, declared).items():
        want = told(story, name)
        if not same_lines(want, lines):
            wrong.append(complaint(story, declared, name, want, lines, "the oracle"))
    for way in ways or ways_of(path, declared):
        wrong += _played(story, declared, way)
    return wrong


def ways_of(path: Path, declared: Declared) -> list[Way]:
    """All ways, or one that the story's name draws; with each in turn another access path, where a
    query has a SLIDE."""
    name = path.relative_to(GOLDEN).as_posix() if path.is_relative_to(GOLDEN) else path.name
    found = all_ways() if effort() else [drawn_way(name)]
    if all(output.slide is None for output in declared.queries.values()):
        return found
    paths = cycle(Random(name).sample(PATHS, len(PATHS)))
    return [
        replace(way, options=(("path", f"'{path}'"),))
        for way, path in zip(found, paths, strict=False)
    ]


def _played(story: Story, declared: Declared, way: Way) -> list[str]:
    played = play(story, declared, way)
    wrong = []
    for section, said in played.sections:
        if section.kind == "pushes":
            if not same_lines(section.lines, said):
                wrong.append(
                    complaint(
                        story, declared, section.name, section.lines, said, f"the engine ({way})"
                    )
                )
        elif (problem := unlike(section, said)) is not None:
            wrong.append(f"{way}: {section.body}\n{problem}")
    for name, rows in played.snapshots.items():
        wrong += _snapshot(story, declared, name, rows, way)
    return wrong


def _snapshot(
    story: Story, declared: Declared, name: str, rows: list[tuple], way: Way
) -> list[str]:
    """A view's snapshot at the end is what was inserted and not deleted, or what a periodic query
    answered last."""
    lines, output = told(story, name), declared.queries[name]
    if kind(output) != "rstream" or any(line.sign == "!" for line in lines):
        return []
    if output.slide is not None:
        if "no-oracle" in story.flags or output.restore:
            return []
        want = answer(output, take_in(declared, story)) or []
        alike = len(want) == len(rows) and all(map(cells.same, want, rows))
        return [] if alike else [f"{way}: the snapshot of {name} is {rows}, its last answer {want}"]
    left = Counter(canons(line.values) for line in lines if line.sign == "+")
    left.subtract(canons(line.values) for line in lines if line.sign == "-")
    got = Counter(canons(row) for row in rows)
    return (
        []
        if +left == got
        else [f"{way}: the snapshot of {name} is {rows}, the pushes leave {dict(+left)}"]
    )


def unlike(section: Section, said: Any) -> str | None:
    """How a `rows`, `fails` or `explain` section differs from what the engine said; None if it does
    not."""
    match section.kind, said:
        case "fails", DsmsError():
            return None if section.text and section.text in str(said) else f"the message is: {said}"
        case _, DsmsError():
            return f"it failed: {said}"
        case "fails", _:
            return "it did not fail"
        case "rows", Rows():
            types = [type_named(t) for t in said.types]
            got = [cells.shown_row(row, types) for row in rows_of(said.data)]
            ordered = "order by" in section.body.lower()
            want = section.text.splitlines()
            alike = got == want if ordered else sorted(got) == sorted(want)
            return None if alike else "it answered:\n" + "\n".join(got)
        case _:
            got = [row[0] for row in rows_of(said.data)]
            return None if "\n".join(got) == section.text else "it answered:\n" + "\n".join(got)


def type_named(name: str) -> Type:
    """The type of a printed name."""
    digits = re.findall(r"\d+", name)
    return decimal(int(digits[0]), int(digits[1])) if digits else Type(Kind(name))


def write(path: Path) -> None:
    """Fill in what is expected: by the oracle where it can play the story, else by the engine."""
    story, declared = load(path)
    answers = judged(story, declared)
    played = play(story, declared, Way())
    for section, said in played.sections:
        if section.kind == "pushes":
            section.lines = said
        elif section.kind == "fails":
            section.text = section.text or (
                said.message if isinstance(said, DsmsError) else "it did not fail"
            )
        else:
            section.text = "\n".join(_texts(section, said))
    for name, lines in answers.items():
        sections = [s for s in story.of("pushes") if s.name == name]
        if len(sections) == 1:
            sections[0].lines = lines
    path.write_text(text.render(story, declared), encoding="utf-8")


def _texts(section: Section, said: Any) -> list[str]:
    if not isinstance(said, Rows):
        return [f"it failed: {said}"]
    types = [type_named(t) for t in said.types]
    rows = rows_of(said.data)
    return (
        [cells.shown_row(r, types) for r in rows]
        if section.kind == "rows"
        else [r[0] for r in rows]
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden_runner")
    parser.add_argument(
        "files", nargs="*", type=Path, help="golden files; all of them if none is named"
    )
    parser.add_argument("--write", action="store_true", help="fill in what is expected")
    chosen = parser.parse_args(argv)
    bad = 0
    for path in chosen.files or files():
        if chosen.write:
            write(path)
            continue
        problems = verify(path)
        bad += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {path}")
        print("".join(f"{problems[0]}\n") if problems else "", end="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
