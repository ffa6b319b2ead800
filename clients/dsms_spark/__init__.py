"""Spark's side of dsms: archive jobs, archive queries, and the data source `dsms`.  Needs the extra
`spark`.

import dsms_spark
dsms_spark.register(spark)
spark.read.format("dsms").option("path", "dsms-data/archive/flights").load()
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> Any:
    """Make the format `dsms` known to a Spark session (also one of Spark Connect); returns the
    session.

    On one machine (`local[...]`) its workers run the Python that runs here, unless PYSPARK_PYTHON
    names another; on a cluster PYSPARK_PYTHON, or spark.pyspark.python, should name one that has
    dsms."""
    from dsms_spark.python import use_python
    from dsms_spark.source import DsmsDataSource

    use_python(spark)
    spark.dataSource.register(DsmsDataSource)
    # conditions choose an archive's files
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return spark
