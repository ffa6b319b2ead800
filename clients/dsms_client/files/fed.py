"""Streams that queries feed, in a dump with rows: they are made as streams of their own, get the
rows that they keep and stand where their clock stood; then come their queries, whose results up to
there are late, and only then the rows that these read.  So nothing is there twice, and nothing is
made anew of windows that lack rows.

Of two such streams the one whose queries read the other comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dsms.lengths import interval_of
from dsms_client import literals

FEED = "_feed"  # behind the name of a stream AS SELECT: its query
MADE = ("stream", "table", "query", "role", "user")
_FUTURE = re.compile(r"MAX FUTURE ((?:\d+ \w+ ?)+?)(?= [A-Z]{2}|$)")  # as SHOW CREATE says it
_WORD = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^\W\d]\w*|\s+|\d[\w.]*|.", re.DOTALL)


@dataclass(slots=True)
class Made:
    """Something declared: its `statement`, and what stands `behind` it (comments, rows of tables).
    `feeds`: the stream, in small letters; `alone`: of a stream AS SELECT the statements without and
    with its query."""

    kind: str
    name: str
    statement: str
    behind: list[str] = field(default_factory=list)
    feeds: str | None = None
    alone: tuple[str, str] | None = None

    @property
    def texts(self) -> list[str]:
        made = not self.statement.startswith("--")
        return [f"{self.statement};" if made else self.statement, *self.behind]

    @property
    def words(self) -> set[str]:
        """The names that it may name, in small letters."""
        return {plain(w) for w in _WORD.findall(self.statement) if w[0] == '"' or w[0].isalpha()}


def plain(word: str) -> str:
    return (word[1:-1].replace('""', '"') if word[0] == '"' else word).casefold()


def read(made: Made, columns: Mapping[str, Sequence[tuple[str, str]]], timed: set[str]) -> Made:
    """The same, with what it feeds.  `columns` of all streams; `timed`: those whose rows have their
    instant in a column."""
    words = [w for w in _WORD.findall(made.statement) if not w.isspace()]
    if made.kind == "query" and [w.upper() for w in words[3:6]] == ["AS", "INSERT", "INTO"]:
        made.feeds = plain(words[6])
    elif made.kind == "stream" and words[3:4] != ["("] and made.name in timed:
        made.alone = _divided(made.statement, made.name, columns[made.name])
        made.feeds = made.name.casefold() if made.alone is not None else None
    return made


def _divided(
    statement: str, name: str, columns: Sequence[tuple[str, str]]
) -> tuple[str, str] | None:
    """``CREATE STREAM name clauses WITH (...) AS select``: a stream, and a query that feeds it."""
    parts, depth, found = ["", "", ""], 0, 0  # clauses, options, select
    for word in _WORD.findall(statement)[5:]:  # behind CREATE STREAM name
        upper = word.upper() if depth == 0 and found < 2 else ""
        if upper in ("WITH", "AS"):
            found = {"WITH": 1, "AS": 2}[upper]
            continue
        depth += (word in "([") - (word in ")]")
        parts[found] += word
    clauses, options, select = (part.strip() for part in parts)
    if not select:
        return None
    given = _options(options)
    own = [one for one in given if one.startswith("description")]
    told = [one for one in given if one not in own]
    quoted = literals.name(name)
    named = ", ".join(f"{literals.name(column)} {sql}" for column, sql in columns)
    stream = f"CREATE STREAM {quoted} ({named}) {clauses}{_with(own)}"
    query = (
        f"CREATE QUERY {literals.name(name + FEED)} AS INSERT INTO {quoted} {select}{_with(told)}"
    )
    return stream, query


def _options(text: str) -> list[str]:
    """Those of ``(name = value, ...)``."""
    found = [""]
    for word in _WORD.findall(text[1:-1]):
        if word == ",":
            found.append("")
        else:
            found[-1] += word
    return [one.strip() for one in found if one.strip()]


def _with(options: Sequence[str]) -> str:
    return f" WITH ({', '.join(options)})" if options else ""


def furthest(made: Made) -> int | None:
    """MAX FUTURE of a stream, µs; None: it has none."""
    clauses = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "''", made.statement)
    said = _FUTURE.search(clauses)
    return None if said is None else interval_of(said[1])


def sources(made: Sequence[Made], stream: str, moved: set[str]) -> set[str]:
    """The streams (in small letters) of whose rows those of that one are made again, by queries:
    as far as streams are not `moved`, which get their own rows back."""
    streams = {m.name.casefold() for m in made if m.kind == "stream"}
    makers = {m.name.casefold(): m.words for m in made if m.kind in ("stream", "query")}
    found, left = set[str](), [stream]
    while left:
        one = left.pop()
        words = makers.get(one, set()).union(*(m.words for m in made if m.feeds == one))
        more = words & makers.keys() - found
        found |= more
        left += more - moved
    return found & streams


@dataclass(slots=True)
class Arranged:
    """`first` are statements before all rows; `then`, for each of these streams, those behind its
    rows, downstream ones first; `last` says who may do what with all that."""

    first: list[str]
    then: dict[str, list[str]]
    last: list[str]


def movable(made: Sequence[Made], timed: set[str], stamped: set[str]) -> set[str]:
    """The streams (in small letters) that get their rows back: those that queries feed, with an
    instant in a column, unless what feeds them rests on rows that are stamped anew."""
    fed = {m.feeds for m in made if m.feeds is not None}
    unsure = set(stamped)
    while True:
        more = {m.feeds for m in made if m.feeds in fed and m.words & unsure} - unsure
        if not more:
            break
        unsure |= {feeds for feeds in more if feeds is not None}
    return {name for name in fed if name is not None} & {t.casefold() for t in timed} - unsure


def arranged(made: Sequence[Made], moved: set[str]) -> Arranged:
    """All statements, so that these streams get their rows back."""
    feeders: dict[str, list[Made]] = {name: [] for name in moved}
    first: list[Made] = []
    last: list[Made] = []
    behind: set[str] = set()  # names of queries that wait for rows
    for one in made:
        if one.alone is not None and one.feeds in moved:
            stream, query = one.alone
            first.append(Made("stream", one.name, stream, one.behind))
            one = Made("query", one.name + FEED, query, feeds=one.feeds)
        needed = one.kind == "query" and one.words & behind
        if one.feeds in moved or needed:
            home = one.feeds if one.feeds in moved else _home(feeders, one)
            feeders[str(home)].append(one)
            behind.add(one.name.casefold())
        else:
            (first if one.kind in MADE else last).append(one)
    order = _order(feeders)
    then = {name: [t for m in feeders[name] for t in m.texts] for name in order}
    texts = ([text for one in part for text in one.texts] for part in (first, last))
    return Arranged(next(texts), then, next(texts))


def _home(feeders: dict[str, list[Made]], one: Made) -> str:
    """The stream behind whose rows come the queries that it reads: of several the last."""
    return [n for n, them in feeders.items() if any(m.name.casefold() in one.words for m in them)][
        -1
    ]


def _order(feeders: dict[str, list[Made]]) -> list[str]:
    """A stream before those that its queries read."""
    done: list[str] = []

    def visit(name: str, above: frozenset[str]) -> Iterator[str]:
        for one in feeders[name]:
            for other in sorted(one.words & feeders.keys() - above - {name}):
                if other not in done:
                    yield from visit(other, above | {name})
        if name not in done:
            done.append(name)
            yield name

    found = [name for start in sorted(feeders) for name in visit(start, frozenset())]
    return found[::-1]
