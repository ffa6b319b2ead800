"""Warm-up meets every kernel there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dsms
from dsms import kernel_cache, kernel_folder, warmup
from dsms.intake import kernels, packed
from tests import warming
from tests.effort import SLOW, effort

ROOT = Path(__file__).resolve().parent.parent

# In a process of its own, where nothing else has compiled anything.
CHECK = """
from dsms import kernel_cache, warmup
from tests import warming
kernel_cache.kept = lambda: None
warmup.prepare()
print("\\n".join(warming.left(kernel_cache.made())))
"""


def test_every_kernel_is_made_ready():
    """In `make test` as the mark says, which all processes have left that got kernels ready."""
    kept = None if effort() else kernel_cache.kept()
    if kept is not None:
        assert warming.left(kept) == []
        return
    run = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout.strip(), run.stderr) == ("", "")


def test_a_kernel_that_is_not_met_is_named():
    there = [(k.py_func.__module__, k.__name__, ()) for k in kernel_cache._kernels()]
    assert warming.left(there) == []
    others = [kernel for kernel in there if kernel[1] != kernels.unpack_rows.__name__]
    assert warming.left(others) == ["dsms.intake.kernels.unpack_rows"]


def test_the_usual_steps_come_first_and_progress_is_told(monkeypatch):
    steps = dict(warmup._steps())
    assert set(steps) >= warmup.USUAL
    ran: list[str] = []
    told: list[tuple[str, int, int]] = []
    kept: list[kernel_cache.Made] = []
    monkeypatch.setattr(warmup, "_run", ran.append)
    monkeypatch.setattr(warmup, "BESIDE", (packed.ready,))
    monkeypatch.setattr(kernel_cache, "kept", lambda: kept or None)
    monkeypatch.setattr(kernel_cache, "keep", kept.extend)
    warmup.prepare(lambda *step: told.append(step))
    assert sorted(ran) == sorted(steps.values())
    assert set(ran[: len(warmup.USUAL)]) == {steps[what] for what in warmup.USUAL}
    assert told[0][1:] == (0, len(steps))
    assert told[-1] == ("ready", len(steps), len(steps))
    assert any(name == "unpack_rows" for _, name, _ in kept)
    ran.clear()
    warmup.warm()
    assert ran == []


def test_loading_stops_when_it_is_told_to(monkeypatch):
    asked = iter((False, True))
    monkeypatch.setattr(
        kernel_cache, "kept", lambda: [("dsms.operators.join_kernels", "no_longer_there", ())] * 3
    )
    warmup.load(lambda: next(asked))
    assert list(asked) == []


# A process that compiles one kernel and leaves the mark, or finds the mark and loads what it names.
KEEP = """
import numpy as np
from dsms import kernel_cache, kernel_folder
from dsms.operators.join_kernels import turned
kept = kernel_cache.kept()
if kept is None:
    turned(np.arange(3), 0, 3)
    kernel_cache.keep(kernel_cache.made())
else:
    kernel_cache.load(kept)
print(kept is not None, sum(turned.stats.cache_hits.values()), len(turned.signatures))
print(turned.stats.cache_path)
print(kernel_folder.complaint())
"""


@pytest.fixture
def source(tmp_path) -> Path:
    """The source without anything that was compiled."""
    left = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "dsms", tmp_path / "source" / "dsms", ignore=left)
    return tmp_path / "source"


def _not_to_be_written(source: Path) -> None:
    """As a folder of another user; it holds for root, too."""
    for folder in {path.parent for path in source.rglob("*.py")}:
        (folder / "__pycache__").touch()


def _kept(source: Path, **environment: str) -> list[str]:
    """What the process says."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    clean |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    run = subprocess.run(
        [sys.executable, "-c", KEEP], capture_output=True, text=True, env=clean, cwd=source
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_kernels_are_kept_beside_the_source_also_without_bytecode(source):
    place = str(source / "dsms/operators/__pycache__")
    assert _kept(source) == ["False 0 1", place, "None"]
    assert _kept(source) == ["True 1 1", place, "None"]


def test_kernels_of_a_source_that_cannot_be_written_are_kept_with_the_user(source, tmp_path):
    _not_to_be_written(source)
    for said in ("False 0 1", "True 1 1"):
        first, place, complaint = _kept(source, XDG_CACHE_HOME=str(tmp_path / "mine"))
        assert (first, complaint) == (said, "None")
        assert Path(place).is_relative_to(tmp_path / "mine")


@SLOW
def test_kernels_are_kept_where_the_user_says(source, tmp_path):
    for said in ("False 0 1", "True 1 1"):
        first, place, complaint = _kept(source, NUMBA_CACHE_DIR=str(tmp_path / "there"))
        assert (first, complaint) == (said, "None")
        assert Path(place).is_relative_to(tmp_path / "there")


def test_kernels_that_can_be_kept_nowhere_live_as_long_as_the_process(source, tmp_path):
    _not_to_be_written(source)
    (tmp_path / "tmp").mkdir()
    first, place, complaint = _kept(
        source, XDG_CACHE_HOME="/dev/null", TMPDIR=str(tmp_path / "tmp")
    )
    assert first == "False 0 1"
    assert Path(place).is_relative_to(tmp_path / "tmp")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert complaint == (
        f"compiled kernels can't be kept: neither {source / 'dsms'} nor /dev/null/numba may be "
        "written, so each start compiles them again, for a minute or two; set NUMBA_CACHE_DIR to "
        "a folder that may be written"
    )


def test_an_engine_in_a_process_of_ones_own_says_that_kernels_are_not_kept(monkeypatch):
    monkeypatch.setattr(kernel_folder, "_passing", True)
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR to a folder that may be written"):
        assert dsms.Engine
