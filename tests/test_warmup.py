"""Warm-up meets every kernel there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dsms import warmup

ROOT = Path(__file__).resolve().parent.parent

# In a process of its own, where nothing else has compiled anything.  A kernel that only other kernels call is compiled
# into them.
CHECK = """
import sys
from dsms import warmup
warmup._mark = lambda: None
warmup.warm()
from numba.core.dispatcher import Dispatcher
modules = [m for name, m in list(sys.modules.items()) if name.startswith("dsms.")]
found = [k for module in modules for k in vars(module).values() if isinstance(k, Dispatcher)]
kernels = {f"{k.py_func.__module__}.{k.__name__}": k for k in found}
met = {name for name, k in kernels.items() if k.nopython_signatures}
assert len(met) > 40, met
called = {n for k in kernels.values() for n in k.py_func.__code__.co_names}
left = [name for name in sorted(set(kernels) - met) if kernels[name].__name__ not in called]
print("\\n".join(f"{name} is not made ready" for name in left))
"""


def test_every_kernel_is_made_ready():
    run = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout.strip(), run.stderr) == ("", "")


def test_usual_steps_exist_and_progress_is_told(monkeypatch, tmp_path):
    steps = dict(warmup._steps())
    assert set(steps) >= warmup.USUAL
    ran: list[str] = []
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(warmup, "_run", ran.append)
    monkeypatch.setattr(warmup, "_mark", lambda: tmp_path / "warm-1")
    warmup.warm(lambda *step: told.append(step))
    assert ran == list(steps.values())
    assert told[0][1:] == (0, len(steps))
    assert told[-1] == ("ready", len(steps), len(steps))
    ran.clear()
    warmup.warm()
    assert set(ran) == {steps[what] for what in warmup.USUAL}
