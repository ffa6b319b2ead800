"""Pages as text: their code blocks, what is typed in them, and whether an output is the one that
was printed."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
KINDS = ("console", "python", "sql", "sql error", "toml", "text", "sh", "ini")
NEVER_RUN = ("text", "sh", "ini")
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>[^>]+) -->\n)?^```(?P<kind>[^\n`]*)\n(?P<body>.*?)^```$",
    re.M | re.S,
)
_SCRIPT = re.compile(r"^<!-- script: (\S+) -->$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its kind, its lines, where it begins, and why it is not run if it isn't."""

    kind: str
    body: str
    line: int
    why: str | None

    @property
    def runs(self) -> bool:
        return self.why is None and self.kind not in NEVER_RUN


@dataclass(frozen=True, slots=True)
class Step:
    """What is typed, as written, and the lines that follow it."""

    typed: str
    output: str


def blocks(text: str) -> list[Block]:
    """All code blocks of a page."""
    return [_block(text, found) for found in _BLOCK.finditer(text)]


def _block(text: str, found: re.Match[str]) -> Block:
    return Block(
        found["kind"], found["body"], text.count("\n", 0, found.start("kind")) + 1, found["why"]
    )


def rewritten(text: str, new_body: Callable[[Block], str]) -> str:
    """The page with other bodies of those blocks that are run."""

    def block(found: re.Match[str]) -> str:
        old = _block(text, found)
        return found[0] if not old.runs else f"```{old.kind}\n{new_body(old)}```"

    return _BLOCK.sub(block, text)


def script_of(text: str) -> Path | None:
    """The file in which the statements of a page stand, if it names one."""
    found = _SCRIPT.search(text)
    return None if found is None else ROOT / found[1]


def script(text: str, title: str) -> str:
    """The statements of a page, one block after the other."""
    return "\n".join(
        [title, *(block.body for block in blocks(text) if block.kind == "sql" and block.runs)]
    )


def console_steps(body: str) -> list[Step]:
    """Commands begin with `$ `, go on while a quote is open or behind a backslash, and are followed
    by their output."""
    steps: list[Step] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line, ""))
        elif is_open(steps[-1].typed):
            steps[-1] = Step(f"{steps[-1].typed}\n{line}", "")
        else:
            steps[-1] = Step(steps[-1].typed, f"{steps[-1].output}{line}\n")
    return steps


def is_open(command: str) -> bool:
    """Whether the command goes on in the next line."""
    return command.count('"') % 2 == 1 or command.endswith("\\")


def python_steps(body: str) -> list[Step]:
    """Examples as the interpreter would show them."""
    examples = doctest.DocTestParser().get_examples(body)
    return [Step(_typed(e.source), e.want) for e in examples]


def _typed(source: str) -> str:
    first, *rest = source.splitlines()
    return "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in rest)])


def source_of(step: Step) -> str:
    """The Python behind the prompts."""
    return "".join(f"{line[4:]}\n" for line in step.typed.splitlines())


def matches(printed: str, came: str) -> bool:
    """Whether an output is as printed, `...` standing for anything within a line or, alone in one,
    for any lines."""
    parts = [
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r" *\n"
        for line in printed.splitlines()
    ]
    return re.fullmatch("".join(parts), came) is not None


def same_or(printed: str, came: str) -> str:
    """What a page should print: what it prints now, if that is right."""
    return printed if matches(printed, came) else came
