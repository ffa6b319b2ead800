"""A stream for a file: names, types, the column of time and how late rows are, from the file's
beginning.

DuckDB's sniffer says what divides the values of CSV and whether a line of names comes first.  A
column has the first of BOOL, INT, FLOAT, TIMESTAMP that all its values in the sample are of, as
`dsms load` reads them, else STRING; numbers with leading zeros stay text.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.tabular.names import unique
from dsms_client.files import times
from dsms_client.files.guess import delimiter_of
from dsms_client.files.infertime import choose_time, joined_day, slack_for
from dsms_client.files.options import NULLS, Options
from dsms_client.files.pieces import (
    NO_TEXT,
    parts_of,
    plain_name,
    several,
    texts_of,
    there,
)
from dsms_client.files.sample import Sample, sample_of
from dsms_client.files.source import ENCODINGS, FileSource
from dsms_client.files.text import convert

SAMPLE = 1 << 20  # bytes of the file that are looked at
ROWS = 20_480  # and rows, as many as DuckDB's sniffer takes
MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "None", "none", "null", "-", "?")
RESERVED = frozenset((  # words of the language that are no names unless quoted
    "select", "from", "where", "group", "having", "order", "by", "limit", "offset", "union",
    "intersect", "except", "all", "distinct", "as", "on", "using", "join", "inner", "left", "right",
    "full", "cross", "and", "or", "not", "is", "in", "like", "between", "exists", "null", "true",
    "false", "case", "when", "then", "else", "end", "cast", "with", "create", "istream", "dstream",
    "rstream", "wstream",
))  # a table  # fmt: skip
OPERATION = "_op"  # of a stream with KEY
_PADDED = r"^[+-]?0[0-9]"
_WORDS = r"(?i)^(?:true|false|t|f)$"


@dataclass(frozen=True, slots=True)
class Inferred:
    """`columns` (names and SQL types) of a stream, and how the file feeds them: `renamed` columns,
    `options`.  `time`: the column of event time, if there is one.  `notes` say why."""

    columns: tuple[tuple[str, str], ...]
    renamed: dict[str, str]
    options: Options
    time: str | None = None
    slack: str | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = field(default=())

    def statement(self, name: str, clauses: str = "") -> str:
        """CREATE STREAM, to be shown and run."""
        return self.created(f"CREATE STREAM {quoted(name)}", clauses)

    def created(self, head: str, clauses: str, key: tuple[str, ...] = ()) -> str:
        """``CREATE STREAM | TABLE name`` with columns and clauses; a table has no time, and may
        have a `key` (as statements write its names)."""
        elements = [f"{quoted(column)} {sql}" for column, sql in self.columns]
        if key:
            elements.append(f"PRIMARY KEY ({', '.join(key)})")
        columns = ",\n    ".join(elements)
        parts = [f"{head} (\n    {columns})"]
        if self.time is not None and not head.startswith("CREATE TABLE"):
            parts.append(f"TIMESTAMP BY {quoted(self.time)}")
            if self.slack is not None and "slack" not in clauses.casefold():
                parts.append(f"SLACK {self.slack}")
        return "\n    ".join(filter(None, (" ".join(parts), clauses.strip())))


def quoted(name: str) -> str:
    """A name as statements write it."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name.casefold() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def infer(
    source: FileSource,
    renamed: dict[str, str] | None = None,
    time: str | None = None,
    keyed: bool = False,
    table: bool = False,
) -> Inferred:
    """Look at the file's beginning.  `renamed`: columns of the stream that are called otherwise in
    the file.  `time`: the column of event time, if it is known.  `keyed`: the stream has a KEY, so
    `_op` says what rows do.  A `table` has no time.

    Raises DS530 for a file without rows, DS532 for columns of one name, DS533 for a
    column that is not there or holds no times."""
    options = source.options
    notes: list[str] = []
    if source.kind in ("csv", "tsv"):
        options, said = _dialect(source, options)
        notes += said
    sample = sample_of(source, options, SAMPLE, ROWS)
    if not sample.texts:
        raise _no_rows(source, sample)
    options, said = _with_missing(sample, options)
    notes += [*said, *_rejected(sample)]
    notes += _without_names(sample, renamed or {})
    sample.texts = _made(sample.texts, renamed or {})
    known = {_in(sample.texts, column): name for name, column in (renamed or {}).items()}
    plain = [known.get(n) or _spelled(n) for n in sample.texts]
    names = dict(zip(sample.texts, unique(plain), strict=True))
    _check_names(names)
    mapped = {names[n]: n for n in names if _needs_map(names[n], n)}
    types = {n: sample.types.get(n) or _type(n, sample.texts[n], options) for n in sample.texts}
    named = time is not None and time.casefold() in map(str.casefold, (*names, *names.values()))
    joined = joined_day(sample.texts, types) if not named and not renamed else None
    if joined is not None:
        day, clock, texts = joined
        name = unique([*names.values(), "t"])[-1]
        sample.texts = {name: texts} | {
            n: column for n, column in sample.texts.items() if n not in (day, clock)
        }
        names[name], types[name], mapped[name] = name, "TIMESTAMP", f"{day}+{clock}"
        mapped = {k: v for k, v in mapped.items() if k == name or v not in (day, clock)}
        notes.append(f"{name}: made of {day} and {clock}")
    chosen = choose_time(sample.texts, types, names, options, time)
    options = chosen.options
    types |= chosen.types
    notes += chosen.notes if not table else chosen.notes[: chosen.column is not None]
    notes += [f"left out: {n}, {why}" for n, why in sample.left_out.items()]
    time = None if table else chosen.column
    types |= _days_and_times(sample, types, time)
    slack, said = slack_for(sample.texts, time, options)
    columns = tuple((names[n], types[n]) for n in sample.texts)
    if keyed and any(name.casefold() == OPERATION for name, _ in columns):
        columns = tuple(column for column in columns if column[0].casefold() != OPERATION)
        notes.append(f"{OPERATION}: what each row does to the one with its KEY")
    mapped |= renamed or {}
    return Inferred(
        columns,
        mapped,
        replace(options, renamed=tuple(mapped.items())),
        None if time is None else names[time],
        slack,
        (*notes, *said),
        _first_rows(sample),
    )


