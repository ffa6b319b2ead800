"""How a file is to be read, as far as its user says."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from dsms.errors import UsageError

BOM = b"\xef\xbb\xbf"
KINDS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "zeek", "apache", "lines")
COLUMNAR = ("parquet", "arrow")  # typed columns in place of lines of text
# cells of CSV that are NULL unless others are given, and unless they are quoted
NULLS = ("", "NULL", "\\N")
NO_FILES = ("idna", "punycode", "undefined")  # codecs of text in which no file is written


@dataclass(frozen=True, slots=True)
class Options:
    """None: found out from the file's name, or from how it begins.

    `names` are those of the columns of a file without a line of names (an empty tuple: they are
    the stream's, by position).  `unit` is that of numbers that are instants, `time_formats` are
    tried in turn before the usual forms, `zone` is that of times that say none.  `pattern` is a
    regular expression (RE2) whose named groups are the columns of each line.  `renamed`: columns of
    the stream, and what they are called in the file.
    """

    kind: str | None = None
    delimiter: str | None = None
    nulls: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    encoding: str | None = None
    decimal: str = "."
    unit: str | None = None
    time_formats: tuple[str, ...] = ()
    zone: str | None = None
    pattern: str | None = None
    quoted: bool = True  # CSV: values may stand in quotes
    skip: str = field(default="")  # CSV: lines that begin so are none
    header: bool = False  # CSV: the first line has names, whatever it looks like
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def null_texts(self) -> tuple[str, ...]:
        return NULLS if self.nulls is None else self.nulls


def delimiter_of(text: str) -> str:
    """What stands between cells of CSV.  Raises DS215."""
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        message = "a delimiter is one ASCII character, and no quote or line end"
        raise UsageError("DS215", message)
    return text


def names_of(text: str) -> tuple[str, ...]:
    """Names between commas.  Raises DS215."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError("DS215", f"{text}: a name is missing between commas")
    return names


def pair_of(text: str) -> tuple[str, str]:
    """``column=name``, where no name is the column that has none.  Raises DS215."""
    column, equals, name = text.partition("=")
    if not (column.strip() and equals):
        raise UsageError("DS215", f"{text} is not of the form column=name")
    return column.strip(), name.strip()


def encoding_of(text: str) -> str:
    """The name of an encoding of text, as Python has it.  Raises DS215."""
    try:
        found = codecs.lookup(text)
    except (LookupError, ValueError):  # ValueError: NUL in it
        raise UsageError("DS215", f"{text} is no encoding that is known") from None
    if not found._is_text_encoding or found.incrementaldecoder is None or found.name in NO_FILES:
        raise UsageError("DS215", f"{text} is no encoding of text files")
    return found.name
