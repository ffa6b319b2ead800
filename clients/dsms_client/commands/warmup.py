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
    from dsms import warmup

    warmup.warm((lambda line: None) if args.quiet else _say)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
