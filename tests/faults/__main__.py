"""Fuzzers and faults, by name.

python -m tests.faults wire|postgres|sql|arrow|parquet|ipc|csv|json|state [--count N] [--seed S]
[--seconds T] [--corpus DIR]

python -m tests.faults kill|kills|connectors|pauses|simulation|soak|connects|functions|slices ...
each has --help
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from tests.faults import fuzz
from tests.faults.cases import KINDS

OTHERS = (
    "kill", "kills", "connectors", "pauses", "simulation", "soak", "connects", "functions",
    "slices",
)  # a list  # fmt: skip


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        name = sys.argv.pop(1)
        sys.argv[0] = f"python -m tests.faults {name}"
        return int(import_module(f"tests.faults.{name}").main() or 0)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS, metavar="KIND")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="begin with that case of the seed")
    parser.add_argument("--seconds", type=float, help="stop then, whatever is left of --count")
    parser.add_argument(
        "--corpus", type=Path, help="findings go there (default: tests/faults/corpus/KIND)"
    )
    args = parser.parse_args()
    return _fuzz(args)


def _fuzz(args: argparse.Namespace) -> int:
    told = fuzz.run(
        args.kind,
        args.seed,
        args.first,
        args.count,
        args.seconds,
        lambda text: print(text, flush=True),
    )
    for finding in told.findings:
        print(
            f"{finding.keep(args.corpus)}: case {finding.number}: {finding.how}\n{finding.said}",
            flush=True,
        )
    print(
        f"{told.mutations} mutations in {told.cases} cases, "
        f"{told.mutations / max(told.seconds, 1e-9):,.0f} a second, {len(told.findings)} findings"
    )
    print(*(f"{end}={n}" for end, n in sorted(told.ends.items())))
    return 1 if told.findings else 0


if __name__ == "__main__":
    sys.exit(main())
