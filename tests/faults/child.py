"""The process that has to suffer.

python -m tests.faults.child draw KIND SEED FIRST COUNT PROGRESS
    cases by number; PROGRESS: a file that says which one
python -m tests.faults.child try KIND
    cases from stdin, each in a process of its own

A case may take a second of this process's own time (SIGPROF ends it then), and so much memory.
What it raises ends the process, too, and so does what Python says of an exception that nobody could
be given.  At the end stdout has what the cases ended in, and how many mutations they held, as JSON.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from tests.faults.cases import Fault, Victim, alone, draw, life, victim

MEMORY = 3 << 30  # bytes of address space that the child may take beyond what it has at the start
SECONDS = 1.0  # of its own time for one case
FIRST = 30.0  # for what may have to be compiled
NUMBER = struct.Struct("<q")
UNHEARD: list[str] = []  # exceptions that could not be raised


def bounded() -> None:
    """From now on this process may take so much more memory."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    sys.unraisablehook = threading.excepthook = _unheard


def suffer(who: Victim, data: bytes, seconds: float = SECONDS) -> str:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        end = who.suffer(data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if UNHEARD:
        raise Fault(UNHEARD.pop())
    return end


def _unheard(said: sys.UnraisableHookArgs | threading.ExceptHookArgs) -> None:
    """Of a callback, a finalizer or a thread: a user would see a traceback."""
    text = traceback.format_exception(said.exc_type, said.exc_value, said.exc_traceback)
    UNHEARD.append("nobody could be told of " + "".join(text))


def drawn(kind: str, seed: int, first: int, count: int, progress: str) -> None:
    with open(progress, "r+b") as file:
        place = mmap.mmap(file.fileno(), NUMBER.size)
    who, left, ends, judged = victim(kind), life(kind), Counter[str](), 0
    gc.freeze()  # what there is stays: no need to look at it again and again
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
        judged += who.judged
    print(json.dumps([ends, judged]), flush=True)
    os._exit(0)  # what its threads still do is of no interest


def tried(kind: str, cases: BinaryIO) -> None:
    """Each case a length, a number of seconds, and its bytes; the answer is a line: 0, or what
    ended it."""
    who = victim(kind) if alone(kind) else None
    while head := cases.read(12):
        length, seconds = struct.unpack("<qf", head)
        data = cases.read(length)
        pid = os.fork()
        if pid == 0:
            _alone(who or victim(kind), data, seconds)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _alone(who: Victim, data: bytes, seconds: float) -> None:
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
