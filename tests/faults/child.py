"""The process that has to suffer.

python -m tests.faults.child draw KIND SEED FIRST COUNT PROGRESS   cases by number; PROGRESS: a file
that says which one python -m tests.faults.child try KIND                              cases from
stdin, each in a process of its own

A case may take a second of this process's own time (SIGPROF ends it then), and so much memory.
What it raises ends the process, too.  At the end stdout has what the cases ended in, as JSON.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from tests.faults.cases import Victim, draw, life, victim

MEMORY = 3 << 30  # bytes of address space that the child may take beyond what it has at the start
SECONDS = 1.0  # of its own time for one case
FIRST = 30.0  # for what may have to be compiled
NUMBER = struct.Struct("<q")


def bounded() -> None:
    """From now on this process may take so much more memory."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)


def suffer(who: Victim, data: bytes, seconds: float = SECONDS) -> str:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return who.suffer(data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def drawn(kind: str, seed: int, first: int, count: int, progress: str) -> None:
    with open(progress, "r+b") as file:
        place = mmap.mmap(file.fileno(), NUMBER.size)
    who, left, ends = victim(kind), life(kind), Counter[str]()
    bounded()
    die_at = int(os.environ.get("DSMS_TEST_DIE_AT", -1))
    for number in range(first, first + count):
        NUMBER.pack_into(place, 0, number)
        if left == 0:
            who.close()
            who, left = victim(kind), life(kind)
        left -= 1
        data = draw(kind, seed, number)
        if number == die_at:
            os.kill(os.getpid(), signal.SIGSEGV)
        ends[suffer(who, data)] += 1
    print(json.dumps(ends), flush=True)
    os._exit(0)  # what its threads still do is of no interest


def tried(kind: str, cases: BinaryIO) -> None:
    """Each case a length, a number of seconds, and its bytes; the answer is a line: 0, or what
    ended it."""
    life(kind)  # its modules
    while head := cases.read(12):
        length, seconds = struct.unpack("<qf", head)
        data = cases.read(length)
        pid = os.fork()
        if pid == 0:
            _alone(kind, data, seconds)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _alone(kind: str, data: bytes, seconds: float) -> None:
    who = victim(kind)
    bounded()
    try:
        suffer(who, data, seconds)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def main(arguments: list[str]) -> None:
    if arguments[0] == "try":
        tried(arguments[1], sys.stdin.buffer)
        return
    kind, seed, first, count, progress = arguments[1:]
    drawn(kind, int(seed), int(first), int(count), progress)


if __name__ == "__main__":
    main(sys.argv[1:])
