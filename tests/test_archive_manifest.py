"""Manifests: written whole, read as they were, the newest that can be read counts; which files a
reader needs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, FOREVER, INT, STRING, TIMESTAMP, Field, decimal
from dsms.storage.archive.landing import LandedFile
from dsms.storage.archive.manifest import Archive, IndexFile, Manifest, create, read_manifest
from dsms.storage.archive.prune import KeyRange, plan
from dsms.storage.archive.schema import merged, schema_of, schema_record, unlike
from dsms.storage.archive.store import Store, file_system
from tests.archive_index import EVERY, SCHEMA, S, end_of, land, layout, made, rows, updated


def manifest(**more) -> Manifest:
    files = (
        IndexFile("index/1/a", 0, 3, 10, (0, 5), (7, 9), ("a", "c"), 8),
        IndexFile("index/1/b", 1, 1, 5, (2, 2), (9, FOREVER), None, None),
    )
    return Manifest("s", "stream", SCHEMA, "k", layout(), 5 * S, 3, 17, 4, files, **more)


@pytest.mark.parametrize("key", [("a", "ü"), (-5, 2**63 - 1), (-0.5, 1e300), (b"\0\xff", b""),
                                 (False, True),
                                 (Decimal("-1.50"), Decimal("9" * 38)),
                                 None])  # a long list  # fmt: skip
def test_a_manifest_comes_back_as_it_was(key) -> None:
    files = (IndexFile("p", 1, 2, 3, (ALWAYS + 1, 2), (3, FOREVER), key, 5),)
    schema = (*SCHEMA, Field("d", decimal(38, 10), None, False), Field("t", TIMESTAMP))
    first = Manifest(
        "s", "query", schema, None, layout(3, 1, None, order="chronological"), None, 7, 8, 9, files
    )
    assert read_manifest(first.serialized(), "here") == first
    assert first.next(upto=10) == Manifest(
        **{f: getattr(first, f) for f in first.__slots__} | {"number": 8, "upto": 10}
    )
    assert (first.rows, first.bytes) == (2, 3)


def test_any_change_of_a_manifest_is_noticed() -> None:
    text = manifest().serialized()
    other = json.dumps({**json.loads(text), "files": 5})
    for damage in (
        text[:-20],
        text.replace('"rows": 3', '"rows": 4'),
        "",
        "[]",
        "{}",
        text.replace("INT", "IN"),
        other,
    ):
        with pytest.raises(UsageError, match="here is damaged") as caught:
            read_manifest(damage, "here")
        assert caught.value.code == "DS951"


@pytest.mark.parametrize(("version", "what"), [(3, "a newer dsms"), (0, "an older dsms")])
def test_other_layouts_of_files_are_refused_with_a_way_out(version: int, what: str) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        read_manifest(manifest(version=version).serialized(), "here")
    assert caught.value.code == "DS952" and ("export" in caught.value.hint) == (version == 0)


def test_where_the_newest_is_damaged_the_one_before_counts_and_the_next_update_goes_on(
    tmp_path: Path,
) -> None:
    archive = made(tmp_path / "a")
    for step in range(3):
        land(archive, step, 30, start=step * 30, span=10**15)
        updated(archive)
    last = archive.numbers()[-1]
    Path(archive.path(f"manifest-{last:012d}.json")).write_text("{")
    assert archive.manifest().upto == end_of(1)
    assert updated(archive).upto == end_of(2)
    assert archive.manifest().number == last + 1 and archive.manifest().rows == 90
    land(archive, 3, 30, start=90, span=10**15)
    updated(archive)
    land(archive, 4, 0)
    updated(archive)
    assert last not in archive.numbers()
    for number in archive.numbers():
        Path(archive.path(f"manifest-{number:012d}.json")).write_text("{")
    with pytest.raises(UsageError) as caught:
        archive.manifest()
    assert caught.value.code == "DS951"


def test_there_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no archive at") as caught:
        Archive(str(tmp_path / "x")).manifest()
    assert caught.value.code == "DS953"


def test_one_of_two_makes_it(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a"), made(tmp_path / "a")
    assert first.manifest() == second.manifest() and first.numbers() == [1]
    assert not first.write(b"x", "manifest-000000000001.json", new=True)
    assert [n for n in first.names() if n.startswith(".manifest")] == []


def test_a_longer_life_and_another_key(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    land(archive, 0, 30)
    updated(archive)
    assert all(f.key is not None for f in archive.manifest().files)
    create(archive.url, "s", "stream", SCHEMA, "v", layout(), 99 * EVERY)
    found = archive.manifest()
    assert (found.key, found.lifetime, found.layout.span) == ("v", 99 * EVERY, 99 * EVERY)
    assert all(f.key is None for f in found.files)
    land(archive, 1, 30, start=30)
    updated(archive)
    create(archive.url, "s", "stream", SCHEMA, "v", layout(), None)
    assert archive.manifest().lifetime is None and archive.manifest().layout.span == 99 * EVERY
    forever = made(tmp_path / "b", layout(3, 1, None))
    create(forever.url, "s", "stream", SCHEMA, "k", layout(), 5 * EVERY)
    assert forever.manifest().layout == layout(3, 1, 5 * EVERY)


# -- columns


def test_columns_as_text_and_how_they_may_change() -> None:
    schema = (*SCHEMA, Field("d", decimal(5, 2), None, False))
    assert schema_of(schema_record(schema)) == schema
    wider = merged(SCHEMA, (Field("n", INT), SCHEMA[1]), "here")
    assert [f.name for f in wider] == ["n", "v", "k", "x", "at"]
    with pytest.raises(
        UsageError,
        match=r"column k of the archive here is STRING, not INT; column v of .* not STRING",
    ):
        merged(SCHEMA, (Field("k", INT), Field("v", STRING)), "here")


def test_files_that_fit_and_files_that_do_not() -> None:
    table = rows(0, 3)
    assert unlike(table.drop_columns("x").schema, SCHEMA) is None
    large = table.set_column(0, "k", table.column("k").cast(pa.large_string()))
    assert unlike(large.schema, SCHEMA) is None
    assert unlike(table.drop_columns("__exp").schema, SCHEMA) == "column __exp is missing"
    assert (
        unlike(table.append_column("k", table.column("k")).schema, SCHEMA)
        == "column k is there twice"
    )
    naive = table.set_column(3, "at", table.column("at").cast(pa.timestamp("us")))
    assert "column at is timestamp[us], not timestamp[us, tz=UTC]" in str(
        unlike(naive.schema, SCHEMA)
    )


# -- which files are read


FILES = (
    IndexFile("a", 0, 5, 100, (0, 9), (20, 29), ("a", "f")),
    IndexFile("b", 1, 5, 200, (10, 19), (30, 39), ("g", "k")),
    IndexFile("c", 2, 5, 400, (0, 19), (40, FOREVER), None),
)
LANDED = (
    LandedFile(3, "old", 5, 1000, (15, 19), (50, 60), 19),
    LandedFile(5, "new", 5, 800, (20, 25), (50, 60), 29),
    LandedFile(6, "bad", 0, 0, (FOREVER, ALWAYS), (FOREVER, ALWAYS), ALWAYS, "it is damaged"),
)


@pytest.mark.parametrize(
    ("asked", "paths"),
    [
        ({}, "a b c new"),
        ({"since": 9}, "b c new"),
        ({"since": 19}, "new"),
        ({"upto": 9}, "a c"),
        ({"upto": 20}, "a b c new"),
        ({"as_of": 28}, "a b c new"),
        ({"as_of": 29}, "b c new"),
        ({"as_of": 60}, "c"),
        ({"key": KeyRange(values=("b",))}, "a c new"),
        ({"key": KeyRange(values=("b", "h"))}, "a b c new"),
        ({"key": KeyRange(values=())}, "c new"),
        ({"key": KeyRange(low="g")}, "b c new"),
        ({"key": KeyRange(high="f")}, "a c new"),
        ({"key": KeyRange(low="l", high="z"), "as_of": 60}, "c"),
        ({"key": KeyRange(low=5)}, "a b c new"),
    ],
)
def test_files_that_can_not_matter_are_left_out(asked, paths: str) -> None:
    whole = Manifest("s", "stream", SCHEMA, "k", layout(), None, 1, 19, 4, FILES)
    found = plan(whole, LANDED, **asked)
    assert found.paths == paths.split()
    sizes = {"a": 100, "b": 200, "c": 400, "new": 800}
    assert found.read_bytes == sum(sizes[p] for p in paths.split())
    assert (found.read_bytes + found.skipped_bytes, len(found.paths) + found.skipped_files) == (
        1500,
        4,
    )
    assert [f.path for f in found.damaged] == ["bad"] and found.all_subs == 3


# -- places


def test_places(tmp_path: Path) -> None:
    assert file_system(f"file://{tmp_path}")[1] == str(tmp_path) == file_system(f"{tmp_path}/")[1]
    store = Store(f"{tmp_path}/new")
    assert store.names() == [] and not store.exists("x")
    store.write(b"1", "folder", "x")
    store.write(b"2", "folder", "x")
    assert store.read("folder", "x") == b"2" and store.names("folder") == ["x"]
    store.move("folder/x", "other/y")
    store.sync(["other/y"])
    assert [i.path for i in store.infos(recursive=True) if i.is_file] == [f"{tmp_path}/new/other/y"]
    store.remove("other")
    store.remove("other")
    assert store.names("other") == []
    with pytest.raises(UsageError, match=r"other/y can't be used: .*[Nn]o such file") as caught:
        store.read("other", "y")
    assert caught.value.code == "DS955"


def test_object_stores_are_told_to_spark_by_hadoops_name() -> None:
    store = Store("s3://bucket/a/b?region=eu-west-1")
    assert (store.root, store.local) == ("bucket/a/b", False)
    assert store.location("index/x") == "s3a://bucket/a/b/index/x"
    assert Store("s3a://bucket/a?region=eu-west-1").location("x") == "s3a://bucket/a/x"
