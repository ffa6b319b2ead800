"""The worst routes of each day, and how they changed from the week before.

    python -m examples.spark.worst_routes ARCHIVE [--out FILE.png]

A route is as bad as its mean delay of the day.  Its change is against its mean delay over all
flights of the seven days before; where the archive does not reach back that far, or the route was
not flown then, there is none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from examples.flights.show import table
from examples.spark.flights import flights, options, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

WEEK = 7
SHOWN = 31  # days in the picture, the last ones


def worst(flown: DataFrame, top: int, least: int) -> DataFrame:
    """The `top` routes of each day with the largest mean delay, of those with at least `least`
    flights.

    day, rank (1 is the worst), origin, dest, flights, mean, before (mean of the seven days before,
    or NULL), change"""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    number = f.datediff("day", f.lit("1970-01-01").cast("date"))
    days = flown.groupBy("origin", "dest", "day").agg(
        f.count("*").alias("flights"), f.sum("delay").alias("minutes")
    )
    days = days.withColumn("number", number).withColumn("mean", f.col("minutes") / f.col("flights"))
    week = Window.partitionBy("origin", "dest").orderBy("number").rangeBetween(-WEEK, -1)
    first = days.agg(f.min("number").alias("first"))
    before = f.when(
        f.col("number") >= f.col("first") + WEEK, f.col("minutes_before") / f.col("flights_before")
    )
    known = (
        days.withColumn("minutes_before", f.sum("minutes").over(week))
        .withColumn("flights_before", f.sum("flights").over(week))
        .crossJoin(f.broadcast(first))
        .withColumn("before", before)
        .withColumn("change", f.col("mean") - f.col("before"))
    )
    of_day = Window.partitionBy("day").orderBy(f.desc("mean"), "origin", "dest")
    ranked = known.where(f.col("flights") >= least).withColumn("rank", f.row_number().over(of_day))
    wanted = ("day", "rank", "origin", "dest", "flights", "mean", "before", "change")
    return ranked.where(f.col("rank") <= top).select(*wanted).orderBy("day", "rank")


def printed(rows: list[Row]) -> str:
    """As a table: each day's routes, minutes of delay."""
    lines = [
        (
            f"{r.day:%a %d %b %Y}" if r["rank"] == 1 else "",
            f"{r.origin}-{r.dest}",
            r.flights,
            f"{r.mean:.1f}",
            "-" if r.before is None else f"{r.before:.1f}",
            "-" if r.change is None else f"{r.change:+.1f}",
        )
        for r in rows
    ]
    return table(("day", "route", "flights", "mean delay", "week before", "change"), lines)


def draw(rows: list[Row], out: Path) -> None:
    """The worst route of each day and what it was like in the week before, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [r for r in rows if r["rank"] == 1][-SHOWN:]
    figure, axes = pyplot.subplots(figsize=(8, 1.6 + 0.27 * len(shown)), layout="constrained")
    places = range(len(shown))
    for y, row in zip(places, shown, strict=True):
        if row.before is not None:
            axes.plot((row.before, row.mean), (y, y), color="0.75", zorder=1)
        axes.annotate(
            f"{row.origin}–{row.dest}",
            (row.mean, y),
            (8, 0),
            textcoords="offset points",
            va="center",
            size=8,
        )
    old = [(r.before, y) for y, r in zip(places, shown, strict=True) if r.before is not None]
    style = {"facecolor": "white", "edgecolor": "0.45"}
    axes.scatter([x for x, _ in old], [y for _, y in old], label="the seven days before", **style)
    axes.scatter([r.mean for r in shown], places, color="#b2182b", label="that day")
    axes.set_yticks(places, [f"{r.day:%a %d %b}" for r in shown])
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("mean delay of departures, minutes")
    axes.set_title("The worst route of each day", loc="left")
    axes.legend(frameon=False, loc="best")
    figure.savefig(out, format="png", dpi=140)
    pyplot.close(figure)


def job(spark: SparkSession, args: argparse.Namespace) -> str:
    rows = worst(flights(spark, args.archive, args.zone), args.top, args.least).collect()
    if not rows:
        return f"No route has {args.least} flights on a day in {args.archive}: no picture."
    draw(rows, args.out)
    return f"{printed(rows)}\n{args.out} shows the worst route of each day."


def main(words: list[str] | None = None) -> int:
    parser = options("worst_routes", __doc__.splitlines()[0], "worst_routes.png")
    parser.add_argument("--top", type=int, default=3, metavar="N", help="routes of each day (3)")
    parser.add_argument(
        "--least", type=int, default=4, metavar="N", help="flights that a route has on the day (4)"
    )
    return run(job, parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
