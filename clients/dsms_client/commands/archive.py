"""Look into the archive: its segments, their sizes, their rows.  Arrives with a later version.

example:
  dsms archive info
"""

from __future__ import annotations

import argparse
import sys

from dsms_client.cli import MISUSED


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "compact", "scan", "probe", "query"))
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    print(f"dsms archive {args.action}: this version keeps no archive yet; it arrives with a later one.",
          file=sys.stderr)  # fmt: skip
    return MISUSED
