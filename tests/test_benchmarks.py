"""Every benchmark at toy size: it runs, its answers are right, it writes its part of the report.
Nothing is timed."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tests.benchmarks import __main__ as command
from tests.benchmarks import (
    files,
    frames,
    frequent,
    limits,
    memory,
    nexmark,
    ours,
    peers,
    ranks,
    shedding,
    synopses,
    synopses_rates,
    thesis,
    trace,
    trace_file,
    workloads,
)
from tests.benchmarks import multijoin_models as models
from tests.benchmarks.harness import Options, Table, WrongAnswer
from tests.benchmarks.thesis_cases import CASES, DIRECT, NT, UPA, UPA10
from tests.benchmarks.thesis_run import Effort, run
from tests.effort import SLOW, effort
from tests.nexmark.queries import NAMES

DATA = workloads.make(20_000)


def test_the_trace_is_what_it_claims_to_be() -> None:
    made = trace.synthetic(20_000)
    for link in made.links:
        ts, protocol = link.column("ts").to_numpy(), link.column("protocol").to_numpy()
        assert abs(len(ts) / 20_000 - 1) < 0.05
        assert (np.diff(ts) >= 0).all()
        assert 7 < (protocol == made.popular).sum() / (protocol == made.selective).sum() < 14
        counts = np.sort(np.bincount(link.column("src").to_numpy(), minlength=trace.SOURCES))[::-1]
        assert len(counts) == trace.SOURCES
        assert counts[:16].sum() > counts[100:200].sum()
    destinations = [set(link.column("dst").to_pylist()) for link in made.links]
    assert not destinations[0] & destinations[1]
    assert "synthetic" in made.about


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_strategies_agree_on_the_queries_of_the_thesis(case) -> None:
    made = trace.synthetic(7_000)
    results = {
        c: run(case, c, 3_000, made, Effort(step=150, seconds=0.2, quick=0.0, repeats=1))
        for c in case.contenders
    }
    thesis.agree(case, 3_000, results)
    assert sum(m.digests[max(m.digests)][0] for m in results.values()) > 0


def test_a_wrong_answer_stops_a_benchmark() -> None:
    made, case = trace.synthetic(900), CASES[2]
    right = run(case, UPA, 200, made, Effort(step=150, seconds=0.2, quick=0.0, repeats=1))
    wrong = run(case, NT, 150, made, Effort(step=150, seconds=0.2, quick=0.0, repeats=1))
    shifted = dict(zip(right.digests, wrong.digests.values(), strict=False))
    with pytest.raises(WrongAnswer):
        thesis.agree(case, 200, {UPA: right, NT: replace(wrong, digests=shifted)})


def test_delta_star_takes_a_tenth_of_the_space() -> None:
    """Golab 2006, Fig 3.12, at a window that is quick to fill."""
    made, case = trace.synthetic(44_000), next(c for c in CASES if c.name == "query2-src")
    space = {
        c: run(case, c, 30_000, made, Effort(seconds=0.0, repeats=1)).state_bytes
        for c in (NT, DIRECT, UPA10)
    }
    assert space[NT] > 10 * space[UPA10]
    assert space[DIRECT] > 5 * space[UPA10]


def test_a_trace_file_becomes_links(tmp_path: Path) -> None:
    lines = [
        f"{1000 + i // 3},h{i % 7},/p{i % 11}.{'html' if i % 12 else 'gif'},{i}" for i in range(600)
    ]
    file = tmp_path / "log.csv.gz"
    file.write_bytes(gzip.compress("\n".join(["ts,host,path,bytes", *lines]).encode()))
    made = trace_file.load(str(file))
    assert sum(link.num_rows for link in made.links) == 600
    assert made.unit == pytest.approx(1e6, rel=0.05)
    assert made.popular != made.selective
    query = thesis.section(Options("toy", trace=str(file)))
    assert "log.csv.gz" in query.about
    file.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(SystemExit, match="which column is the time"):
        trace_file.load(str(file))


@pytest.mark.parametrize("name", ours.QUERIES)
def test_workloads_answer_as_numpy_does(name: str) -> None:
    for batch in (20_000, 1_024):
        ours.check(name, DATA, ours.run(name, DATA, batch)[1])


@pytest.mark.parametrize("name", ours.QUERIES)
def test_checks_notice_what_is_missing(name: str) -> None:
    out = ours.run(name, DATA)[1]
    half = len(out.at) // 2
    with pytest.raises(WrongAnswer):
        ours.check(name, DATA, ours.Output(out.sign[:half], out.at[:half], out.data.slice(0, half)))


@pytest.mark.parametrize("name", memory.QUERIES)
def test_state_stays_bounded_with_ever_new_keys(name: str) -> None:
    samples = list(memory.run(name, fresh=True, rate=20, minutes=24))
    early, late = (max(s.state for s in samples[k : k + 8]) for k in (8, 16))
    assert late <= 1.5 * early + 65_536


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=SLOW)
            for name in ("limits", "delivery", "authenticated", "nexmark")
        ),
        "latency",
    ],
)
def test_benchmarks_over_tcp_write_their_report(name: str, tmp_path: Path) -> None:
    assert command.main([name, "--toy", "--report", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| " in text and "Python " in text


def test_a_chain_ends_as_its_parts_do(tmp_path: Path) -> None:
    assert command.main(["chain", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Chains of derived streams" in (tmp_path / "report.md").read_text()


def test_filters_report_what_numpy_counts(tmp_path: Path) -> None:
    assert command.main(["filters", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Many filters" in (tmp_path / "report.md").read_text()


def test_readers_that_share_parts_get_the_same_results(tmp_path: Path) -> None:
    assert command.main(["sharing", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Equal parts of many queries" in (tmp_path / "report.md").read_text()


def test_as_of_joins_find_what_numpy_finds(tmp_path: Path) -> None:
    assert command.main(["asof", "--toy", "--report", str(tmp_path)]) == 0
    assert "## As-of joins" in (tmp_path / "report.md").read_text()


def test_patterns_match_what_numpy_finds(tmp_path: Path) -> None:
    assert command.main(["match", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Patterns" in (tmp_path / "report.md").read_text()


def test_sessions_are_those_that_numpy_finds(tmp_path: Path) -> None:
    assert command.main(["sessions", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Sessions" in (tmp_path / "report.md").read_text()


def test_running_values_are_those_of_numpy(tmp_path: Path) -> None:
    assert command.main(["over", "--toy", "--report", str(tmp_path)]) == 0
    assert "## Values over rows" in (tmp_path / "report.md").read_text()


def test_w7_is_answered_right() -> None:
    table = peers.over_tcp(Options("toy"))
    assert isinstance(table, Table) and len(table.rows) == 4
    assert limits.IN_PROCESS


def test_peers_agree_with_numpy(tmp_path: Path) -> None:
    for package in ("duckdb", "polars", "csp"):
        pytest.importorskip(package)
    section = peers.section(Options("toy"))
    assert next(p.title for p in section.parts if isinstance(p, Table)) == "Ratios asked for"


def test_what_is_shed_is_made_up_for() -> None:
    table, joins = shedding.section(Options("toy")).parts
    assert isinstance(table, Table) and isinstance(joins, Table)
    assert float(table.rows[2][1].rstrip("%")) == pytest.approx(20, abs=4)
    assert [float(row[5]) >= 1.5 for row in joins.rows] == [True]


def test_first_rows_are_those_that_are_ranked_first() -> None:
    (table,) = ranks.section(Options("toy")).parts
    assert isinstance(table, Table)
    kept, inside = (int(table.rows[3][k].replace(",", "")) for k in (6, 7))
    assert kept < inside  # only rows that may still come in


def test_queries_of_nexmark_are_held_against_duckdb() -> None:
    names = NAMES if effort() else ("q1", "q5", "q10", "q12")
    rows = nexmark.table(Options("toy"), names, None).rows
    assert [(name, over) for name, *_, over in rows] == [(name, "") for name in names]


def test_algorithm_6_is_judged() -> None:
    section = frequent.section(Options("toy"))
    tables = [p for p in section.parts if isinstance(p, Table)]
    assert len(tables) >= 2
    assert any(row[4] != "0.00" for row in tables[0].rows)
    few, many = (frequent.judged(np.arange(5000) ** 2 % 17, 100, k) for k in (2, 17))
    assert (few.listed, many.delta, many.error) == (0, 0.0, 0.0)
    assert many.listed == many.over == 9  # squares modulo 17


def test_algorithms_2_to_5_find_each_result_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without restore those alone that are alive when it is asked."""
    for name, kernel in vars(models).items():
        if hasattr(kernel, "py_func") and not effort():  # few tuples: not worth a compilation
            monkeypatch.setattr(models, name, kernel.py_func)
    stream, value = models.tuples(np.ones(3), np.array([2, 3, 2]), 60, 4)
    length, order = np.array([9, 12, 7]), np.array([1, 2, 0])
    rows = [np.flatnonzero(stream == i) for i in range(3)]
    lives = [
        (max(parts), min(t + n for t, n in zip(parts, length, strict=True)))
        for parts in product(*rows)
        if len({value[t] for t in parts}) == 1
    ]
    every = sum(born < dies for born, dies in lives)
    shapes = [*product((1, 2), (1, 5))] if effort() else [(1, 5), (2, 1)]
    for buckets, period in shapes:
        found = [
            models.join(stream, value, length, order, buckets, how, period, 0)
            for how in (models.EAGER, models.RESTORE, models.LAZY)
        ]
        asked = [(born // period + 1) * period - 1 for born, _ in lives]
        told = sum(now < dies for now, (_, dies) in zip(asked, lives, strict=True))
        assert found == [every, every, told]
    assert models.join(stream, value, length, order, 2, models.EAGER, 0, 0) == every


@SLOW
def test_joins_of_many_windows_in_all_forms(tmp_path: Path) -> None:
    assert command.main(["multijoin", "--toy", "--report", str(tmp_path)]) == 0


@SLOW
def test_adaptive_joins_in_all_forms(tmp_path: Path) -> None:
    assert command.main(["amri", "--toy", "--report", str(tmp_path)]) == 0


@SLOW
def test_synopses_of_004_agree_with_each_other_and_with_the_values() -> None:
    section = synopses.section(Options("toy"))
    titles = [p.title for p in section.parts if isinstance(p, Table)]
    assert [t[:6] for t in titles] == ["Fig 9:", "Fig 9:", "Fig 10", "Fig 11"]
    looped, kept = synopses_rates.Looped("R-INT, SUM", 64), synopses_rates.Kept.of("R-INT, SUM")
    values, low = np.arange(128), np.array([70, 90])
    looped.update(values)
    kept.update(values[::-1].copy(), 64)
    with pytest.raises(WrongAnswer):
        synopses_rates._check("R-INT, SUM", looped, kept, values, low, low + 9)


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["thsis"])
    assert "there are thesis" in capsys.readouterr().err


@SLOW
def test_small_frames() -> None:
    section = frames.section(Options("toy"))
    (table,) = (p for p in section.parts if isinstance(p, Table))
    assert len(table.rows) == 3


def test_files_are_read_as_they_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = files.Rate(0.0, 0.0)
    monkeypatch.setattr(files, "_rate", lambda *_: rate)  # servers and processes: `make bench`
    tables = [p for p in files.section(Options("toy")).parts if isinstance(p, Table)]
    assert [len(table.rows) for table in tables] == [len(files.FILES), 2, 2]