def _without_names(sample: Sample, renamed: dict[str, str]) -> list[str]:
    """Columns without a name or a value, as one stands behind a last delimiter, are none."""
    wanted = {part for whole in renamed.values() for part in parts_of(whole, list(sample.texts))}
    found = [
        name
        for name, column in sample.texts.items()
        if re.fullmatch(r"column\d+_*", name) and name not in wanted
        if sample.guessed and column.null_count == len(column)
    ]
    if len(found) == len(sample.texts):
        return []
    for name in found:
        del sample.texts[name]
    return [f"left out: {name}, which has no values" for name in found]


def _check_names(names: dict[str, str]) -> None:
    """Raises DS532 for two that are one in another case."""
    for name in names.values():
        alike = [n for n, other in names.items() if other.casefold() == name.casefold()]
        if len(alike) > 1:
            raise several(name, alike)


def _made(texts: dict[str, pa.Array], renamed: dict[str, str]) -> dict[str, pa.Array]:
    """With the columns that are made of several of the file, in the place of the first of them.
    Raises DS532 for columns that the file does not have."""
    for whole in renamed.values():
        parts = [there(part, list(texts)) for part in parts_of(whole, list(texts))]
        if len(parts) > 1:
            joined = texts_of(texts, parts, 0)
            texts = {
                whole if name == parts[0] else name: joined if name == parts[0] else column
                for name, column in texts.items()
                if name not in parts[1:]
            }
    return texts


def _in(texts: dict[str, pa.Array], column: str) -> str:
    return column if column in texts else there(column, list(texts))


def _no_rows(source: FileSource, sample: Sample) -> UsageError:
    if sample.left_out and not sample.rejects:
        name, why = next(iter(sample.left_out.items()))
        what = f"{source.name} has no column that has one type: not {name}, {why}"
        return UsageError("DS530", what, hint="declare the columns: CREATE STREAM ... (...)")
    what = f"{source.name} has no rows to infer types from"
    if not sample.rejects:
        return UsageError("DS530", what)
    first = sample.rejects[0]
    hint = ENCODINGS if NO_TEXT in first.reason else None
    return UsageError("DS530", f"{what}: line {first.line}: {first.reason}", hint=hint)


def _rejected(sample: Sample) -> list[str]:
    """What of the sample is no row."""
    if not (rejects := sample.rejects):
        return []
    many, first = len(rejects), rejects[0]
    said = f"{many:,} line{'s are no rows' if many > 1 else ' is no row'} of the sample: line "
    hint = f" ({ENCODINGS})" if NO_TEXT in first.reason else ""
    return [f"{said}{first.line}: {first.reason}{hint}"]


def _spelled(column: str) -> str:
    """A name that needs no quotes, if it can be."""
    if re.fullmatch(r"[^\W\d]\w*", column):
        return column
    name = re.sub(r"\W+", "_", column.strip()).strip("_") or "column"
    return f"_{name}" if name[0].isdigit() else name


def _needs_map(name: str, column: str) -> bool:
    return name.casefold() not in (column.strip().casefold(), plain_name(column))


