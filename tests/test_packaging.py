"""What the wheel holds, and that it works without this tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dsms
from tests.waiting import WAIT

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(out),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=WAIT)
    (found,) = out.glob("*.whl")
    return found


def test_contents(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"dsms-{dsms.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {
        "dsms",
        "dsms_client",
        "dsms_server",
        "dsms_spark",
        info,
    }
    assert {
        "dsms/grammar/cql.lark",
        "dsms/grammar/reference.md",
        "dsms_spark/log4j2.properties",
        "dsms/py.typed",
        "dsms_client/notebook/live.js",
        "dsms_client/py.typed",
    } <= names
    ours = [
        path
        for top in (ROOT / "dsms", ROOT / "server", ROOT / "clients")
        for path in top.rglob("*.py")
    ]
    missing = {
        f"{p.relative_to(ROOT)}".removeprefix("server/").removeprefix("clients/") for p in ours
    } - names
    assert missing == set()
    assert [n for n in names if n.endswith((".pyc", ".nbi", ".nbc")) or "/warm-" in n] == []


def test_metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        info = f"dsms-{dsms.__version__}.dist-info"
        metadata, entry = (
            archive.read(f"{info}/{name}").decode() for name in ("METADATA", "entry_points.txt")
        )
    assert "License-Expression: Apache-2.0" in metadata
    assert set(re.findall(r"Provides-Extra: (\w+)", metadata)) == {
        "spark",
        "test",
        "bench",
        "demo",
        "docs",
        "encryption",
        "notebook",
        "avro",
        "kafka",
        "mqtt",
        "nats",
        "postgres",
        "rabbitmq",
        "redis",
    }
    assert "dsms = dsms_client.cli:main" in entry


def test_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import dsms, dsms_client, dsms_server, dsms.sql.grammar as g\n"
        "print(dsms.__file__, dsms_client.__file__, dsms_server.__file__, g.__file__, sep='\\n')\n"
        "print(dsms.Engine().execute('SELECT 6 * 7 AS answer')[0].data.to_pylist())"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    *files, answer = run.stdout.splitlines()
    assert run.stderr == ""
    assert all(Path(file).is_relative_to(tmp_path) for file in files), files
    assert answer == "[{'answer': 42}]"


def test_the_image_copies_what_the_wheel_is_made_of():
    """No engine here builds the image; so at least every source of a COPY exists and is let
    through."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copies = [
        line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line
    ]
    let_through = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    sources = [source for copy in copies for source in copy]
    assert sorted(sources) == sorted(let_through)
    assert [s for s in sources if not (ROOT / s).exists()] == []
    included = re.findall(r'"([\w/]+)" = "dsms/', (ROOT / "pyproject.toml").read_text())
    packages = re.search(r"^packages = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.M)
    assert packages is not None
    needed = [name.strip(' "').split("/")[0] for name in packages[1].split(",")] + included
    assert {*needed, "pyproject.toml", "README.md", "LICENSE"} <= set(sources)
