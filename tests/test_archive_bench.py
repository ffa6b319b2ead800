"""The benchmark of the archive's index at toy size: answers are checked, and a wrong one stops
it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tests.benchmarks import __main__ as command
from tests.benchmarks import archive_run
from tests.benchmarks.archive_run import Landed, Spark, run
from tests.benchmarks.archive_work import STEP, STEPS, Data
from tests.benchmarks.harness import WrongAnswer
from tests.effort import SLOW

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize("swing", [1.0, 4.0])
def test_the_data_is_what_it_claims_to_be(swing: float) -> None:
    data = Data(500, 20, swing)
    counts = [data.count(s) for s in range(400)]
    assert abs(np.mean(counts) / 500 - 1) < 0.1 and max(counts) / min(counts) <= swing * 1.01
    assert max(counts) / min(counts) > 0.9 * swing
    table = data.table(3)
    ts, exp, keys = data.marks(3)
    assert table.num_rows == len(ts) == data.count(3) and table.nbytes / table.num_rows > 960
    assert (
        (ts // STEP == 3).all()
        and (exp > ts).all()
        and (exp <= ts + data.span).all()
        and keys.max() < 20
    )
    upto = 40 * STEP - 1
    slow = [k for s in range(40) for t, e, k in zip(*data.marks(s), strict=True) if t <= upto < e]
    assert sorted(data.alive(upto).tolist()) == sorted(slow)


@SLOW
def test_it_writes_its_report(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_run, "PROBES", 1)
    assert command.main(["archive", "--toy", "--report", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| updates write at most (G+E-1)/(G*E) of the data |" in text
    assert text.count("](archive-") == len(list(tmp_path.glob("archive-*.png"))) == 4


@SLOW
def test_a_wrong_answer_stops_it(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Data.alive
    monkeypatch.setattr(Data, "alive", lambda self, upto: alive(self, upto)[:-1])
    from tests.benchmarks.archive import R

    with Landed(Data(5, 2), STEPS + 1) as landed, pytest.raises(WrongAnswer):
        run(Spark(spark), landed, R.make(4, landed.data.span), 1)
