"""What a server's process, and each command, load: no more than they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dsms_server import lean

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "numpy",
    "pyarrow",
    "numba",
    "duckdb",
    "pandas",
    "lark",
    "aiohttp",
    "rich",
    "prompt_toolkit",
    "dsms.engine",
)

# A command, then which of the packages it has loaded.
COMMAND = """
import io, sys
from contextlib import redirect_stderr, redirect_stdout
from dsms_client.cli import main
said = io.StringIO()
with redirect_stderr(said), redirect_stdout(said):
    try:
        code = main(sys.argv[2:])
    except SystemExit as end:
        code = end.code
print(code, [m for m in sys.argv[1].split(",") if m in sys.modules])
"""

# An engine as a server has it, which meets lists of Python, a one-time query of columns, and one of
# its cells.
SERVER = """
import os, sys, threading
from dsms_server import lean
lean.load_arrow()
from dsms.engine import Engine
import dsms_server.server
import pyarrow as pa
engine = Engine()
engine.execute("CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
engine.ingest("s", {"k": ["a", None], "v": [1, 2], "t": [1, 2]})
found = engine.execute("SELECT k, SUM(v) FROM s [RANGE 1 h] GROUP BY k ORDER BY k")[0]
assert "duckdb" in sys.modules, "the query is to show that DuckDB loads it neither"
print(pa.array([1.0, None]).null_count, "pandas" in sys.modules, os.environ["OPENBLAS_NUM_THREADS"])
"""


def _child(code: str, *args: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["serve", "--help"], 0),
        (["serve", "--data", "/dev/null/data"], 2),  # DS543
        (["serve", "--max-frame", "0"], 2),
        (["warmup", "--help"], 0),
        (["shell", "--help"], 0),
        (["shell", "--port", "1", "--wait", "0", "-c", "SELECT 1"], 2),
    ],
)
def test_what_a_command_says_at_once_loads_nothing_heavy(args, code):
    assert _child(COMMAND, ",".join(HEAVY), *args) == f"{code} []"


def test_a_server_loads_no_pandas_and_starts_no_threads_for_matrices():
    pytest.importorskip("pandas")
    assert _child(SERVER) == "1 False 1"


def test_an_engine_loads_no_pandas_before_it_meets_rows():
    pytest.importorskip("pandas")
    assert _child("import sys, dsms.engine; print('pandas' in sys.modules)") == "False"


def test_what_is_denied_comes_back():
    before = list(sys.meta_path)
    with (
        lean._without("tabnanny"),
        pytest.raises(ModuleNotFoundError, match="a server does without tabnanny"),
    ):
        import tabnanny
    assert sys.meta_path == before
    import tabnanny

    with lean._without("tabnanny"):
        import tabnanny as again
    assert again is tabnanny


def test_who_has_set_the_number_of_threads_keeps_it(monkeypatch):
    monkeypatch.setenv(lean.BLAS_THREADS, "2")
    assert _child(SERVER) == "1 False 2"
