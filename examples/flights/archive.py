"""The end of the demo: what left the windows has landed, Spark has taken it over, and is asked for
some of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsms_client import Client, DsmsError
from examples.flights import data, recompute, show

STREAM = "flights"
DAY = 24 * recompute.HOUR
# updates took over what was being read: Spark is there, and whoever asks again is answered
OVERTAKEN = "DS954"
NO_SPARK = ("DS650", "DS651")  # no Java, no PySpark; a Spark that is there must start
PATIENCE, PAUSE = 180.0, 0.2  # seconds
SHELL_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT that answers carrier, flights, minutes and worst; over so many days, with live rows
    or without."""

    remark: str
    days: int
    live: bool
    sql: str


QUESTIONS = (
    Question(
        "Of the archive alone: how did the two smallest carriers do in the last two days?",
        2,
        False,
        "SELECT carrier, COUNT(*) AS flights, SUM(delay) AS minutes, MAX(delay) AS worst\nFROM "
        "ARCHIVE flights [RANGE 2 DAYS] WHERE carrier IN ('F9', 'HA') GROUP BY carrier ORDER BY "
        "carrier",
    ),
    Question(
        "Of the archive and what is still live together, back to the storm: who flew most?",
        12,
        True,
        "SELECT carrier, COUNT(*) AS flights, SUM(delay) AS minutes, MAX(delay) AS worst\nFROM "
        "flights [RANGE 12 DAYS ARCHIVE] GROUP BY carrier ORDER BY flights DESC, carrier LIMIT 3",
    ),
)
Shell = Callable[[str], str]


def tell(client: Client, winter: data.Winter, shell: Shell) -> list[str]:
    """Wait for Spark, ask, and tell the answers; returns what is missing or wrong.  Without Spark
    it says so."""
    print(show.title("The days that are over: the archive of `flights`, kept by Spark"), flush=True)
    try:
        upto = updated(client, winter.last)
    except DsmsError as problem:
        if problem.code not in NO_SPARK:
            return [f"the archive: {problem}"]
        print(
            f"{problem.code}: {problem.message}.  So the archive is not asked; its rows have "
            "landed all the same:\n"
        )
        print(status(client))
        return []
    except TimeoutError as problem:
        return [str(problem)]
    print(status(client))
    return [
        wrong for question in QUESTIONS for wrong in _ask(client, winter, shell, question, upto)
    ]


def updated(client: Client, last: int) -> int:
    """Wait until Spark has taken over all whole days before `last`; returns the instant up to which
    it has.

    Raises DsmsError if Spark can't be had, TimeoutError if it takes too long."""
    print("Spark may have to start; rows of past days are still landing.", flush=True)
    try:
        # starts Spark, or says why not
        client.query(f"SELECT COUNT(*) AS flights FROM ARCHIVE {STREAM} WITH (archive = spark)")
    except DsmsError as problem:
        if problem.code != OVERTAKEN:
            raise
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        now = archived(client)
        if (
            now["index_upto"] is not None
            and now["index_upto"] >= last - DAY
            and not now["landed_files"]
        ):
            return int(now["index_upto"])
        time.sleep(PAUSE)
    raise TimeoutError(
        f"Spark has not updated the archive within {PATIENCE:.0f} s: {archived(client)}"
    )


def archived(client: Client) -> dict[str, Any]:
    """What SHOW ARCHIVES says of the stream."""
    answer = client.query("SHOW ARCHIVES")
    (line,) = (
        dict(zip(answer.columns, row, strict=True)) for row in answer.rows if row[0] == STREAM
    )
    return line


def status(client: Client) -> str:
    """SHOW ARCHIVES, for people."""
    line = archived(client)
    shown = ("archive", "layout", "waiting", "landed_files", "index_rows", "index_bytes")
    upto = {f"{name} (UTC)": _utc(line[name]) for name in ("seam", "index_upto")}
    reported = {name: line[name] for name in shown} | upto
    return show.table(tuple(reported), [tuple(reported.values())])


def _utc(instant: int | None) -> str:
    return "-" if instant is None else f"{data.EPOCH + data.micros(instant):%d %b %H:%M:%S}"


def _ask(
    client: Client, winter: data.Winter, shell: Shell, question: Question, upto: int
) -> list[str]:
    print(
        f"\n{question.remark}\n\n{show.indent(question.sql)}\n\nWhat that reads of the archive, "
        "says EXPLAIN:\n"
    )
    print(show.indent(reads(client, question.sql)))
    text = shell(question.sql)
    print(
        f"\nand what the shell answers (dsms shell -c):\n\n{show.indent(text.rstrip())}", flush=True
    )
    reported, true = answered(text), recomputed(winter, question, upto)
    return [] if reported == true else [f"{question.sql}: {reported}, but recomputed {true}"]


def reads(client: Client, sql: str) -> str:
    """The lines of EXPLAIN that tell which files would be read, and which skipped."""
    lines = [row[0] for row in client.query(f"EXPLAIN {sql}").rows]
    return "\n".join(
        lines[next(i for i, line in enumerate(lines) if line.startswith("archive ")) :]
    )


def in_shell(port: int) -> Shell:
    """Runs one statement in a shell of its own; its output.  Raises RuntimeError if that fails."""

    def shell(sql: str) -> str:
        command = [sys.executable, "-m", "dsms_client", "shell", "--port", str(port), "-c", sql]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SHELL_SECONDS, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            raise RuntimeError(f"the shell ended with exit code {done.returncode}: {done.stderr}")
        return done.stdout

    return shell


def answered(text: str) -> list[tuple[str, int, int, int]]:
    """The rows of a table as the shell prints it."""
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in text.splitlines()
        if line.count("|") == 3
    ]
    return [
        (carrier, int(flights), int(minutes), int(worst))
        for carrier, flights, minutes, worst in rows[1:]
    ]


def recomputed(
    winter: data.Winter, question: Question, upto: int
) -> list[tuple[str, int, int, int]]:
    """The answer from the input.  upto: the archive alone has no later rows."""
    found = recompute.by_carrier(
        winter, winter.last, question.days * DAY, winter.last if question.live else upto
    )
    if question.live:
        return sorted(found, key=lambda row: (-row[1], row[0]))[:3]
    return sorted(row for row in found if row[0] in ("F9", "HA"))
