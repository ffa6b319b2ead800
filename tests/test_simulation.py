"""A few of the scenarios of `python -m tests.faults simulation`, and that what it finds is told
small."""

from __future__ import annotations

import pytest

from tests.effort import effort
from tests.faults import simulation
from tests.faults.sim import play as played
from tests.faults.sim.play import Wrong, play
from tests.faults.sim.scenario import KINDS, Fault, scenario

FEW, ALL, MANY = 8, 200, 5000


def test_a_few_scenarios() -> None:
    count = MANY * effort() if effort() > 1 else ALL if effort() else FEW
    told = simulation.run(10_000 * effort() if effort() > 1 else 0, count)
    assert told.findings == [], "\n".join(map(str, told.findings))
    assert told.deaths > count // 4 and told.met > count // 4
    assert set(told.faults) == set(KINDS)


@pytest.mark.parametrize(
    ("seed", "faults"),
    [(285, (1, 2))],  # results of rows that could not be brought to the disk were told
)
def test_what_was_found_once(seed: int, faults: tuple[int, ...]) -> None:
    assert simulation.fails(scenario(seed), faults) is None


def test_the_same_seed_is_the_same_scenario() -> None:
    given = next(s for s in map(scenario, range(100)) if len(s.faults) > 3)
    assert given == scenario(given.seed) != scenario(given.seed + 1)
    assert play(given).trace == play(given).trace


def test_a_finding_is_told_with_as_few_faults_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = next(s for s in map(scenario, range(100)) if len(s.faults) > 3)

    def fails_with_two(_: object, faults: tuple[Fault, ...] | None = None) -> None:
        if {given.faults[1], given.faults[3]} <= set(given.faults if faults is None else faults):
            raise Wrong("two")

    monkeypatch.setattr(simulation, "play", fails_with_two)
    (finding,) = simulation.run(given.seed, 1).findings
    assert (finding.faults, finding.how) == ((1, 3), "Wrong: two")
    assert f"--seed {given.seed} --count 1 --faults 1,3" in str(finding)


def test_what_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that acknowledges what it does not keep, and one that tells results twice."""
    given = next(
        s for s in map(scenario, range(100)) if {x.durability for x in s.streams} == {"sync"}
    )
    crash = (Fault("crash", given.length / 2, "kill"),)
    assert play(given, crash).deaths == [(1, "kill")]
    with monkeypatch.context() as patch:
        patch.setattr("dsms.recovering.durability.Durability.rows", lambda *args: None)
        assert simulation.how(_wrong(given, crash)).startswith("Wrong: ")
    with monkeypatch.context() as patch:
        patch.setattr(played, "_told", lambda engine, query: [(0, "insert", 0, ())])
        assert "rows, first different at" in simulation.how(_wrong(given, crash))


def _wrong(given: object, faults: tuple[Fault, ...]) -> BaseException:
    with pytest.raises(Wrong) as found:
        play(given, faults)  # type: ignore[arg-type]
    return found.value
