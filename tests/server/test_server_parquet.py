"""Files of typed columns: a value that is none of its column's type refuses its row, no other."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine


@pytest.fixture
def server(serve):
    return serve(Engine())


TEXTS = pa.dictionary(pa.int32(), pa.string())
MISFITS = [  # the type, three values of which the second is none of it, and the others as they come
    ("TIMESTAMP", ["2020-01-01", "bad", "2020-01-02"], pa.string(), None),
    ("INTERVAL", ["1 h", "bad", "2 s"], pa.string(), ["1 h", "2 s"]),
    ("INTERVAL", ["1 h", "5", "2 s"], TEXTS, ["1 h", "2 s"]),
    ("DECIMAL(5,2)", ["1.5", "bad", "-2"], pa.large_string(), ["1.50", "-2.00"]),
    ("DECIMAL(5,2)", ["1.5", "1.005", "-2"], TEXTS, ["1.50", "-2.00"]),
    ("DECIMAL(5,2)", [1, 1000, -2], pa.int64(), ["1.00", "-2.00"]),
    ("DECIMAL(5,2)", [1, 2**64 - 1, 2], pa.uint64(), ["1.00", "2.00"]),
    ("DECIMAL(5,2)", [1, Decimal("0.005"), 2], pa.decimal128(9, 3), ["1.00", "2.00"]),
    ("INT", [1.0, 1.5, None], pa.float64(), ["1", ""]),
    ("INT", [1, 2**63, 2], pa.uint64(), ["1", "2"]),
    ("INT", [1, Decimal("1.5"), 2], pa.decimal128(3, 1), ["1", "2"]),
    ("LIST(INT)", ["[1]", "bad", "[]"], pa.string(), ["[1]", "[]"]),
    ("LIST(INT)", [[1.0], [1.5], []], pa.list_(pa.float64()), ["[1]", "[]"]),
    ("LIST(INTERVAL)", [["1 h"], ["1 h", "bad"], None], pa.list_(pa.string()), None),
    ("LIST(DECIMAL(3,1))", [["1"], ["x"], None], pa.list_(pa.string()), ["[1.0]", ""]),
]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize(("sql", "values", "kind", "written"), MISFITS)
def test_a_value_of_parquet_refuses_its_row_alone(
    dsms, tmp_path, ending, sql, values, kind, written
):
    """But for TIMESTAMP and FLOAT it refused the whole frame."""
    path, rejects = tmp_path / f"a.{ending}", tmp_path / "rejects.csv"
    table = pa.table({"x": pa.array(values, kind), "i": [1, 2, 3]})
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table)
    assert dsms("shell", "-c", f"CREATE TABLE typed (i INT, x {sql})")[0] == 0
    code, _, err = dsms("load", str(path), "--table", "typed", "--rejects", str(rejects))
    assert code == 1, err
    assert "2 rows accepted" in err and "1 lines rejected" in err
    assert rejects.read_text().splitlines()[1].startswith("2,")
    _, out, _ = dsms("shell", "--format", "csv", "-c", "SELECT i, x FROM typed")
    rows = [line.split(",", 1) for line in out.splitlines()[1:]]
    assert [i for i, _ in rows] == ["1", "3"]
    assert written is None or [x for _, x in rows] == written


def test_a_column_of_parquet_of_another_kind_is_refused_whole(dsms, tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"x": ["1", "2"]}), path)
    assert dsms("shell", "-c", "CREATE TABLE typed (x INT)")[0] == 0
    code, _, err = dsms("load", str(path), "--table", "typed")
    assert code == 2 and "DS503" in err and "text is not taken for INT" in err
