"""JSON lines, plain and gzipped."""

from __future__ import annotations

import gzip
from functools import partial
from random import Random

from tests.faults.kinds import files
from tests.faults.kinds.csv import CELLS
from tests.faults.mutate import mutated

LIFE = files.LIFE
ENDINGS = ("jsonl", "json", "ndjson.gz")
make = partial(files.Victim, *ENDINGS)
VALUES = ("null", "true", "1", "-0", "1.5", "1e400", "NaN", "Infinity", '"a"', '"\\ud800"',
          '"\\u0000"', "[1,[2]]",
          '{"a":{"b":1}}', "9223372036854775808", "1" * 5000, "0.1000000000000000000001", '"é"',
          "[" * 3000 + "]" * 3000)  # a long list  # fmt: skip
WORDS = [value.encode() for value in VALUES] + [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b":",
    b",",
    b"\n",
    b"\xff",
    b'"k":',
]
WORDS += [b"\0", b"{}", b"\r", b"\\u12", b"\xef\xbb\xbf", b"[" * 100, b'{"k":' * 100]


def draw(rng: Random) -> bytes:
    which = rng.choice((0, 0, 1, 2))
    many = rng.random() < files.OFTEN
    text = lines(rng, files.LINES if many else rng.randint(1, 8)).encode()
    if many:
        text = files.each(rng, text.split(b"\n"), WORDS)
    elif rng.random() < 0.8:
        text = mutated(rng, text, (text,), WORDS)
    if ENDINGS[which].endswith("gz"):
        text = gzip.compress(text, 1, mtime=0)
        if rng.random() < 0.3:
            text = mutated(rng, text)
    return bytes([files.mode(rng, which, many)]) + text


def lines(rng: Random, count: int) -> str:
    return "\n".join(_row(rng) for _ in range(count)) + rng.choice(("\n", ""))


def _row(rng: Random) -> str:
    names = rng.sample(list(CELLS), rng.choice((0, 1, 1, 2, 2, 3, len(CELLS))))
    return "{" + ", ".join(f'"{name}": {_value(rng, name)}' for name in names) + "}"


def _value(rng: Random, name: str) -> str:
    if rng.random() < 0.3:
        return rng.choice(VALUES)
    cell = (
        rng.choice(CELLS[name])
        .strip('"')
        .replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
    )
    return cell if rng.random() < 0.3 and cell.isdigit() else f'"{cell}"'
