"""Classes of the broker as the JVM keeps them in memory (class-data sharing).

The archive is made once, at install: no start reads, checks and links 7,000 classes from jars.
`broker.classes.gz` lists the classes, in the JVM's own form: what a broker with the settings of
`penstock/mesh/kafka.py` had loaded when it was ready (`-XX:DumpLoadedClassList`). A class that a
jar no longer has is left out by the JVM. It uses the archive only with the jars and the Java it was
made with, and else starts without it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from penstock.setup.jars import cache_directory
from penstock.setup.java import Java

#: the JVM finds what it cannot use by itself, and has nothing to say about it
_QUIET = "-Xlog:cds=off"
_DUMP_SECONDS = 600.0


def make_archive(java: Java, jars: list[Path]) -> None:
    """Make the archive of these *jars* for *java*, if it is not there. Where that cannot be, an
    empty file says so, and nobody tries again.
    """
    archive = _place(java, jars)
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        fresh = Path(scratch) / archive.name
        listed = Path(scratch) / "classes"
        listed.write_bytes(_class_list())
        dump = [
            *(
                "-Xshare:dump",
                f"-XX:SharedClassListFile={listed}",
                f"-XX:SharedArchiveFile={fresh}",
            ),
            *("-XX:+UseG1GC", _QUIET, "-cp", _class_path(jars)),
        ]
        try:
            done = subprocess.run(
                [java.executable, *dump], capture_output=True, timeout=_DUMP_SECONDS
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            done = 1
        if done or not fresh.exists():
            fresh.write_bytes(b"")
        fresh.replace(archive)


def archive_options(java: Java, jars: list[Path]) -> list[str]:
    """Return the JVM's options that use the archive; none when there is none."""
    archive = _place(java, jars)
    if not archive.exists() or not archive.stat().st_size:
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _QUIET]


def _place(java: Java, jars: list[Path]) -> Path:
    """Return where the archive for this Java, these jars and this list of classes lies."""
    runtime = java.home / "lib" / "server" / "libjvm.so"
    about = (runtime if runtime.exists() else java.executable).stat()
    key = f"{java.executable} {about.st_size} {about.st_mtime_ns} {_class_path(jars)}".encode()
    digest = hashlib.sha256(key + _class_list()).hexdigest()[:16]
    return cache_directory() / "classes" / f"broker-{digest}.jsa"


def _class_path(jars: list[Path]) -> str:
    return os.pathsep.join(str(jar) for jar in jars)


def _class_list() -> bytes:
    return gzip.decompress(files("penstock.setup").joinpath("broker.classes.gz").read_bytes())