def _days_and_times(sample: Sample, types: dict[str, str], time: str | None) -> dict[str, str]:
    """The columns that are DATEs or TIMEs: those that hold nothing else, but for event time, which
    needs instants."""
    found = {}
    for name, texts in sample.texts.items():
        sql = {"TIMESTAMP": "DATE", "STRING": "TIME"}.get(types[name])
        if sql is None or name == time or (sql == "TIME" and name in sample.types):
            continue
        there = texts.drop_null()
        if len(there) and not len(convert(there, sql)[1]):
            found[name] = sql
    return found


def _first_rows(sample: Sample) -> tuple[tuple[str, ...], ...]:
    columns = [column.slice(0, 3).fill_null("").to_pylist() for column in sample.texts.values()]
    return tuple(zip(*columns, strict=True))


def _dialect(source: FileSource, options: Options) -> tuple[Options, list[str]]:
    """What divides values and whether names come first, as far as nobody has said it."""
    import duckdb

    head = source.head(SAMPLE)
    source.judge(head[:8])
    delimiter = options.delimiter or ("\t" if source.kind == "tsv" else None)
    header = options.names is None
    if options.names == ():
        options = replace(options, names=_numbered(head, delimiter or delimiter_of(head)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample.csv")
        with open(path, "wb") as file:
            file.write(head[: head.rfind(b"\n") + 1] or head)
        try:
            with duckdb.connect() as database:
                found = database.execute(
                    "SELECT Delimiter, HasHeader, Columns FROM sniff_csv(?, sample_size = ?)",
                    [path, ROWS],
                ).fetchone()
        except duckdb.Error:
            found = None
    if delimiter is None:
        alone = found is None or len(found[2]) < 2 or len(found[0]) != 1
        delimiter = delimiter_of(head) if alone else found[0]  # type: ignore[index]
    notes = [] if delimiter in ",\t" else [f"values are divided by {delimiter!r}"]
    if header and not _names_first(head, delimiter, bool(found and found[1]), options):
        return replace(options, delimiter=delimiter, names=_numbered(head, delimiter)), [
            *notes,
            "no line of names: columns are c1, c2, ... (--names gives them)",
        ]
    return replace(options, delimiter=delimiter), notes


def _names_first(head: bytes, delimiter: str, sniffed: bool, options: Options) -> bool:
    """Whether the first line is one of names: none of them is a number or a time."""
    if options.header:
        return True
    first = head.partition(b"\n")[0].decode(errors="replace").strip().split(delimiter)
    texts = pa.array([cell.strip('"') for cell in first], pa.string())
    values = [
        kind
        for kind in ("FLOAT", "TIMESTAMP")
        if len(convert(texts, kind, options)[1]) < len(texts) - texts.null_count
    ]
    # the row names of pandas and R have no name, nor has what stands behind a last delimiter
    return not values and (sniffed or (all(first[1:-1]) and any(first)))


def _numbered(head: bytes, delimiter: str) -> tuple[str, ...]:
    first = re.sub(r'"[^"]*"', "", head.partition(b"\n")[0].decode(errors="replace").strip())
    if delimiter == " ":
        first = re.sub(" +", " ", first)
    return tuple(f"c{i}" for i in range(1, first.count(delimiter) + 2))


def _with_missing(sample: Sample, options: Options) -> tuple[Options, list[str]]:
    """Texts like NA, where all else in their column is of a type: NULL."""
    if not sample.guessed or options.nulls is not None:
        return options, []
    found: set[str] = set()
    for name, column in sample.texts.items():
        if name in sample.types:
            continue
        missing = pc.is_in(column, pa.array(MISSING))
        there = {text for text in pc.unique(column.filter(missing)).to_pylist() if text}
        if there and _type(name, column, options) == "STRING":
            rest = pc.if_else(missing, pa.scalar(None, pa.string()), column)
            if rest.null_count < len(rest) and _type(name, rest, options) != "STRING":
                found |= there
    if not found:
        return options, []
    texts = pa.array(sorted(found))
    sample.texts = {
        n: pc.if_else(pc.is_in(c, texts), pa.scalar(None, pa.string()), c)
        for n, c in sample.texts.items()
    }
    said = f"means NULL: {', '.join(sorted(found))}, beside an empty cell (--null says otherwise)"
    return replace(options, nulls=(*NULLS, *sorted(found))), [said]


def _type(name: str, texts: pa.Array, options: Options) -> str:
    """The first type that all these texts are of."""
    there = texts.drop_null()
    if not len(there):
        return "STRING"
    if pc.all(pc.match_substring_regex(there, _WORDS)).as_py():
        return "BOOL"
    padded = pc.any(pc.match_substring_regex(there, _PADDED)).as_py()
    for kind in ("INT", "FLOAT"):
        if not padded and not len(convert(there, kind, options)[1]):
            return kind
    plain = replace(options, unit=None)
    if not len(convert(there, "TIMESTAMP", plain)[1]) or len(times.guess(there)) == 1:
        return "TIMESTAMP"
    return "STRING"
