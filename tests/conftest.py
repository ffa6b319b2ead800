"""Options, hypothesis profiles, and which process runs which tests.

quick   the default: few examples, the same ones in CI (`CI` set) every time; what is slow is left
        out
all     with --all: all examples and the tests marked `slow`
fuzz    with --fuzz [N]: N times as many examples (default 20), new ones every time, and the tests
        marked `fuzz`, too
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.effort import effort, examples, left_out, unsynced
from tests.spark_session import spark  # noqa: F401  (a fixture for all)

NO_CHECKS = tuple(HealthCheck)
# shrinking takes minutes
QUICKLY = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
CI = "CI" in os.environ
# of a property that says no number: hypothesis's own, and with `make test`
EXAMPLES, FEW = 100, 12
MOST = 5000  # tests that meet most kernels; fewer compile what they need


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="all examples of property tests, and the tests marked `slow`",
    )
    what = (
        "N times the examples of property tests (20), other ones each time, and the tests "
        "marked `slow` or `fuzz`"
    )
    parser.addoption(
        "--slices",
        action="store_true",
        help="say how long slices held the engine's thread of the servers of the tests",
    )
    parser.addoption("--fuzz", nargs="?", type=int, const=20, default=None, metavar="N", help=what)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--slices"):
        from tests.slices_option import SlicesPlugin

        config.pluginmanager.register(SlicesPlugin())
    times = config.getoption("--fuzz")
    os.environ["DSMS_TEST_EFFORT"] = str(times or int(config.getoption("--all")))
    unsynced()
    said = {
        "deadline": None,
        "suppress_health_check": NO_CHECKS,
        "max_examples": examples(EXAMPLES) if effort() else FEW,
    }
    settings.register_profile("quick", derandomize=CI, phases=QUICKLY, **said)
    settings.register_profile("fuzz", derandomize=False, **said)
    settings.load_profile("fuzz" if times else "quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Half a million objects come here and stay: the collector of garbage neither looks at them
    while they come nor again in each test that asks for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """They are there before the first test of them all."""
    worker = getattr(request.config, "workerinput", None)
    if worker is None or len(request.session.items) < MOST:
        return
    from tests import warming

    place = tmp_path_factory.getbasetemp().parent / "kernels"  # the processes have it together
    if place.exists() or warming.cold():
        place.mkdir(exist_ok=True)
        number = int(worker["workerid"].removeprefix("gw"))
        warming.together(place, number, worker["workercount"])


@pytest.fixture(scope="session", autouse=True)
def databases() -> Iterator[None]:
    """DuckDB takes longer to begin than most statements of tests take: with `make test` engines
    have a connection each to one database, in which none sees what others have registered."""
    run = sys.modules.get("dsms.oneshot.run")
    if run is None or effort():
        yield
        return
    begin = functools.cache(run._connect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_connect", lambda *settings: begin(*settings).cursor())
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    fuzz, everything = config.getoption("--fuzz"), config.getoption("--all")
    left = {} if fuzz else {"fuzz": "long: run with --fuzz"}
    if not (fuzz or everything):
        left["slow"] = "slow: run with --all"
        for item in left_out(items):
            item.add_marker("slow")
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one process holds the session
        if getattr(config.option, "loadgroup", False) and item.get_closest_marker("xdist_group"):
            _grouped(item)
        for mark, reason in left.items():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))
    if len(items) > MOST:  # to skip thousands, and tell of each, takes seconds
        items[:] = [item for item in items if not item.get_closest_marker("skip")]


def _grouped(item: pytest.Item) -> None:
    """Name its group in its id, by which the tests are handed out.  xdist 3.8 does so by an
    attribute that pytest 9.2 has no more: each process had a session of Spark."""
    marks = item.iter_markers("xdist_group")
    name = f"{item.nodeid}@{'_'.join(sorted({mark.args[0] for mark in marks}))}"
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(name)
