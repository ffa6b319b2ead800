"""Compile every kernel into the cache, so that no statement waits for it later.

example:
  dsms warmup
"""

from __future__ import annotations

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def run(args: argparse.Namespace) -> int:
    from dsms import kernel_folder, warmup

    problem = kernel_folder.complaint()
    if problem is not None:
        print(f"note: {problem}", file=sys.stderr)
        return 1  # it would be for nothing
    warmup.prepare(None if args.quiet else progress_line)
    return 0


def progress_line(what: str, done: int, total: int) -> None:
    """How far it is: one line that is written over on a terminal; elsewhere one line in ten
    steps."""
    if sys.stderr.isatty():
        print(
            f"\r\x1b[Kkernels {done}/{total}: {what}",
            end="\n" if done == total else "",
            file=sys.stderr,
            flush=True,
        )
    elif done % 10 == 0 or done == total:
        print(f"kernels {done}/{total}: {what}", file=sys.stderr, flush=True)
