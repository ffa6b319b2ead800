"""CSV and TSV, plain and gzipped."""

from __future__ import annotations

import gzip
from functools import partial
from random import Random

from tests.faults.kinds import files
from tests.faults.mutate import mutated

LIFE = files.LIFE
ENDINGS = ("csv", "tsv", "csv.gz")
make = partial(files.Victim, *ENDINGS)
CELLS = {
    "k": ("a", '"a,b"', '""', "NULL", '"x""y"', "é", '"two\nlines"', "\\N"),
    "v": ("1", "-7", "", "9223372036854775807", "9223372036854775808", "1.0", " 1", "0x1", "1e3"),
    "f": ("1.5", "NaN", "-inf", "1e308", "1e309", "", ".5", "5.", "-0"),
    "d": ("1.25", "999999.99", "1000000", "1e2", "", "-.5", "0.001"),
    "b": ("true", "FALSE", "t", "0", "1", "", "yes"),
    "t": ("2020-01-02 03:04:05", "2020-01-02T03:04:05.123456789Z", "0001-01-01", "9999-12-31",
          "1700000000", "now",
          "2020-02-30", "1700000000.5", "2020-01-02 03:04:05+14:00"),
    "y": ("abc", "\\x00ff", "0x00", "", "ÿ"),
    "i": ("1 s", "1 day", "1:00:00", "-5 us", "99999999 days", "", "P1D", "5"),
}  # what may be read in several ways  # fmt: skip
WORDS = [cell.encode() for cells in CELLS.values() for cell in cells]
WORDS += [
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b",",
    b"\t",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"PAR1",
    b"k",
    b"9" * 400,
]


def draw(rng: Random) -> bytes:
    which = rng.choice((0, 0, 0, 1, 2))
    many = rng.random() < files.OFTEN
    rows = files.LINES if many else rng.randrange(9)
    text = table(rng, "\t" if which == 1 else ",", rows).encode()
    if many:
        text = files.each(rng, text.split(b"\n"), WORDS)
    elif rng.random() < 0.8:
        text = mutated(rng, text, (text,), WORDS)
    if ENDINGS[which].endswith("gz"):
        text = gzip.compress(text, 1, mtime=0)
        if rng.random() < 0.3:
            text = mutated(rng, text)
    return bytes([files.mode(rng, which, many)]) + text


def table(rng: Random, delimiter: str, rows: int) -> str:
    names = rng.sample(list(CELLS), rng.choice((1, 1, 2, 2, 3, len(CELLS))))
    lines = [delimiter.join(names)]
    for _ in range(rows):
        lines.append(delimiter.join(rng.choice(CELLS[name]) for name in names))
    return rng.choice(("\n", "\n", "\r\n")).join(lines) + rng.choice(("\n", ""))
