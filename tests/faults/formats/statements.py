"""Statements drawn from forms with gaps (`statements.txt`): most of them are right, or nearly, over
what the victim of `sql` has, so that what is behind the binder is reached."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

GAP = re.compile(r"<(\w+)>")
OFTEN = re.compile(r"\*(\d+) ?")
DEEP = 12  # levels of gaps within gaps, from where on the first form is taken


@cache
def forms() -> dict[str, list[str]]:
    """By the name of a gap what may stand there, each as often as it says."""
    out: dict[str, list[str]] = {}
    _, *blocks = Path(__file__).with_suffix(".txt").read_text().split("\n\n")
    for block in blocks:
        name, *lines = block.splitlines()
        out[name] = []
        for line in lines:
            often = OFTEN.match(line.strip())
            form = line.strip()[often.end() :] if often else line.strip()
            out[name] += [form] * (int(often[1]) if often else 1)
    return out


def statement(rng: Random, name: str = "statement", depth: int = 0) -> str:
    """One of them, or what fills the gap of that name."""
    known = forms()[name]
    form = known[0] if depth > DEEP else rng.choice(known)
    return GAP.sub(lambda gap: statement(rng, gap[1], depth + 1), form)
