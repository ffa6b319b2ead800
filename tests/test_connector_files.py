"""Files that grow, are rotated and cut; files that sinks write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.connectors.world import World, world

STREAM = "CREATE STREAM s (k INT, v STRING)"
QUERY = "CREATE QUERY q AS SELECT k, v FROM s"


def source(options: str = "") -> str:
    return f"CREATE SOURCE f INTO s FROM file WITH (path = 'in.log'{options})"


def line(k: int) -> str:
    return json.dumps({"k": k, "v": "x" * 20}) + "\n"


def write(path: Path, *keys: int, mode: str = "a") -> None:
    with path.open(mode) as file:
        file.write("".join(map(line, keys)))


def keys(it: World) -> list[int]:
    return it.values("SELECT k FROM s [RANGE UNBOUNDED] ORDER BY k")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def test_a_file_that_grows_is_rotated_and_cut(files):
    path = files / "in.log"
    with world(files=(str(files),)) as it:
        it.run(STREAM, source())
        assert "there is no file in.log yet" in it.until("f", state="waiting")["last_error"]
        write(path, 1, 2)
        it.run("RESUME SOURCE f")
        it.until("f", rows=2)
        with path.open("a") as file:
            file.write(line(3)[:10])
        write(files / "other", 9)  # no concern of the source
        os.rename(path, files / "in.log.1")
        with (files / "in.log.1").open("a") as file:  # its writer still has it
            file.write(line(3)[10:] + line(4).rstrip("\n"))
        write(path, 5)
        it.until("f", rows=5)
        write(path, 6)
        it.until("f", rows=6)
        write(path, 7, mode="w")
        it.until("f", rows=7)
        assert keys(it) == [1, 2, 3, 4, 5, 6, 7]
        assert it.line("f")["rejected"] == 0


def test_a_restart_goes_on_in_the_file_that_it_was_in(files, tmp_path):
    path, data = files / "in.log", tmp_path / "data"
    options = {"files": (str(files),)}
    write(path, *range(10))
    with world(data, **options) as it:
        it.run(STREAM.replace(")", ") RETAIN 1 h"), source())
        it.until("f", rows=10)
    write(path, 10)
    os.rename(path, files / "in.log.2")
    write(files / "in.log.1", 11)
    write(path, 12)
    for at, name in enumerate(("in.log.2", "in.log.1", "in.log")):
        os.utime(files / name, (at, at))
    with world(data, **options) as it:
        it.until("f", rows=3)
        assert keys(it) == list(range(13))


def test_it_may_begin_at_the_end_and_have_a_line_of_names(files):
    path = files / "in.log"
    write(path, 1, 2)
    (files / "in.csv").write_text("v;K\nx;1\n")
    with world(files=(str(files),)) as it:
        it.run(STREAM, source(", begin = 'end'"))
        it.until("f", state="running")
        write(path, 3)
        it.until("f", rows=1)
        it.run(
            "CREATE SOURCE c INTO s FROM file WITH (path = 'in.csv', format = csv, header = TRUE, "
            "delimiter = ';')"
        )
        it.until("c", rows=1)
        with (files / "in.csv").open("a") as file:
            file.write("y;2\n")
        it.until("c", rows=2)
        assert it.ask("SELECT k, v FROM s [RANGE UNBOUNDED] ORDER BY k")[:2] == [
            {"k": 1, "v": "x"},
            {"k": 2, "v": "y"},
        ]


@pytest.mark.parametrize("path", ["../in.log", "/etc/passwd", "link"])
def test_files_elsewhere_are_not_there(files, path):
    (files / "link").symlink_to("/etc/passwd")
    with world(files=(str(files),)) as it:
        it.run(STREAM, source().replace("in.log", path))
        assert it.until("f", state="failed")["last_error"].startswith("DS665: there is no file")


def sink(options: str) -> str:
    return f"CREATE SINK t FROM q TO file WITH ({options})"


def test_lines_and_csv_are_appended_exactly_once(files, tmp_path):
    data, options = tmp_path / "data", {"sink_files": (str(files),)}
    with world(data, **options) as it:
        it.run(STREAM, QUERY, sink("path = 'out.csv', format = csv"))
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1, 2], "v": ["a", None]})
        it.until("t", "sink", rows=2)
    with (files / "out.csv").open("a") as file:
        file.write("what was written when the server died\n")
    with world(data, **options) as it:
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [3], "v": ["c"]})
        it.until("t", "sink", rows=1)
    assert (files / "out.csv").read_text() == '"k","v"\n1,"a"\n2,\n3,"c"\n'


def test_each_telling_is_a_file_of_parquet(files):
    with world(sink_files=(str(files),)) as it:
        it.run(STREAM, QUERY, sink("path = 'out', parquet = TRUE"))
        it.until("t", "sink", state="running")
        for k in (1, 2):
            it.client.ingest("s", {"k": [k]})
            it.until("t", "sink", rows=k)
        names = sorted(path.name for path in (files / "out").iterdir())
        assert names == ["t-000000000000000000.parquet", "t-000000000000000001.parquet"]
        assert pq.read_table(files / "out").column("k").to_pylist() == [1, 2]
