"""Two jobs on one archive: leases, and what of others a sweep leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsms.errors import UsageError
from dsms.sql.types import INT, Field
from dsms.storage.archive import lease as leases
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.lease import LEASE, Lease, holder_of, leased, renew
from dsms.storage.archive.manifest import INDEX
from dsms.storage.archive.schema import EXP, ID, TS, stored_schema
from tests.archive_index import (
    SCHEMA,
    end_of,
    land,
    made,
    on_disk,
    updated,
)


def test_a_second_job_is_refused_and_a_dead_one_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = made(tmp_path / "a")
    land(archive, 0, 10)
    with leased(archive, "a migration"):
        with pytest.raises(
            UsageError, match=rf"process {os.getpid()} on .* is at work on .* \(a migration\)"
        ) as caught:
            updated(archive)
        assert caught.value.code == "DS959" and LEASE in (caught.value.hint or "")
        with monkeypatch.context() as patch, pytest.raises(UsageError, match="DS959"):
            patch.setattr(Landing, "verified", lambda *_: pytest.fail("it has no business there"))
            updated(archive)
    assert holder_of(archive) is None
    alive, here = os.getppid(), leases.platform.node()
    for pid, began, host, dead in [
        (4_000_000, "1", here, True),
        (alive, "1", here, True),
        (alive, leases._birth(alive), here, False),
        (os.getpid(), leases._birth(os.getpid()), here, True),
        (1, "1", "elsewhere", False),
    ]:
        archive.write(Lease("t", "an update", host, pid, began, 1000).serialized(), LEASE)
        if not dead:
            with (
                pytest.raises(UsageError, match=f"process {pid} on {host}"),
                leased(archive, "x", 2000),
            ):
                pass
            archive.remove(LEASE)
        else:
            with leased(archive, "x"):
                pass
    assert updated(archive).taken == 10


def test_a_job_elsewhere_that_is_silent_for_long_is_dead(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    away = Lease("t", "an update", "elsewhere", 7, "1", 1000)
    archive.write(away.serialized(), LEASE)
    renew(archive, away, 5000)
    with pytest.raises(UsageError, match="DS959"), leased(archive, "x", 5000 + leases.SILENCE):
        pass
    with (
        leased(archive, "x", 5001 + leases.SILENCE),
        pytest.raises(UsageError, match="taken over") as caught,
    ):
        renew(archive, away, 9000)
    assert caught.value.code == "DS954"


def test_a_lease_that_nobody_can_read_is_respected(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    archive.write(b"{", LEASE)
    with pytest.raises(UsageError, match="somebody is at work"), leased(archive, "x"):
        pass


def test_two_that_publish_are_told_apart_and_declarations_do_not_disturb(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    land(archive, 0, 10)
    before = archive.manifest()
    updated(archive)
    with pytest.raises(UsageError) as caught:
        archive.publish(before.next())
    assert caught.value.code == "DS954"
    with pytest.raises(UsageError) as caught:
        archive.commit(before, lambda m: m)
    assert caught.value.code == "DS954"
    base = archive.manifest()
    made(tmp_path / "a", schema=(*SCHEMA, Field("more", INT)))
    done = archive.commit(base, lambda m: m.next(upto=end_of(9)))
    assert [f.name for f in done.schema][-1] == "more" and done.upto == end_of(
        9
    ) == archive.manifest().upto


def test_sweeping_leaves_what_is_not_ours(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    archive.write(b"a note", "README")
    land(archive, 0, 10)
    archive.write(b"leftover", INDEX, "000000000009-dead", "x.parquet")
    updated(archive)
    assert archive.read("README") == b"a note" and not any("dead" in p for p in on_disk(archive))
    assert stored_schema(SCHEMA).names[-3:] == [TS, EXP, ID]
