"""Where nothing is compiled (`NUMBA_DISABLE_JIT=1`) kernels that read memory by its address say the
same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsms.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
TYPES = {"k": "INT", "s": "STRING", "b": "BYTES", "f": "FLOAT", "d": "DECIMAL(30, 2)"}
CONDITIONS = (
    "k = 3", "k IN (1, 4)", "k > 3", "s = 'long enough for a word 2'", "s IN ('2', 'none', '')",
    "s < '3'", "s LIKE 'long enough for a word%'", "b = CAST('2' AS BYTES)", "f <= 1.5", "f = 2.0",
    "d BETWEEN 1 AND 2", "d = 3",
)  # a long list  # fmt: skip


def answers() -> list[list[list[object]]]:
    engine = Engine()
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    engine.execute(
        f"CREATE STREAM x ({columns}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h "
        f"INDEX BY ({', '.join(TYPES)})"
    )
    for n in range(300):
        text = str(n % 7) if n % 2 else f"long enough for a word {n % 7}"
        row = (n % 7, text if n % 11 else "", text[-1:].encode(), n % 7 / 2, n % 7)
        engine.ingest("x", [(*row, n * 1_000_000)])
    engine.heartbeat("x", 300_000_000)
    tails = [f"WHERE {condition}" for condition in CONDITIONS]
    tails += [f"ORDER BY {name} LIMIT 3" for name in ("k", "s", "f")]
    return [
        sorted(
            [str(v) for v in row.values()]
            for row in engine.execute(f"SELECT k, s, d FROM x [RANGE 5 min] {tail}")[
                -1
            ].data.to_pylist()
        )
        for tail in tails
    ]


@pytest.fixture(scope="module")
def compiled() -> list[list[list[object]]]:
    return answers()


def test_indices_answer_the_same(compiled: list[list[list[object]]]) -> None:
    code = "import json; from tests.test_uncompiled import answers; print(json.dumps(answers()))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == compiled
    assert all(found)  # each has rows
