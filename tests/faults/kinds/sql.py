"""Statements: those of the tests' corpora with tokens or bytes changed, and some that the grammar
itself gives, run in an engine that has
rows."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.faults.cases import judge
from tests.faults.formats.sentences import sentence
from tests.faults.mutate import mutated
from tests.folders import story
from tests.folders.play import play

LIFE = 100
MOST = 20  # persistent queries at a time
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\d+(?:\.\d+)?|\w+|<>|<=|>=|!=|\|\||::|\s+|\S")
EDGES = ("NULL", "0", "-1", "9223372036854775807", "9223372036854775808", "1e308", "0.1", "''",
         "TRUE", "*", "(", ")",
         "[", "]", "''''", "INTERVAL '1' DAY", "TIMESTAMP '9999-12-31'", "NOW", "1 us", "k",
         "v", "s", "u", "r", "t", "f", "d",
         "SELECT", "UNION", "CAST(v AS STRING)", ",", ";", "--", "/*", "é",
         "\x00")  # a long list  # fmt: skip


# there is no data folder
DECLARED = story.DECLARED.replace("ARCHIVE FOR 1 DAY UPDATE EVERY 1 h", "RETAIN 20 s")


def rows(first: int, last: int) -> list[story.Step]:
    """Rows of seconds first..last-1 for all streams."""
    return story._rows(first, last)


class Victim:
    judged = 1

    def __init__(self) -> None:
        self.engine = Engine(
            settings=Settings(queries=MOST, state_bytes=64 << 20, statement_bytes=64 << 20)
        )
        self.engine.execute(DECLARED)
        play(self.engine, rows(1, 4))
        self._at = 4

    def suffer(self, data: bytes) -> str:
        text = data.decode(errors="replace")
        before = len(self.engine.runtime.queries)
        try:
            self.engine.execute(text)
            end = "done"
        except DsmsError as problem:
            end = judge(problem.code, problem.message)
        if len(self.engine.runtime.queries) > before or self._at % 8 == 0:
            self._go_on()
        self._at += 1
        return end

    def _go_on(self) -> None:
        """Rows come, for what there is now."""
        try:
            play(self.engine, rows(self._at, self._at + 1))
        except DsmsError as problem:
            judge(problem.code, problem.message)

    def close(self) -> None:
        self.engine.close()


make = Victim


@cache
def corpus() -> list[str]:
    """All statements of the papers, of golden stories and of the data folders' story."""
    found = [
        s
        for part in re.split(r";\s*\n|\n\n", (GOLDEN / "papers.cql").read_text())
        if (s := part.strip())
    ]
    for path in sorted(GOLDEN.rglob("*.test")):
        for section in path.read_text().split("\n\n"):
            head, _, body = section.partition("\n")
            if head.startswith("query "):
                found.append(body)
                found.append(f"CREATE QUERY {head.split()[1]} AS {body}")
            elif head.startswith(("sql", "rows", "fails", "explain")):
                found += [s for s in body.partition("\n----")[0].split(";\n") if s.strip()]
    for name, query in story.QUERIES.items():
        found += [query, f"CREATE QUERY {name} AS {query}", f"EXPLAIN {query}"]
    return [*found, *story.ASKED, *(s for s in story.DECLARED.split(";") if s.strip())]


@cache
def tokens() -> list[str]:
    return sorted(
        {token for text in corpus() for token in TOKEN.findall(text) if token.strip()}
    ) + list(EDGES)


def draw(rng: Random) -> bytes:
    if rng.random() < 0.35:
        return sentence(rng).encode()
    text = _named(rng) if rng.random() < 0.5 else rng.choice(corpus())
    if rng.random() < 0.8:
        text = _changed(rng, text)
    data = text.encode()
    return mutated(rng, data, (rng.choice(corpus()).encode(),)) if rng.random() < 0.2 else data


def _named(rng: Random) -> str:
    """A statement over what there is."""
    name = rng.choice(list(story.QUERIES))
    return f"{rng.choice(('', '', 'EXPLAIN ', f'CREATE QUERY {name} AS '))}{story.QUERIES[name]}"


def _changed(rng: Random, text: str) -> str:
    """One to four of its tokens, or runs of them, are others."""
    words = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(words) + 1)
        size = rng.choice((1, 1, 2, 5))
        match rng.randrange(6):
            case 0:
                words[at : at + size] = [rng.choice(tokens()), " "]
            case 1:
                words[at:at] = [" ", rng.choice(EDGES), " "]
            case 2:
                del words[at : at + size]
            case 3:
                words[at:at] = words[at : at + size] * rng.choice((1, 2, 40))
            case 4:
                other = TOKEN.findall(rng.choice(corpus()))
                low = rng.randrange(len(other) + 1)
                words[at : at + size] = other[low : low + rng.choice((1, 4, 12))]
            case 5:
                deep = rng.choice((1, 3, 200))
                words[at : at + size] = ["("] * deep + words[at : at + size] + [")"] * deep
    return "".join(words)
