"""Sealed sub-windows come back as they were, mapped; damaged files are named."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.sql.types import INT, STRING, Field
from dsms.state.batch import Batch
from dsms.storage.files import RealFiles
from dsms.storage.segments import load, seal
from tests.faults.simfiles import SimFiles
from tests.physical import TYPES, columns

SCHEMA = (Field("v", INT), Field("k", STRING))


def batch(cols: tuple[pa.Array, ...]) -> Batch:
    n = len(cols[0])
    return Batch(np.arange(n) * 10 - 5, None, None, (np.arange(n) + 1000,), cols)


def some(n: int = 1000) -> Batch:
    return batch(
        (pa.array(range(n)), pa.array([None if i % 7 == 0 else f"word {i}" for i in range(n)]))
    )


@given(st.data(), TYPES)
def test_rows_of_every_type_come_back(data, types):
    rows = batch(data.draw(columns(types)))
    cut = data.draw(st.integers(0, len(rows)))
    rows, files = rows.slice(cut, len(rows)), SimFiles()
    made = seal(files, "/1.arrow", rows)
    schema = tuple(Field(f"c{i}", t) for i, t in enumerate(types))
    back = load(files, "/1.arrow", schema, verify=True)
    assert back.cols == rows.cols and back.ts.tolist() == rows.ts.tolist()
    assert [i.tolist() for i in back.ids] == [i.tolist() for i in rows.ids]
    assert (made.rows, made.bytes) == (len(rows), files.size("/1.arrow"))
    if len(rows):
        assert (made.first, made.last) == (rows.ts[0], rows.ts[-1])


def test_arrays_are_where_the_file_is_mapped_and_outlive_its_name(tmp_path):
    files, path, rows = RealFiles(), str(tmp_path / "1.arrow"), some(100_000)
    seal(files, path, rows)
    before = pa.total_allocated_bytes()
    back = load(files, path, SCHEMA)
    assert pa.total_allocated_bytes() - before < 10_000
    assert back.ts.flags.aligned and not back.ts.flags.owndata and not back.ts.flags.writeable
    files.remove(path)
    assert back.cols == rows.cols and (back.ts == rows.ts).all()


def test_a_slice_leaves_the_rest_behind():
    files = SimFiles()
    assert seal(files, "/1.arrow", some(50_000).slice(40_000, 40_010)).bytes < 2000


def test_another_schema_is_damage():
    files = SimFiles()
    seal(files, "/1.arrow", some())
    with pytest.raises(
        UsageError, match=r"DS554: /1\.arrow is damaged: its columns are not those of the stream"
    ):
        load(files, "/1.arrow", SCHEMA[::-1])


def test_a_missing_file_is_named():
    with pytest.raises(UsageError, match=r"DS553: /1\.arrow: it is missing"):
        load(SimFiles(), "/1.arrow", SCHEMA)


@given(st.data())
def test_a_file_cut_anywhere_is_named(data):
    files = SimFiles()
    made = seal(files, "/1.arrow", some(20))
    cut = data.draw(st.integers(0, made.bytes - 1))
    files.damage("/1.arrow", lambda held: held.__delitem__(slice(cut, None)))
    with pytest.raises(UsageError, match=r"DS554: /1\.arrow is damaged"):
        load(files, "/1.arrow", SCHEMA, verify=data.draw(st.booleans()) or cut >= made.bytes - 8)


@given(st.data())
def test_a_flipped_bit_is_found_on_request(data):
    files = SimFiles()
    made = seal(files, "/1.arrow", some(20))
    place, bit = data.draw(st.integers(0, made.bytes - 1)), data.draw(st.integers(0, 7))
    files.names["/1.arrow"].data[place] ^= 1 << bit
    with pytest.raises(UsageError, match=r"DS554: /1\.arrow is damaged: its checksum"):
        load(files, "/1.arrow", SCHEMA, verify=True)


def test_a_full_disk_leaves_no_file(tmp_path):
    files = SimFiles()
    files.plan.room = 100
    with pytest.raises(UsageError, match="DS550"):
        seal(files, "/1.arrow", some())
    assert not files.exists("/1.arrow")
