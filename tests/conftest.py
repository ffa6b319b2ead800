"""Options and hypothesis profiles.

quick   the default: few examples, the same ones in CI (`CI` set) every time
fuzz    with --fuzz [N]: N times as many examples (default 20), new ones every time, and the tests marked `fuzz`
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.spark_session import spark  # noqa: F401  (a fixture for all)

NO_CHECKS = tuple(HealthCheck)
QUICKLY = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))  # shrinking takes minutes
CI = "CI" in os.environ
settings.register_profile("quick", deadline=None, derandomize=CI, suppress_health_check=NO_CHECKS, phases=QUICKLY)
settings.register_profile("fuzz", deadline=None, derandomize=False, suppress_health_check=NO_CHECKS)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "multiply the examples of property tests by N (20), and run the tests marked `fuzz`"
    parser.addoption("--fuzz", nargs="?", type=int, const=20, default=None, metavar="N", help=what)


def pytest_configure(config: pytest.Config) -> None:
    times = config.getoption("--fuzz")
    os.environ["DSMS_TEST_FUZZ"] = str(times or 0)
    if times:
        settings.load_profile("fuzz")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one process holds the session
    if config.getoption("--fuzz"):
        return
    skip = pytest.mark.skip(reason="long: run with --fuzz")
    for item in items:
        if "fuzz" in item.keywords:
            item.add_marker(skip)
