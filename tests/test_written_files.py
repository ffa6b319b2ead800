"""What the shell and `dsms` write is read back to equal rows: every type, every value, every form
that is data."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsms.tabular.names import unique
from dsms.tabular.tables import to_edge
from dsms_client.columns import batch_to_rows, rows_to_batch
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource
from dsms_client.results import Data
from dsms_client.shell import show
from tests.effort import examples
from tests.listed import LISTS

Columns = Sequence[tuple[str, str]]
Rows = list[tuple[Any, ...]]
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
TRAPS = [
    *(
        "",
        " ",
        "NULL",
        "null",
        "\\N",
        "\\n",
        '"',
        '""',
        ",",
        "a,b",
        "\n",
        "\r",
        "\r\n",
        "\t",
        " a",
        "a ",
        "\0",
        "NaN",
    ),
    *(
        "\ufeff",
        "\\x00",
        "\u2028",
        "\x85",
        "\U0001f600",
        "'",
        "-",
        "1",
        "true",
        "#",
        "\n\n",
        ',"\n',
        "{}",
    ),
]
TEXT = st.one_of(
    st.sampled_from(TRAPS), st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
)
INT64 = st.one_of(
    st.sampled_from([0, -1, 2**63 - 1, -(2**63), 2**53 + 1]), st.integers(-(2**63), 2**63 - 1)
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOL": st.booleans(),
    "INT": INT64,
    "FLOAT": st.one_of(
        st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 0.1, 1e16, 1e22]),
        st.floats(),
    ),
    "DECIMAL(20,2)": st.decimals(-(10**17), 10**17, places=2).map(lambda d: f"{d:.2f}"),
    "DECIMAL(38,10)": st.decimals(-(10**27), 10**27, places=10, allow_nan=False).map(
        lambda d: f"{d:.10f}"
    ),
    "STRING": TEXT,
    "BYTES": st.one_of(
        st.sampled_from([b"", b"\0", b"NULL", b"\\x41", b"\xff\xfe"]), st.binary(max_size=8)
    ),
    "TIMESTAMP": st.one_of(
        st.sampled_from([FIRST, LAST, -1, 0, 999_999]), st.integers(FIRST, LAST)
    ),
    "INTERVAL": st.one_of(st.sampled_from([0, -1, -93_600_000_000, 2**63 - 1, -(2**63)]), INT64),
    **{f"LIST({item})": values for item, values in LISTS.items()},
}
NAMES = [
    "k",
    "K",
    "a b",
    " a",
    'q"q',
    "a,b",
    "NULL",
    "",
    "\ufeffk",
    "line\nbreak",
    "ünïcode",
    "$at",
]


@st.composite
def tables(draw: Any) -> tuple[Columns, Rows]:
    kinds = draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=4))
    names = draw(st.permutations(NAMES))[: len(kinds)]
    row = st.tuples(*(st.one_of(st.none(), VALUES[kind]) for kind in kinds))
    return list(zip(names, kinds, strict=True)), draw(st.lists(row, max_size=6))


def as_lines(form: Callable[..., Any]) -> Callable[[Columns, Rows], bytes]:
    def write(columns: Columns, rows: Rows) -> bytes:
        names, types = [n for n, _ in columns], [t for _, t in columns]
        return "".join(line + "\n" for line in form(names, types, rows)).encode()

    return write


def as_parquet(columns: Columns, rows: Rows) -> bytes:
    """As a user writes what a client has got."""
    data = Data(tuple(n for n, _ in columns), tuple(t for _, t in columns), rows)
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(data.table(), sink)
    return sink.getvalue().to_pybytes()


def as_arrow(make: Callable[..., Any]) -> Callable[[Columns, Rows], bytes]:
    def write(columns: Columns, rows: Rows) -> bytes:
        data = Data(tuple(n for n, _ in columns), tuple(t for _, t in columns), rows)
        sink, table = pa.BufferOutputStream(), data.table()
        with make(sink, table.schema) as made:
            made.write_table(table, 2)
        return sink.getvalue().to_pybytes()

    return write


def as_export(columns: Columns, rows: Rows) -> bytes:
    """As `dsms archive export` writes CSV."""
    export = pytest.importorskip("dsms_spark.export")
    names, types = [n for n, _ in columns], [t for _, t in columns]
    batch = to_edge(rows_to_batch(rows, names, types), types).combine_chunks().to_batches()
    schema = to_edge(rows_to_batch([], names, types), types).schema
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "a.csv")
        with export._writer(target, "csv", schema) as write:
            for piece in batch:
                write(export._edge(piece, schema, "csv"))
        with open(target, "rb") as made:
            return made.read()


WRITERS = {
    "csv": as_lines(show.as_csv),
    "jsonl": as_lines(show.as_json),
    "parquet": as_parquet,
    "arrow": as_arrow(pa.ipc.new_file),
    "arrows": as_arrow(pa.ipc.new_stream),
    "export.csv": as_export,
}


def loaded(data: bytes, form: str, columns: Columns, **options: Any) -> Rows:
    """The rows that `dsms load` sends; none may be rejected."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"a.{form}")
        with open(path, "wb") as out:
            out.write(data)
        _, pieces = read(FileSource(path), list(columns), {}, Options(**options))
        rows: Rows = []
        for piece in pieces:
            assert piece.rejects == [] and piece.empty == 0
            rows += batch_to_rows(piece.batch)
    return rows


def shown(rows: Rows) -> list[list[str]]:
    """Rows to compare: -0.0 is not 0.0 here, and NaN equals itself."""
    return [[repr(value) for value in row] for row in rows]


@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=examples(60), deadline=None)
@given(tables())
@example(([("a", "STRING")], [(None,), ("",), ("NULL",), ("\\N",), (None,)]))
@example(([("a", "INT"), ("b", "STRING")], [(None, None), (1, ""), (None, None)]))
@example(([("a", "INTERVAL")], [(-93_600_000_000,), (-1,), (None,)]))
@example(([("a", "FLOAT")], [(math.inf,), (-math.inf,), (math.nan,), (-0.0,), (5e-324,)]))
@example(([("\ufeffk", "INT"), ("k", "INT")], [(1, 2)]))
@example(([("a", "LIST(DECIMAL(38,38))")], [(f"[0.{'9' * 38}, null]",), ("[]",), (None,)]))
def test_what_is_written_is_read_back(form: str, table: tuple[Columns, Rows]) -> None:
    columns, rows = table
    assert shown(loaded(WRITERS[form](columns, rows), form, columns)) == shown(rows)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from(["k", "K", "k_1", "k_2", ""]), min_size=1, max_size=6), st.data())
def test_columns_of_one_name_are_all_there(form: str, names: list[str], data: Any) -> None:
    rows = data.draw(st.lists(st.tuples(*(INT64 for _ in names)), min_size=1, max_size=3))
    columns = [(name, "INT") for name in names]
    told = [(name, "INT") for name in unique(names)]
    assert loaded(WRITERS[form](columns, rows), form, told) == rows


def test_names_are_made_unique_by_one_rule() -> None:
    assert unique(("k", "v", "k", "k")) == ("k", "v", "k_1", "k_2")
    assert unique(("k", "k", "k_1", "k")) == ("k", "k_2", "k_1", "k_3")
    assert unique(()) == ()
