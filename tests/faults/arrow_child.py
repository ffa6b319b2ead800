"""What a server does with the Arrow bytes of a frame, in a process that may die of it.

python -m tests.faults.arrow_child FIRST COUNT     damaged streams by number; says on stdout how far
it is python -m tests.faults.arrow_child FILE...         kept ones
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections import Counter
from pathlib import Path

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_server.decode import Payload, StreamShape
from tests.faults.arrow_damage import damaged
from tests.faults.arrow_seeds import seeds

TYPES = (
    "BOOL",
    "INT",
    "FLOAT",
    "DECIMAL(10,2)",
    "DECIMAL(38,30)",
    "STRING",
    "BYTES",
    "TIMESTAMP",
    "INTERVAL",
)
MEMORY = 4 << 30  # bytes of address space that the child may take beyond what it has at the start


class Victim:
    """An engine with a stream of each type under a query that groups by its values, and what frames
    have ended in."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.shapes: list[StreamShape] = []
        self.ends: Counter[str] = Counter()
        for number, sql in enumerate(TYPES):
            self.engine.execute(f"CREATE STREAM s{number} (c {sql})")
            self.engine.execute(
                f"CREATE QUERY q{number} AS SELECT c, COUNT(*) AS n FROM s{number} [ROWS 8] GROUP "
                "BY c"
            )
        self.now = 0
        for definition in self.engine.runtime.catalog.streams.values():
            self.shapes.append(StreamShape(definition.name, definition.schema))

    def suffer(self, data: bytes) -> None:
        """As a frame for each stream.  An exception that is no DsmsError is a fault, too."""
        moved = False
        for shape in self.shapes:
            payload = Payload("arrow", memoryview(data))
            payload.convert(shape)
            try:
                rows = payload.fitted(shape)
            except DsmsError as problem:
                self.ends[problem.code] += 1
                if problem.code == "DS510":
                    return  # of the bytes, whatever the stream is
                continue
            self.ends["taken"] += 1
            if len(rows) < 10_000:
                if not moved:
                    self.now += 1
                    self.engine.advance(self.now)
                    moved = True
                self.engine.ingest(shape.stream, rows)


def main(arguments: list[str]) -> None:
    victim = Victim()
    if not arguments[0].isdigit():
        for name in arguments:
            victim.suffer(Path(name).read_bytes())
        return
    known, first, count = seeds(), int(arguments[0]), int(arguments[1])
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    die_at = int(os.environ.get("DSMS_TEST_DIE_AT", -1))
    for number in range(first, first + count):
        print(number, flush=True)
        if number == die_at:
            os.kill(os.getpid(), signal.SIGSEGV)
        victim.suffer(damaged(known, number))
    print(*(f"{end}={n}" for end, n in sorted(victim.ends.items())))


if __name__ == "__main__":
    main(sys.argv[1:])
