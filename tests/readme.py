"""README's sessions: run what they type, and see, or write down, what comes back.

python -m tests.readme      # fills the outputs in
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.flights.server import server

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Step:
    """What is typed, as written, and the lines that follow it."""

    typed: str
    output: str


def console_steps(text: str) -> list[Step]:
    """Commands begin with `$ `, go on while a quote is open, and are followed by their output."""
    steps: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line, ""))
        elif steps[-1].typed.count('"') % 2:
            steps[-1] = Step(f"{steps[-1].typed}\n{line}", "")
        else:
            steps[-1] = Step(steps[-1].typed, f"{steps[-1].output}{line}\n")
    return steps


def run_console(step: Step, port: int) -> str:
    """The output of a command; the server is there already, and listens elsewhere."""
    command = step.typed.removeprefix("$ ")
    if command.startswith(("dsms serve", "dsms warmup")):
        return ""
    command = re.sub(r"^dsms (\w+)", rf'"{sys.executable}" -m dsms_client \1 --port {port}', command)
    run = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=300, env=_environment()
    )
    return run.stdout + run.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1"}


def python_steps(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text)


def run_python(example: doctest.Example, names: dict[str, object], port: int) -> str:
    """What the interpreter prints for the example."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example.source.replace("7654", str(port)), "README.md", "single"), names)
    return out.getvalue()


def rewritten(text: str, port: int) -> str:
    """The README with the outputs that really come."""
    names: dict[str, object] = {}

    def block(found: re.Match[str]) -> str:
        if found[1] == "console":
            lines = [f"{s.typed}\n{run_console(s, port)}" for s in console_steps(found[2])]
        else:
            lines = [_typed(e) + run_python(e, names, port) for e in python_steps(found[2])]
        return f"```{found[1]}\n{''.join(lines)}```"

    return BLOCK.sub(block, text)


def _typed(example: doctest.Example) -> str:
    first, *rest = example.source.splitlines()
    marked = [f">>> {first}", *(f"... {line}" for line in rest)]
    return "\n".join(marked) + "\n"


@contextlib.contextmanager
def running() -> Iterator[int]:
    with server(lambda line: None, "--no-warmup") as port:
        yield port


def main() -> None:
    with running() as port:
        README.write_text(rewritten(README.read_text(encoding="utf-8"), port), encoding="utf-8")


if __name__ == "__main__":
    main()
