"""Carriers and hours of the day, clustered by how late their flights leave.

    python -m examples.spark.carriers ARCHIVE [--out FILE.png]

Each carrier's departures within an hour of the day are one point: their median delay, the delay
that one in ten of them exceeds, and the share that left more than fifteen minutes late; none of
these is moved by one flight that left a day late.  MLlib's k-means finds groups of such points.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from examples.flights.show import table
from examples.spark.flights import flights, options, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE = 15  # minutes
FEATURES = ("median", "p90", "late")
SEED = 1


@dataclass(frozen=True, slots=True)
class Point:
    """One carrier within one hour of the day; minutes, and a share of 0 to 1.  `cluster` 0 is the
    most punctual."""

    carrier: str
    hour: int
    flights: int
    median: float
    p90: float
    late: float
    cluster: int


def behaviour(flown: DataFrame, least: int) -> DataFrame:
    """carrier, hour, flights, median, p90 (of ten delays one is larger), late (a share), where
    `least` flights left."""
    from pyspark.sql import functions as f

    late = f.avg(f.when(f.col("delay") > LATE, 1.0).otherwise(0.0))
    found = flown.groupBy("carrier", "hour").agg(
        f.count("*").alias("flights"),
        f.percentile("delay", 0.5).alias("median"),
        f.percentile("delay", 0.9).alias("p90"),
        late.alias("late"),
    )
    return found.where(f.col("flights") >= least)


def clustered(points: DataFrame, k: int) -> list[Point]:
    """The points with their clusters, the most punctual one first; features count in standard
    deviations."""
    from pyspark.ml import Pipeline
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import StandardScaler, VectorAssembler

    stages = [
        VectorAssembler(inputCols=list(FEATURES), outputCol="raw"),
        StandardScaler(inputCol="raw", outputCol="features", withMean=True, withStd=True),
        KMeans(k=k, seed=SEED, featuresCol="features", predictionCol="cluster", maxIter=50),
    ]
    points = points.orderBy("carrier", "hour").coalesce(1).cache()  # the same start every time
    try:
        rows = (
            Pipeline(stages=stages).fit(points).transform(points).drop("raw", "features").collect()
        )
    finally:
        points.unpersist()
    return _numbered([Point(*(row[name] for name in Point.__slots__)) for row in rows])


def _numbered(points: list[Point]) -> list[Point]:
    from dataclasses import replace

    places = {c: _center(points, c)[1:] for c in {p.cluster for p in points}}
    number = {c: n for n, c in enumerate(sorted(places, key=places.__getitem__))}
    return sorted(
        (replace(p, cluster=number[p.cluster]) for p in points), key=lambda p: (p.carrier, p.hour)
    )


def _center(points: list[Point], cluster: int) -> tuple[float, float, float]:
    """Means of the features, each point counted once."""
    mine = [p for p in points if p.cluster == cluster]
    median, p90, late = (sum(getattr(p, name) for p in mine) / len(mine) for name in FEATURES)
    return median, p90, late


def printed(points: list[Point]) -> str:
    """The clusters as a table."""
    lines = []
    for cluster in sorted({p.cluster for p in points}):
        mine = [p for p in points if p.cluster == cluster]
        median, p90, late = _center(points, cluster)
        most = max(mine, key=lambda p: p.flights)
        shown = (f"{median:.1f}", f"{p90:.1f}", f"{late:.0%}", f"{most.carrier} at {most.hour}")
        lines.append((cluster + 1, len(mine), sum(p.flights for p in mine), *shown))
    return table(("cluster", "points", "flights", "median delay", "p90", "late", "busiest"), lines)


def draw(points: list[Point], out: Path) -> None:
    """Carriers by hours, each in its cluster's colour, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    carriers = sorted(
        {p.carrier for p in points}, key=lambda c: -sum(p.flights for p in points if p.carrier == c)
    )
    clusters = sorted({p.cluster for p in points})
    shades = pyplot.get_cmap("RdYlBu_r")
    figure, axes = pyplot.subplots(figsize=(9, 1.8 + 0.32 * len(carriers)), layout="constrained")
    for cluster in clusters:
        mine = [p for p in points if p.cluster == cluster]
        median, p90, late = _center(points, cluster)
        axes.scatter(
            [p.hour for p in mine],
            [carriers.index(p.carrier) for p in mine],
            s=190,
            marker="s",
            color=shades((cluster + 0.5) / len(clusters)),
            edgecolor="0.6",
            linewidth=0.5,
            label=f"median {median:+.0f} min, p90 {p90:+.0f}, {late:.0%} late",
        )
    axes.set_yticks(range(len(carriers)), carriers)
    axes.set_xticks(range(min(p.hour for p in points), max(p.hour for p in points) + 1))
    axes.margins(0.05, 0.08)
    axes.invert_yaxis()
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xlabel("hour of departure")
    axes.set_title("Carriers and hours by how late flights leave (k-means)", loc="left", size=11)
    figure.legend(loc="outside right upper", frameon=False, markerscale=0.7)
    figure.savefig(out, format="png", dpi=140)
    pyplot.close(figure)


def job(spark: SparkSession, args: argparse.Namespace) -> str:
    points = behaviour(flights(spark, args.archive, args.zone), args.least)
    if (count := points.count()) < args.clusters:
        return (
            f"{args.archive} has {count} carriers and hours with {args.least} flights, fewer "
            "than clusters: no picture."
        )
    found = clustered(points, args.clusters)
    draw(found, args.out)
    return f"{printed(found)}\n{args.out} shows carriers by hours."


def main(words: list[str] | None = None) -> int:
    parser = options("carriers", __doc__.splitlines()[0], "carriers.png")
    parser.add_argument("--clusters", type=int, default=4, metavar="K", help="groups to find (4)")
    parser.add_argument(
        "--least", type=int, default=20, metavar="N", help="flights that a point stands for (20)"
    )
    return run(job, parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
