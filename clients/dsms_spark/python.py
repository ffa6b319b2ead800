"""Which Python Spark's workers run: on one machine the one that runs here, since it has dsms.

Unless PYSPARK_PYTHON says another, Spark starts the first `python3` of the PATH, which is not that
of a virtual environment that is not activated.  What runs a data source is settled when it is
registered.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from dsms_spark.tasks import connected

VARIABLE, SETTING = "PYSPARK_PYTHON", "spark.pyspark.python"


def use_python(spark: Any) -> None:
    """Let the workers of this session run a Python that has dsms, as far as can be known.  On a
    cluster for which none is named, a warning says what to set; a server of Spark Connect has
    chosen when it was started."""
    if connected(spark) or VARIABLE in os.environ:
        return
    context = spark.sparkContext
    named = context.getConf().get(SETTING)
    if named is not None or context.master.startswith("local"):
        context.pythonExec = named or sys.executable
        return
    warnings.warn(
        f"workers of {context.master} run the first {context.pythonExec} of their PATH: set "
        f"{VARIABLE}, or {SETTING}, to one that has dsms before the session is made",
        stacklevel=3,
    )
