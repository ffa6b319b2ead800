"""dsms dump, dsms restore: what was declared in one server is declared in another."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms_client import literals
from dsms_client.cli import main
from tests.effort import examples
from tests.server.harness import Running

FOLDERS = sorted((Path(__file__).parent.parent / "folders").glob("*.tar.xz"))
DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR;
CREATE TABLE "T x" (k STRING PRIMARY KEY, n INT);
CREATE QUERY q AS SELECT s.k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY s.k;
CREATE ROLE crew WITH (queries = 2); CREATE USER ann PASSWORD 'correct horse battery';
GRANT crew TO ann; GRANT SELECT ON s TO crew WHERE v > 1;
"""


def ran(server: Running, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command at that server."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--port", str(server.port)])
    return code, out.getvalue(), err.getvalue()


def told(engine: Engine, *statements: str) -> list[Any]:
    return [engine.execute(text)[-1].data.to_pylist() for text in statements]  # type: ignore[union-attr]


def moved(serve: Callable[..., Running], before: Engine, place: Path) -> tuple[Engine, str, str]:
    """A fresh engine in which the dump of another was run; the dump, and what restore said."""
    code, text, _ = ran(serve(before), "dump", "--tables")
    assert code == 0
    place.write_bytes(text.encode())
    after = Engine(str(place.parent / "moved"))
    code, said, complaints = ran(serve(after), "restore", str(place))
    assert code == 0, complaints
    assert all(line.startswith("NOTE: ") for line in complaints.splitlines())
    return after, text, said


def test_all_is_there_again(serve: Any, tmp_path: Path) -> None:
    before = Engine()
    before.execute(DECLARED)
    before.execute("INSERT INTO \"T x\" VALUES ('it''s\r\n;--', 1), ('', NULL)")
    after, text, said = moved(serve, before, tmp_path / "all.sql")
    assert "correct horse" not in text
    assert "-- Passwords and tokens can't be read back." in text
    assert re.fullmatch(
        r"user ann created; its token, which is shown this once: \S+\n"
        r"restored: 1 role, 1 user, 1 stream, 1 table, 1 query\n",
        said,
        re.DOTALL,
    ), said
    shown = ("SHOW CREATE ALL", "SHOW GRANTS", 'SELECT * FROM "T x"', 'DESCRIBE "T x"')
    assert told(after, *shown) == told(before, *shown)


def test_without_tables_no_rows_are_there(serve: Any) -> None:
    before = Engine()
    before.execute(DECLARED + "INSERT INTO \"T x\" VALUES ('a', 1)")
    assert "INSERT" not in ran(serve(before), "dump")[1]


def test_one_that_fails_is_told_with_its_place(serve: Any, tmp_path: Path) -> None:
    place = tmp_path / "all.sql"
    place.write_text("-- a note\nCREATE TABLE t (a INT);\nCREATE TABLE t (a INT);\n")
    code, out, err = ran(serve(Engine()), "restore", str(place))
    assert (code, out) == (1, "")
    assert err.startswith("QueryError DS213 at line 3, column 14")
    assert err.endswith("1 of 2 statements ran before that\n")
    assert ran(serve(Engine()), "restore", str(tmp_path / "none.sql"))[0] == 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name.partition(".")[0])
def test_what_stands_in_older_folders_can_be_moved(
    serve: Any, tmp_path: Path, folder: Path
) -> None:
    with tarfile.open(folder) as tar:
        tar.extractall(tmp_path, filter="data")
    before = Engine(str(tmp_path / "stopped"))
    after, _, _ = moved(serve, before, tmp_path / "all.sql")
    made, said = (told(e, "SHOW CREATE ALL")[0] for e in (after, before))
    statements = {line["statement"] for line in said}
    assert {line["statement"] for line in made} == {s for s in statements if s[:2] != "--"}
    for line in told(before, "SHOW TABLES")[0]:
        rows = [
            told(e, f"SELECT * FROM {literals.name(line['table'])}")[0] for e in (before, after)
        ]
        assert sorted(map(str, rows[0])) == sorted(map(str, rows[1]))


VALUES = {
    "INT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(),
    "DECIMAL(8,3)": st.decimals(-9999, 9999, places=3).map(lambda d: f"{d:.3f}"),
    "STRING": st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    "BYTES": st.binary(max_size=5),
    "BOOL": st.booleans(),
    "TIMESTAMP": st.integers(-62135596800000000, 253402300799999999),
    "INTERVAL": st.integers(-(2**61), 2**61),
}


@settings(max_examples=examples(120), deadline=None)
@given(st.tuples(*(st.none() | values for values in VALUES.values())))
def test_any_value_reads_back(values: tuple[Any, ...]) -> None:
    engine = Engine()
    columns = ", ".join(f"c{n} {sql}" for n, sql in enumerate(VALUES))
    engine.execute(f"CREATE TABLE t ({columns})")
    text = literals.row(values, tuple(VALUES))
    engine.execute(f"INSERT INTO t VALUES {text}")
    (found,) = told(engine, "SELECT * FROM t")[0]
    back = [f"{v:.3f}" if isinstance(v, Decimal) else v for v in found.values()]
    assert list(map(repr, back)) == list(map(repr, values))
