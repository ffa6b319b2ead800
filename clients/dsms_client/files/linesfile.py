"""Lines of text that a regular expression takes apart: logs of web servers, or whatever --pattern
describes.  Its named groups are the columns; a group that took no part, and `-`, mean NULL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms_client.files.blocks import blocks
from dsms_client.files.csvfile import BLOCK
from dsms_client.files.garbled import decoded_lines
from dsms_client.files.guess import APACHE
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, Reject, map_columns, typed
from dsms_client.files.source import BOM, FileSource

TIME = "%d/%b/%Y:%H:%M:%S %z"  # of web servers
REQUEST = r"^(?P<method>[A-Za-z]+) (?P<path>.*?)(?: (?P<protocol>HTTP/[0-9.]+))?$"
DERIVED = ("method", "path", "protocol")  # from `request`
TYPES = {"time": "TIMESTAMP", "status": "INT", "bytes": "INT"}


def names_of(options: Options, kind: str) -> list[str]:
    """The columns of such lines.  Raises DS530 for a pattern that is none."""
    names = list(re.findall(r"\(\?P?<(\w+)>", pattern_of(options, kind)))
    return [*names, *DERIVED] if kind == "apache" else names


def pattern_of(options: Options, kind: str) -> str:
    """The regular expression.  Raises DS530."""
    pattern = APACHE if kind == "apache" else options.pattern
    if pattern is None:
        raise UsageError(
            "DS530",
            "nothing says what the lines look like",
            hint="give --pattern '(?P<name>...)', a regular expression with named groups",
        )
    pattern = re.sub(r"\(\?<(?=\w+>)", "(?P<", pattern)
    try:
        pc.extract_regex(pa.array([""]), pattern)
    except pa.ArrowException as problem:
        raise UsageError("DS530", f"the pattern cannot be used: {problem}") from None
    return pattern


def read(
    source: FileSource, columns: Sequence[Column], renamed: dict[str, str], options: Options
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces.  Raises DS530, DS532."""
    if source.kind == "apache" and not options.time_formats:
        options = replace(options, time_formats=(TIME,))
    pattern, names = pattern_of(options, source.kind), names_of(options, source.kind)
    mapping = replace(map_columns(names, columns, renamed), options=options)
    return mapping, _pieces(source, mapping, pattern)


def _pieces(source: FileSource, mapping: Mapping, pattern: str) -> Pieces:
    line = 1
    with source.binary() as stream:
        for block in blocks(stream, BLOCK, None, source.name):
            if line == 1:
                source.judge(block[:8])
                block = block.removeprefix(BOM)
            texts = decoded_lines(block)
            piece = _piece(source, texts, line, mapping, pattern)
            piece.done = source.position()
            line += len(texts)
            yield piece


def _piece(
    source: FileSource, texts: pa.Array, first: int, mapping: Mapping, pattern: str
) -> Piece:
    found = pc.extract_regex(texts, pattern)
    good = np.asarray(found.is_valid())
    empty = ~good & np.asarray(pc.equal(pc.utf8_trim_whitespace(texts), ""))
    wrong = np.flatnonzero(~good & ~empty)
    what = "not a line of such a log" if source.kind == "apache" else "the pattern does not match"
    rejects = [Reject(first + int(at), what, texts[int(at)].as_py()) for at in wrong]
    lines = np.flatnonzero(good)
    found = found.filter(pa.array(good))
    cells = {name: found.field(name) for name in (f.name for f in found.type)}
    if source.kind == "apache":
        cells |= _request(cells["request"])
    values = {name: _nulls(cells[name], mapping.options) for name in mapping.used}
    batch, kept, untyped = typed(values, lines + first, mapping)
    whole = {line: texts[line - first].as_py() for line in (r.line for r in untyped)}
    untyped = [replace(reject, text=whole[reject.line]) for reject in untyped]
    rejects = sorted([*rejects, *untyped], key=lambda reject: reject.line)
    return Piece(batch, kept, rejects, 0, int(empty.sum()))


def _request(request: pa.Array) -> dict[str, pa.Array]:
    """Method, path and protocol of a request, as far as it is one."""
    found = pc.extract_regex(request, REQUEST)
    return {name: found.field(name) for name in DERIVED}


def _nulls(column: pa.Array, options: Options) -> pa.Array:
    nulls = ("", "-") if options.nulls is None else options.nulls
    missing = pc.is_in(column, pa.array(nulls, pa.string()))
    return pc.if_else(missing, pa.scalar(None, pa.string()), column)
