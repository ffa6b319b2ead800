"""Cases of one kind by the million, in processes that may die of them; what ends one is made small
and kept."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests import forked
from tests.faults.cases import CORPUS, draw
from tests.faults.child import FIRST, NUMBER, SECONDS
from tests.faults.reduce import reduced

ROOT = Path(__file__).resolve().parents[2]
STRETCH = 20_000  # cases of one child
PATIENCE = 300.0  # seconds after which a child that does nothing is asked what it waits for
PROBES = 600  # cases that are tried to make one smaller
SLOW_PROBES = 40  # of one that takes its time, which each of them may take, too
SAID = 3000  # characters of what a child said in the end
ENOUGH = 20  # findings


@dataclass(frozen=True, slots=True)
class Finding:
    """A case, made small if it does the same alone, and how it ended its process."""

    kind: str
    number: int
    how: str
    said: str
    data: bytes
    alone: bool

    def keep(self, corpus: Path | None = None) -> Path:
        """Write it down, where tests play it again."""
        folder = (corpus or CORPUS) / self.kind if corpus is None else corpus
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.number}_{hashlib.sha256(self.data).hexdigest()[:8]}"
        path.write_bytes(self.data)
        return path


@dataclass(slots=True)
class Told:
    cases: int = 0
    mutations: int = 0  # that were answered each for itself; more than cases where one holds many
    seconds: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def run(kind: str, seed: int, first: int, count: int, seconds: float | None = None,
        say: Callable[[str], object] = lambda text: None,
        now: Callable[[], float] = time.monotonic) -> Told:  # an option a line  # fmt: skip
    """Cases `first` to `first + count - 1` of a seed, or as many as there is time for."""
    told, number, began = Told(), first, now()
    stretch = STRETCH if seconds is None else min(STRETCH, 2000)
    while number < first + count and len(told.findings) < ENOUGH:
        size = min(stretch, first + count - number)
        death, ends, done, judged = _child(kind, seed, number, size)
        told.ends.update(ends)
        told.cases += done
        told.mutations += judged
        number += done
        if death is not None:
            say(f"case {death[0]}: {death[1]}")
            finding = _finding(kind, seed, *death)
            if finding is None:
                told.ends["slow at first"] += 1
            else:
                told.findings.append(finding)
                say(
                    f"case {finding.number}: "
                    f"{finding.how}{'' if finding.alone else ', not alone'}: {finding.data!r}"
                )
        told.seconds = now() - began
        if seconds is not None and told.seconds > seconds:
            break
    return told


def _child(
    kind: str, seed: int, first: int, count: int
) -> tuple[tuple[int, str, str] | None, dict[str, int], int, int]:
    """What ended the child (number, how, what it said), how the cases ended, how many there were,
    and how many mutations they held (of a child that died one a case)."""
    with tempfile.TemporaryDirectory() as folder:
        progress, out, said = (Path(folder, name) for name in ("progress", "out", "said"))
        progress.write_bytes(NUMBER.pack(-1))
        words = ["draw", kind, str(seed), str(first), str(count), str(progress)]
        with out.open("wb") as stdout, said.open("wb") as stderr:
            child = forked.Popen([sys.executable, "-m", "tests.faults.child", *words], cwd=ROOT,
                                     stdout=stdout,
                                     stderr=stderr)  # a command  # fmt: skip
            stuck = _waited(child, progress)
        (number,) = NUMBER.unpack(progress.read_bytes())
        if child.returncode == 0:
            ends, judged = json.loads(out.read_text())
            return None, ends, count, judged
        text = said.read_text(errors="replace")[-SAID:]
        if number < 0:
            raise RuntimeError(f"there are no cases of {kind}: {text}")
        return (
            (number, "it waits for ever" if stuck else how(child.returncode), text),
            {},
            number - first + 1,
            number - first,
        )


def _waited(child: subprocess.Popen[bytes], progress: Path) -> bool:
    """Until it ends; whether it had to be ended, since it did nothing."""
    before = (b"", -1.0)
    while True:
        try:
            child.wait(PATIENCE)
            return False
        except subprocess.TimeoutExpired:
            now = (progress.read_bytes(), _worked(child.pid))
            if now[0] == before[0] and now[1] - before[1] < 1.0:
                child.send_signal(signal.SIGABRT)
                child.wait()
                return True
            before = now


def _worked(pid: int) -> float:
    """Seconds of processor time that it has had."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def how(code: int) -> str:
    if code == -signal.SIGPROF:
        return f"took more than {SECONDS:g} s"
    return signal.Signals(-code).name if code < 0 else "an exception"


class Trial:
    """Cases that are tried alone."""

    def __init__(self, kind: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed with this)
        command = [sys.executable, "-m", "tests.faults.child", "try", kind]
        self._child = forked.Popen(command, cwd=ROOT, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE,
                                       stderr=self._said)  # a command  # fmt: skip

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *exc: object) -> None:
        self._child.communicate()
        self._said.close()

    def ends(self, data: bytes, seconds: float = SECONDS) -> int:
        """0, the signal that ended it (negative), or 1: an exception."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._said.truncate(0)
        self._child.stdin.write(struct.pack("<qf", len(data), seconds) + data)
        self._child.stdin.flush()
        return int(self._child.stdout.readline())

    def said(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace").replace("\0", "")[-SAID:]


def _finding(kind: str, seed: int, number: int, end: str, said: str) -> Finding | None:
    """The finding, made small; None where only what was compiled took its time."""
    data = draw(kind, seed, number)
    with Trial(kind) as trial:
        trial.ends(data, FIRST)  # what must be compiled is, now
        code = trial.ends(data)
        if code == 0:
            slow = end == how(-signal.SIGPROF)
            return None if slow else Finding(kind, number, end, said, data, alone=False)
        kind_of = _kind_of(trial.said())
        small = reduced(
            data,
            lambda d: trial.ends(d) == code and _kind_of(trial.said()) == kind_of,
            SLOW_PROBES if code == -signal.SIGPROF else PROBES,
        )
        trial.ends(small)
        return Finding(kind, number, how(code), trial.said() or said, small, alone=True)


def _kind_of(said: str) -> str:
    """The kind of an exception; its message has the case in it."""
    last = said.strip().rpartition("\n")[2]
    return last.partition(":")[0] if "Traceback" in said else ""
