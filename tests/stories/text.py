"""Stories as text: the format of golden files (tests/golden/README.md describes it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dsms.sql.types import Type
from tests.stories import cells
from tests.stories.declared import Declared
from tests.stories.model import Arrival, Beat, Clock, End, Event, Line, Section, Statement, Story

KINDS = ("sql", "query", "input", "pushes", "rows", "fails", "explain")
PARTED = ("rows", "fails", "explain")  # statement, a line of dashes, what is expected
RULE = "----"


class Malformed(ValueError):
    """The text is no story: says the line."""


def parse(text: str) -> Story:
    """The story of a file.  Sections are separated by blank lines; the first word of each says its
    kind."""
    story = Story()
    for number, block in _blocks(text):
        head = block[0].split()
        if block[0].startswith("#") and all(line.startswith("#") for line in block):
            _comment(story, block)
            continue
        body = [line for line in block if not line.startswith("#")]
        head = body[0].split()
        if head[0] not in KINDS:
            raise Malformed(f"line {number}: `{head[0]}` is no kind of section: {', '.join(KINDS)}")
        section = Section(head[0], " ".join(head[1:]), source=body[1:])
        section.body = "\n".join(_body(section))
        story.sections.append(section)
    return story


def _comment(story: Story, block: list[str]) -> None:
    for line in block:
        words = line.removeprefix("#").split()
        if words[:1] == ["flags:"]:
            story.flags |= set(words[1:])
        elif not story.sections:
            story.title += line.removeprefix("#").strip() + "\n"


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield number - len(block), block
            block = []


def _body(section: Section) -> list[str]:
    lines = section.source
    if section.kind in PARTED:
        if RULE not in lines:
            raise Malformed(
                f"a `{section.kind}` section needs a line {RULE} before what is expected"
            )
        section.text = "\n".join(lines[lines.index(RULE) + 1 :])
        lines = lines[: lines.index(RULE)]
    return lines


def expand(sql: str) -> str:
    """``@4s`` in a statement stands for the TIMESTAMP literal."""
    return re.sub(
        r"(?<!\S)@([^\s;,)]+)", lambda found: cells.sql_instant(cells.instant(found[1])), sql
    )


def inexact(story: Story) -> bool:
    """Does a query compute FLOATs that may differ in their last digits, so that rows must be
    compared with care?"""
    found = re.compile(r"AVG|VAR|STDDEV|MEDIAN|QUANTILE_CONT|SUM", re.IGNORECASE)
    return any(found.search(section.body) for section in story.of("query"))


# ---------------------------------------------------------------- cells need the columns' types


def resolve(story: Story) -> Declared:
    """Read the rows of all sections with the types that the statements declare."""
    declared = Declared()
    for section in story.sections:
        match section.kind:
            case "sql":
                declared.run(expand(section.body))
            case "query":
                declared.register(section.name, section.body)
            case "input" if section.source:
                section.events = [
                    e for e in (event(line, declared) for line in section.source) if e is not None
                ]
            case "pushes" if section.source:
                section.lines = lines(section.source, declared.types_of(section.name))
    return declared


def event(line: str, declared: Declared) -> Event | None:
    """One line of an `input` section."""
    if line.startswith(">"):
        return Statement(expand(line[1:].strip().rstrip(";")))
    words = cells.words(cells.without_comment(line))
    if not words:
        return None
    stream, rest = words[0], words[1:]
    name = None if stream == "*" else stream
    if stream == "now":
        return Clock(cells.instant(rest[0]))
    if rest == ["ends"]:
        return End(name)
    if rest[:1] == ["until"]:
        return Beat(name, cells.instant(rest[1]))
    return declared.arrival(stream, cells.instant(rest[0]), rest[1:])


def lines(source: Iterable[str], types: list[Type]) -> list[Line]:
    """The lines of a `pushes` section."""
    out = []
    for text in source:
        words = cells.words(cells.without_comment(text))
        if words:
            if words[0] == "!":
                out.append(Line(None, "!", tuple(words[1:])))
            else:
                out.append(Line(cells.instant(words[0]), words[1], cells.row(words[2:], types)))
    return out


# ---------------------------------------------------------------- and back


def shown_event(event: Event, declared: Declared) -> str:
    match event:
        case Statement():
            return f"> {event.sql}"
        case Clock():
            return f"now {cells.shown_instant(event.now)}"
        case End():
            return f"{event.stream or '*'} ends"
        case Beat():
            return f"{event.stream or '*'} until {cells.shown_instant(event.upto)}"
        case Arrival():
            return (
                f"{event.stream} {cells.shown_instant(event.at)} {declared.shown_arrival(event)}"
            ).rstrip()


def shown_line(line: Line, types: list[Type]) -> str:
    if line.sign == "!":
        return f"! {' '.join(map(str, line.values))}"
    return (
        f"{cells.shown_instant(line.at)} {line.sign} {cells.shown_row(line.values, types)}".rstrip()
    )


def render(story: Story, declared: Declared) -> str:
    """The story as a file."""
    parts = [f"# {line}" for line in story.title.splitlines()]
    out = ["\n".join(parts)] if parts else []
    if story.flags:
        out.append("# flags: " + " ".join(sorted(story.flags)))
    for s in story.sections:
        head = f"{s.kind} {s.name}".rstrip()
        match s.kind:
            case "input":
                body = s.source or [shown_event(e, declared) for e in s.events]
            case "pushes":
                body = [shown_line(line, declared.types_of(s.name)) for line in s.lines]
            case "rows" | "fails" | "explain":
                body = [s.body, RULE, *([s.text] if s.text else [])]
            case _:
                body = [s.body]
        out.append("\n".join([head, *body]))
    return "\n\n".join(out) + "\n"
