"""Connections that have ended leave nothing behind, however they ended, even where no collector
runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from endings import ENDINGS

from tests.effort import effort

SCRIPT = Path(__file__).with_name("endings.py")
MIB = 1 << 20
LONG = {"port check", "tls port check"}
# they send rows, which results and windows keep
KEPT = {"vanished subscriber", "vanished in a statement", "work"}


@pytest.fixture(scope="module")
def run(certificate):
    """What the script prints, in a process of its own."""
    cert, key = certificate

    def call(*words: object) -> list[str]:
        environ = {**os.environ, "DSMS_TEST_CERT": cert, "DSMS_TEST_KEY": key}
        command = [sys.executable, SCRIPT, *map(str, words)]
        return subprocess.run(
            command, env=environ, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    return call


def test_no_object_waits_for_the_collector(run):
    count = 40 if effort() else 12
    found = {
        name: (int(left), what)
        for name, left, what in (line.split("\t") for line in run("leftovers", count))
    }
    assert set(found) == set(ENDINGS)
    for name, (left, what) in found.items():
        assert left < count, (name, what)  # what is made once by a library may be found


@pytest.mark.parametrize("ending", ["port check", "tls port check"])
def test_memory_is_flat(run, ending):
    (grown,) = run("memory", ending, 3000 if effort() else 1500)
    assert int(grown) < 2 * MIB


@pytest.mark.fuzz
@pytest.mark.parametrize("ending", [name for name in ENDINGS if name not in KEPT])
def test_memory_is_flat_for_long(run, ending):
    (grown,) = run("memory", ending, 100_000 if ending in LONG else 2_000)
    assert int(grown) < 8 * MIB
