"""Options, hypothesis profiles, and which process runs which tests.

quick   the default: few examples, the same ones in CI (`CI` set) every time; what is slow is left
        out
all     with --all: all examples and the tests marked `slow`
fuzz    with --fuzz [N]: N times as many examples (default 20), new ones every time, and the tests
        marked `fuzz`, too
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.spark_session import spark  # noqa: F401  (a fixture for all)

NO_CHECKS = tuple(HealthCheck)
# shrinking takes minutes
QUICKLY = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
CI = "CI" in os.environ
settings.register_profile(
    "quick", deadline=None, derandomize=CI, suppress_health_check=NO_CHECKS, phases=QUICKLY
)
settings.register_profile("fuzz", deadline=None, derandomize=False, suppress_health_check=NO_CHECKS)
settings.load_profile("quick")


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
    if times:
        settings.load_profile("fuzz")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    fuzz, everything = config.getoption("--fuzz"), config.getoption("--all")
    left = {} if fuzz else {"fuzz": "long: run with --fuzz"}
    if not (fuzz or everything):
        left["slow"] = "slow: run with --all"
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one process holds the session
        for mark, reason in left.items():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))
