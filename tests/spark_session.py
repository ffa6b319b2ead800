"""One Spark session for all tests that need one; they are skipped where there is no PySpark or no
Java."""

from __future__ import annotations

import os

import pytest

from tests.effort import effort

# Each JVM of a test lives for seconds, be it a server's Spark or spark-submit: compile quickly,
# collect simply.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(_name, BRIEF)
SMALL = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
BRIEFLY = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark():
    """Small, quiet, and with `make test` without Java that is compiled for each query: rows are few
    there."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (pip install '.[spark]')")
    from dsms.errors import UsageError
    from dsms_spark.session import get_session

    try:
        session = get_session("local[2]", "1g", SMALL | ({} if effort() else BRIEFLY))
    except UsageError as error:
        if error.code == "DS650":
            pytest.skip(error.message)
        raise
    yield session
    session.stop()
