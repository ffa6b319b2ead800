"""How `dsms serve` comes up: it listens first, kernels are loaded behind it, and what can't be kept
is said once."""

from __future__ import annotations

import signal
import sys
import threading
from unittest.mock import Mock

import pytest

from dsms import kernel_folder, warmup
from dsms_client.cli import main
from dsms_server import config, lean, serve
from dsms_server.serve import run
from tests.waiting import WAIT


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """A server has its process to itself: here it is that of other tests."""
    interval = sys.getswitchinterval()
    monkeypatch.setattr(serve, "gc", Mock())
    monkeypatch.setattr(lean, "load_arrow", lambda: None)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def events(monkeypatch) -> list[str]:
    """What happened while a server came up and went down; loading ends when it is told to."""
    seen: list[str] = []
    loading, stopped = threading.Event(), threading.Event()

    def load(stop):
        main = threading.current_thread() is threading.main_thread()
        seen.append(f"load in {'the main' if main else 'its own'}")
        loading.set()
        stopped.wait(WAIT)
        seen.append(f"told to stop: {stop()}")

    def say(line: str) -> None:
        seen.append(line.split(" on ")[0])
        if "listens" in line:
            threading.Thread(
                target=lambda: loading.wait(WAIT) and signal.raise_signal(signal.SIGTERM)
            ).start()
        elif "stopping" in line:
            stopped.set()

    monkeypatch.setattr(warmup, "prepare", lambda progress: seen.append("prepare"))
    monkeypatch.setattr(warmup, "load", load)
    assert run(config.build({"port": 0}), say, lambda *step: None) == 0
    return seen


def test_kernels_are_loaded_behind_the_listening_socket(events):
    events = [e for e in events if "nothing is kept" not in e]
    assert events == [
        "prepare",
        "dsms listens",
        "load in its own",
        "stopping: finishing what was accepted",
        "told to stop: True",
        "stopped",
    ]


@pytest.fixture
def nowhere(monkeypatch) -> None:
    """No folder for kernels may be written."""
    monkeypatch.setattr(kernel_folder, "_passing", True)
    monkeypatch.setattr(warmup, "prepare", lambda progress: None)
    monkeypatch.setattr(warmup, "load", lambda stop: signal.raise_signal(signal.SIGTERM))


def test_kernels_that_cannot_be_kept_are_told_of_once(nowhere):
    said: list[str] = []
    assert run(config.build({"port": 0}), said.append, lambda *step: None) == 0
    assert [line for line in said if "can't be kept" in line] == [
        f"note: {kernel_folder.complaint()}"
    ]


def test_warmup_and_doctor_tell_of_it(nowhere, capsys):
    assert main(["warmup", "--quiet"]) == 1
    assert capsys.readouterr().err == f"note: {kernel_folder.complaint()}\n"
    main(["doctor", "--port", "1"])
    assert f"note  {kernel_folder.complaint()}" in capsys.readouterr().out
