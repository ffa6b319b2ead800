"""The format `dsms` in a session of the user's own, under a Python that is not the first `python3`
of the PATH."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

import dsms
from dsms.errors import UsageError
from dsms_client import connect
from dsms_spark.java import find_java
from tests.effort import SLOW
from tests.server.harness import Running

pytestmark = pytest.mark.xdist_group("spark")
STREAM = "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY"
SCRIPT = """
import sys
from pyspark.sql import SparkSession
from dsms_spark.java import use_java
import dsms_spark

use_java()  # a Java of the machine
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "512m").getOrCreate())
dsms_spark.register(spark)
source = spark.read.format("dsms").option("server", sys.argv[1]).option("sql", "SELECT k FROM s [RANGE 1 DAY]")
print(sorted(row.k for row in source.load().collect()))
frame = spark.createDataFrame([(7, 9)], "k long, t long").selectExpr("k", "timestamp_micros(t) AS t")
frame.write.format("dsms").option("server", sys.argv[1]).option("stream", "s").mode("append").save()
print(source.load().count())
"""  # noqa: E501


@pytest.fixture
def server():
    running = Running(dsms.Engine())
    yield running
    running.stop()


@SLOW
def test_workers_run_the_python_that_registered(server, tmp_path):
    """The environment is not activated, and the first python3 of the PATH has nothing."""
    pytest.importorskip("pyspark")
    try:
        find_java()
    except UsageError as error:
        pytest.skip(error.message)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexec /usr/bin/env -i /bin/sh -c 'echo no dsms here >&2; exit 1'\n")
    other.chmod(0o755)
    left_out = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    with connect(port=server.port) as client:
        client.execute(STREAM)
        client.ingest("s", [[1, 0], [2, 1]])
        client.heartbeat("s", 2)
    words = [sys.executable, "-c", SCRIPT, f"127.0.0.1:{server.port}"]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[:2] == ["[1, 2]", "2"]
    with connect(port=server.port) as client:
        client.heartbeat("s", 9)
        assert client.query("SELECT COUNT(*) FROM s [RANGE 1 DAY]").rows == [(3,)]


class Session:
    """As much of a session as registering asks for."""

    def __init__(self, master, settings=()):
        conf = SimpleNamespace(get=dict(settings).get)
        self.sparkContext = SimpleNamespace(
            master=master, pythonExec="python3", getConf=lambda: conf
        )
        self.dataSource = SimpleNamespace(
            register=lambda source: self.seen.append(self.sparkContext.pythonExec)
        )
        self.conf = SimpleNamespace(set=lambda name, value: None)
        self.seen = []


@pytest.mark.parametrize(
    ("master", "settings", "variable", "runs", "warned"),
    [
        ("local[4]", {}, None, sys.executable, False),
        ("local", {"spark.pyspark.python": "/opt/python"}, None, "/opt/python", False),
        ("local[4]", {}, "/opt/python", "python3", False),  # Spark has read the variable itself
        ("spark://host:7077", {}, None, "python3", True),
        ("yarn", {"spark.pyspark.python": "/opt/python"}, None, "/opt/python", False),
        ("yarn", {}, "/opt/python", "python3", False),
    ],
)
def test_what_is_said_is_kept(monkeypatch, master, settings, variable, runs, warned):
    source = pytest.importorskip("dsms_spark.source")
    assert source
    import dsms_spark

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if variable:
        monkeypatch.setenv("PYSPARK_PYTHON", variable)
    session = Session(master, settings)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dsms_spark.register(session)
    assert session.seen == [runs]
    assert [str(w.message) for w in said] == warned * [
        f"workers of {master} run the first python3 of their PATH: set PYSPARK_PYTHON, or "
        "spark.pyspark.python, to one that has dsms before the session is made"
    ]
