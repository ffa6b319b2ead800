"""Run benchmarks and write one report.

    python -m tests.benchmarks                       all of them (about a quarter of an hour)
    python -m tests.benchmarks thesis peers --quick  two of them, small (seconds)
    python -m tests.benchmarks thesis --trace FILE [--columns source=host,destination=path]

A wrong answer stops the run: nothing wrong is ever measured.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from tests.benchmarks.harness import Options, machine
from tests.benchmarks.report import text, write

NAMES = (
    "thesis",
    "peers",
    "sliding",
    "limits",
    "latency",
    "delivery",
    "authenticated",
    "memory",
    "filters",
    "sharing",
    "frequent",
    "ranks",
    "queries",
    "chain",
    "linearroad",
    "nexmark",
    "transactions",
    "synopses",
    "windows",
    "collective",
    "asof",
    "match",
    "sessions",
    "over",
    "multijoin",
    "amri",
    "archive",
    "durability",
    "frames",
    "files",
    "shedding",
)


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)} (default: all)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: less than a minute for all"
    )
    parser.add_argument(
        "--toy",
        action="store_true",
        help="tiny sizes, figures without meaning: only checks answers",
    )
    parser.add_argument("--trace", metavar="FILE", help="a CSV (.gz) or Parquet trace for `thesis`")
    parser.add_argument(
        "--columns", default="", help="what the trace's columns mean, where their names don't tell"
    )
    parser.add_argument("--report", metavar="DIR", type=Path, default=Path("bench-report"))
    asked = parser.parse_args(arguments)
    unknown = [n for n in asked.names if n not in NAMES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(NAMES)}")
    mode = "toy" if asked.toy else "quick" if asked.quick else "full"
    columns = dict(pair.split("=", 1) for pair in asked.columns.split(",") if "=" in pair)
    options = Options(mode, asked.trace, columns, asked.report)
    return run(
        asked.names or list(NAMES),
        options,
        " ".join(sys.argv[1:] if arguments is None else arguments),
    )


def run(names: list[str], options: Options, command: str = "") -> int:
    """Run those benchmarks, show their tables, write the report."""
    hardware, sections = machine(), []
    for name in names:
        began = time.perf_counter()
        section = importlib.import_module(f"tests.benchmarks.{name}").section(options)
        sections.append(section)
        print(f"\n# {section.title}  ({time.perf_counter() - began:.0f} s)\n", flush=True)
        for part in section.parts:
            print(text(part), end="\n\n", flush=True)
    head = (
        f"# Benchmarks of dsms\n\n`python -m tests.benchmarks {command}` ({options.mode})  "
        f"\n{hardware}"
    )
    print(f"report: {write(options.report, head, sections)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
