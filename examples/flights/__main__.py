"""A morning in the control room: three weeks of real flights through a real server, and what it
answered meanwhile.

    python -m examples.flights [--pace SECONDS] [--keep DIR]

Exit code 0 only if every query answered, and answers that are easy to recompute came out the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

from dsms_client import Client, connect
from examples.flights import archive, asked, data, recompute, show, story
from examples.flights.replay import Replay, fill_tables, hours
from examples.flights.script import Block, blocks
from examples.flights.server import server
from examples.flights.view import catch_up, watch

STORM = date(2013, 2, 8)
ASKED = data.midnight(STORM, 14)
EXTRAS = [
    (data.midnight(STORM, 20), story.pushes),
    (data.midnight(date(2013, 2, 9), 18), story.way_out),
]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--pace", type=float, default=0.0, metavar="SECONDS", help="pause between lines (default 0)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="a new directory for the server's data, to be kept"
    )
    options = parser.parse_args()
    if options.keep is not None and options.keep.exists():
        parser.error(f"--keep: {options.keep} is there already")
    began = time.monotonic()
    winter = data.load()
    print(story.opening(winter))
    with server(_progress, keep=options.keep) as port, connect(port=port) as client:
        print(f"dsms listens on port {port}; everything from here on goes over TCP.")
        problems = run(client, winter, options.pace, archive.in_shell(port))
    print("The server took its leave with exit code 0.")
    for problem in problems:
        print(f"MISSING: {problem}", file=sys.stderr)
    verdict = (
        "all answers came" if not problems else f"{len(problems)} answers are missing or wrong"
    )
    print(f"\nDone in {time.monotonic() - began:.0f} s: {verdict}.")
    return 1 if problems else 0


def run(client: Client, winter: data.Winter, pace: float, shell: archive.Shell) -> list[str]:
    """The whole story; returns what was missing or wrong."""
    questions = _declare(client, winter)
    views = watch(client, [name for block in questions for name in block.names])
    print(
        show.title(
            "Three weeks go by: the last hour's departures and their mean delay in minutes, and "
            "more"
        )
    )
    print(story.LEGEND)
    replay, problems, extras = Replay(client, winter), [], []
    for instant in hours(data.FIRST_DAY, data.DAYS, STORM):
        replay.send_until(instant)
        catch_up(client, views)
        if story.worth_a_line(instant, STORM):
            print(story.line(instant, views), flush=True)
            extras += [tell(views) for at, tell in EXTRAS if at == instant]
            extras += [asked.ask(client)] if instant == ASKED else []
            problems += [*_check(winter, instant, views), *asked.check(client, winter)]
            time.sleep(pace)
    print(*extras, story.days(views), story.news(views), sep="\n")
    problems += _check_days(winter, views)
    _ask(client, questions[-1])
    problems += [f"{name} never answered" for name, view in views.items() if not view.seen]
    problems += archive.tell(client, winter, shell)
    print(show.title("The end"))
    print(
        f"{replay.rows} rows went in, {sum(v.seen for v in views.values())} result rows came out."
    )
    return problems


def _declare(client: Client, winter: data.Winter) -> list[Block]:
    """Everything is declared; returns the queries."""
    print(show.title("The streams, the tables, the questions"))
    questions = [*blocks("periodic"), *blocks("queries")]
    for block in (*blocks("declare"), *blocks("archive"), *questions):
        print(story.printed(block))
        client.execute(block.sql)
    fill_tables(client, winter)
    return questions


def _ask(client: Client, query4: Block) -> None:
    """What the server tells about itself, plans and mistakes."""
    print(show.title("What the server says of its queries"))
    print(story.status(client))
    print(show.title("Which of them share what, by which rule (Golab 2006, §8.3)"))
    print(story.sharing(client))
    print(show.title("Query 4, two ways (Golab 2006, Figure 3.5): see where STR begins"))
    print(story.plans(client, query4.select))
    print(show.title("Mistakes are answered, too"))
    print(story.mistakes(client))


def _check(winter: data.Winter, instant: int, views: dict[str, story.View]) -> list[str]:
    """What differs from the recomputation at this instant."""
    wrong = []
    reported = {airport: rest for airport, *rest in views["delays"].rows}
    true = recompute.delays(winter, instant)
    if reported.keys() != true.keys() or any(not _same(reported[a], true[a]) for a in true):
        wrong.append(f"delays at {show.moment(instant)}: {reported}, but recomputed {true}")
    reported = {airport: rest for airport, *rest in views["hourly"].answers.get(instant, [])}
    true = recompute.hourly(winter, instant)
    if reported.keys() != true.keys() or any(not _same(reported[a], true[a]) for a in true):
        wrong.append(f"hourly at {show.moment(instant)}: {reported}, but recomputed {true}")
    if (cities := {row[0] for row in views["query2"].rows}) != recompute.reached(winter, instant):
        wrong.append(f"query2 at {show.moment(instant)}: {sorted(cities)}")
    return wrong


def _check_days(winter: data.Winter, views: dict[str, story.View]) -> list[str]:
    """The daily answers, all of them, recomputed."""
    wrong = []
    days = [data.midnight(data.FIRST_DAY + timedelta(days=n)) for n in range(data.DAYS + 1)]
    for begin, end in pairwise(days):
        reported = [
            (carrier, flights) for carrier, flights, _ in views["daily"].answers.get(end, [])
        ]
        if reported != (true := recompute.busiest(winter, begin, end)):
            wrong.append(f"daily at {show.moment(end)}: {reported}, but recomputed {true}")
    return wrong


def _same(reported: list[object], true: tuple[int, float, int]) -> bool:
    count, mean, worst = reported
    return (count, worst) == (true[0], true[2]) and abs(float(str(mean)) - true[1]) < 1e-9


def _progress(text: str) -> None:
    """What the server prints while it makes its kernels ready, in one line."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{text}", end="\r", flush=True)
    elif text.startswith("kernels 0/"):
        print(
            "The server makes its kernels ready; the first time that takes a minute or two.",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
