"""Damaged Arrow frames by the hundred thousand, in a process of their own; whatever ends it is
kept.

    python -m tests.faults.arrow --count 100000 [--first 0]

What kills the child (a signal, an exception that is no DsmsError, too much memory, too long a time)
is written to `arrow_inputs/`, from where the tests play it again for ever."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.faults.arrow_damage import damaged
from tests.faults.arrow_seeds import seeds

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "arrow_inputs"
PATIENCE = 60.0  # seconds that one frame may take


@dataclass(frozen=True, slots=True)
class Death:
    """Frame `number` ended the child: how, and the end of what it said."""

    number: int
    how: str
    said: str

    def keep(self) -> Path:
        KEPT.mkdir(exist_ok=True)
        path = KEPT / f"{self.number}.arrow"
        path.write_bytes(damaged(seeds(), self.number))
        return path


def run(
    first: int, count: int, module: str = "tests.faults.arrow_child"
) -> tuple[Death | None, str]:
    """Frames `first` to `first + count - 1`: what killed the child, if it died; else how the frames
    ended."""
    command = [sys.executable, "-X", "faulthandler", "-m", module, str(first), str(count)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None and child.stderr is not None
    complaints: list[str] = []
    listener = threading.Thread(target=lambda: complaints.append(child.stderr.read()))  # type: ignore[union-attr]
    listener.start()
    last, number = "", first - 1
    watch = _Watch(child)
    for line in child.stdout:
        watch.again()
        last = line.strip()
        number = int(last) if last.isdigit() else number
    watch.stop()
    code = child.wait()
    listener.join()
    if code == 0:
        return None, last
    how = (
        "took too long"
        if watch.fired
        else signal.Signals(-code).name
        if code < 0
        else "an exception"
    )
    return Death(number, how, complaints[0][-2000:]), ""


class _Watch:
    """Kills the child when it has been silent for too long."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.fired = False
        self._child = child
        self._heard = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def again(self) -> None:
        self._heard.set()

    def stop(self) -> None:
        self._over = True
        self._heard.set()
        self._thread.join()

    def _run(self) -> None:
        while self._heard.wait(PATIENCE) and not self._over:
            self._heard.clear()
        if not self._over:
            self.fired = True
            self._child.kill()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100_000)
    args = parser.parse_args()
    number, stop = args.first, args.first + args.count
    while number < stop:
        death, ends = run(number, stop - number)
        if death is None:
            print(ends)
            return
        print(f"{death.keep()}: {death.how}\n{death.said}", flush=True)
        number = death.number + 1


if __name__ == "__main__":
    main()
