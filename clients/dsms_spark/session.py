"""A Spark session for archives: embedded in this process unless a cluster is named."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import INSTALL_SPARK, UsageError
from dsms_spark.java import use_java
from dsms_spark.tasks import connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {  # what a session may change at any time
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # no job only to look at files
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
}
JOBS = {  # ... and of one that writes an archive: all rows in one job, or an error
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.files.maxRecordsPerFile": "0",
}
MASTERS = r"local(-cluster)?(\[[^\]]+\])?|spark://.+|k8s://.+|yarn|mesos://.+"
QUIET = ("py4j", "pyspark")
LOGGING = Path(__file__).with_name("log4j2.properties")


def get_session(
    master: str | None = None, memory: str | None = None, more: dict[str, Any] | None = None
) -> SparkSession:
    """The session of this process, made if there is none.

    master  `local[*]` unless said (or SPARK_MASTER is set); any Spark master, or `sc://host:port`
            for Spark Connect; under spark-submit what that was given
    memory  of an embedded driver, e.g. `4g`
    more    further settings of Spark
    Raises DS650 (no Java), DS651 (no pyspark), DS652 (Spark does not start), DS640 (no such master,
    no size of memory)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("DS651", "PySpark is not installed", hint=INSTALL_SPARK) from None
    # by spark-submit, which knows the master and all else
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = (
        master
        or os.environ.get("SPARK_MASTER")
        or ("as spark-submit says" if submitted else "local[*]")
    )
    _check(master, memory, submitted)
    _be_quiet()
    builder: Any = SparkSession.builder.appName("dsms")
    if submitted:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.config("spark.log.level", "ERROR")
    elif master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        use_java()
        builder = _embedded(builder.master(master), master, memory)
    for name, value in {**CONF, **(more or {})}.items():
        builder = builder.config(name, value)
    try:
        return prepared(builder.getOrCreate())
    except UsageError:
        raise
    except Exception as error:
        text = [line for line in str(error).strip().splitlines() if line] or [type(error).__name__]
        raise UsageError(
            "DS652",
            f"Spark does not start ({master}): {text[0]}",
            hint="check --master, the memory of the machine, and JAVA_HOME",
        ) from error


def _check(master: str, memory: str | None, submitted: bool) -> None:
    """Mistakes that can be found before Spark is started, whose messages are long.  Raises DS640,
    DS652."""
    if memory is not None and not re.fullmatch(r"\d+[kmgt]b?", memory, re.I):
        raise UsageError("DS640", f"{memory} is no size of memory", hint="write 512m or 4g")
    if submitted or master.startswith("sc://"):
        return
    if not re.fullmatch(MASTERS, master):
        raise UsageError(
            "DS640",
            f"{master} is no Spark master",
            hint="write local[*], spark://host:7077, yarn, k8s://..., or sc://host:15002",
        )
    if os.name != "nt" and shutil.which("bash") is None:
        raise UsageError(
            "DS652",
            "Spark does not start: its script needs bash, and the PATH has none",
            hint="install bash, or add its folder to the PATH",
        )


def _embedded(builder: Any, master: str, memory: str | None) -> Any:
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
    }
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # not the first python3 of the PATH
        options |= {
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    if memory is not None:
        options["spark.driver.memory"] = memory
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder


def _be_quiet() -> None:
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")


def prepared(spark: SparkSession) -> SparkSession:
    """A session, made here or given, with the options that archives need."""
    for name, value in CONF.items():
        spark.conf.set(name, value)
    return spark


@contextmanager
def sister_of(spark: SparkSession) -> Iterator[SparkSession]:
    """A session beside this one, with views and settings of its own; afterwards this one is the
    active one again, which is where Spark looks for data sources."""
    try:
        yield prepared(spark.newSession())
    finally:
        spark.createDataFrame([], "x int")  # Spark has no other word for "be the active one"


@contextmanager
def for_jobs(spark: SparkSession) -> Iterator[SparkSession]:
    """A session for a job that writes: a sister of this one, with settings of its own, where there
    are such (Spark Connect has none: there this one, with its settings changed meanwhile)."""
    if not connected(spark):
        with sister_of(spark) as sister:
            for name, value in JOBS.items():
                sister.conf.set(name, value)
            yield sister
        return
    wanted = {**CONF, **JOBS}
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)
