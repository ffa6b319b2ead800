"""Whatever goes in row by row goes in by one call: rows are cut to frames by their bytes, too."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms_client import connect
from dsms_client.outgoing import BYTES_PER_FRAME, Packed, frame_bytes, frames_of
from dsms_client.pieces import pieces

LIMIT = 100_000  # bytes of a frame
# rows of 5 KB, behind many that have nothing, before some that fill a frame each
TEXTS = [""] * 900 + ["x" * 5_000] * 100 + ["y" * (LIMIT - 1_000)] * 2 + [None, "z"]
COLUMNS = {"k": list(range(len(TEXTS))), "a": TEXTS}
TABLE = pa.table(COLUMNS)
DICTIONARY = pa.table({"k": COLUMNS["k"], "a": pa.array(TEXTS).dictionary_encode()})
DISTINCT = [f"{n:05d}" * 1_000 for n in range(len(TEXTS))]
LARGE = pa.table({"k": COLUMNS["k"], "a": pa.array(DISTINCT).dictionary_encode()})

FORMS: dict[str, Callable[[], Any]] = {
    "rows": lambda: list(zip(*COLUMNS.values(), strict=True)),
    "rows of names": lambda: [{"k": k, "a": a} for k, a in zip(*COLUMNS.values(), strict=True)],
    "columns": lambda: {"k": [0.0, *COLUMNS["k"][1:]], "a": TEXTS},
    "objects": lambda: {"k": [*COLUMNS["k"][:-1], Decimal(7)], "a": TEXTS},
    "arrow": lambda: TABLE,
    "chunks": lambda: pa.concat_tables([TABLE.slice(0, 950), TABLE.slice(950)]),
    "a dictionary": lambda: DICTIONARY,
    "views": lambda: TABLE.cast(pa.schema([("k", pa.int64()), ("a", pa.string_view())])),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_call_takes_what_its_rows_take(serve, form):
    running = serve(Engine(), max_frame=LIMIT)
    with connect(port=running.port, client="w") as client:
        for name in ("s", "t"):
            client.execute(f"CREATE STREAM {name} (k INT, a STRING)")
        data = FORMS[form]()
        one = client.ingest("s", data)
        assert (one.accepted, one.refused) == (len(TEXTS), 0)
        assert client.ingest("s", data).accepted == len(TEXTS)  # numbers go on
        assert client.ingest("t", [[1, "a"]]).accepted == 1


@pytest.mark.parametrize("size", [1, 10_000, 100_000, BYTES_PER_FRAME])
@pytest.mark.parametrize("form", FORMS)
def test_frames_of_several_rows_have_their_size(form, size):
    total = 0
    for field, rows in frames_of(FORMS[form](), size=size):
        (value,) = field.values()
        assert rows == 1 or len(value.data if isinstance(value, Packed) else value) <= size
        total += rows
    assert total == len(TEXTS)


def test_a_row_that_no_frame_can_hold_has_its_code_and_the_others_go_in(serve):
    running = serve(Engine(), max_frame=LIMIT)
    with connect(port=running.port) as client:
        client.execute("CREATE STREAM s (a STRING) RETAIN 1 DAY")
        with pytest.raises(UsageError, match=r"DS601: a frame of \d+ bytes is over the limit"):
            client.ingest("s", [["x"], ["y" * 2 * LIMIT], ["z"]])
        assert client.query("SELECT a FROM s [RANGE 1 DAY]").rows == [("x",), ("z",)]
        assert client.ingest("s", [["x"]]).accepted == 1


def test_a_large_dictionary_does_not_go_with_each_piece():
    sent = [(pa.ipc.open_stream(blob).read_all(), rows) for blob, rows in pieces(LARGE, LIMIT)]
    assert pa.concat_tables([t.cast(TABLE.schema) for t, _ in sent])["a"].to_pylist() == DISTINCT
    assert max(table.nbytes for table, _ in sent) < 2 * LIMIT


def test_a_short_dictionary_that_stands_for_much_is_cut():
    rows = 1 << 17
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), ["x" * 1_000])
    counts = [rows for _, rows in pieces(pa.table({"a": column}), BYTES_PER_FRAME)]
    assert sum(counts) == rows and max(counts) <= (32 << 20) // 1_000


def test_a_frame_leaves_room_for_its_head():
    assert frame_bytes(None) == frame_bytes(64 << 20) == BYTES_PER_FRAME
    assert [frame_bytes(size) for size in (10, 1_000, 100_000)] == [5, 500, 95_904]
