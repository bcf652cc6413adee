"""Classes of the broker and of Spark as the JVM keeps them in memory (class-data sharing).

An archive is made once, at install: no start reads, checks and links thousands of classes from
jars. `NAME.classes.gz` lists the classes, in the JVM's own form: what the program had loaded when
it was at work (`-XX:DumpLoadedClassList`). A class that a jar no longer has is left out by the JVM.
It uses an archive only with the jars and the Java it was made with, and else starts without it.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

from penstock.setup.jars import cache_directory
from penstock.setup.java import Java
from penstock.setup.jvm_programs import JvmProgram

#: the JVM finds what it cannot use by itself, and has nothing to say about it
_QUIET = "-Xlog:cds=off"
#: mapped where it was made for: elsewhere, which is what Java does if nothing is said, each JVM
#: writes into nearly every page of its own copy
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_DUMP_SECONDS = 600.0


def make_archives(java: Java, programs: list[JvmProgram]) -> None:
    """Make the archives of *programs* that are not there, beside each other."""
    with ThreadPoolExecutor(thread_name_prefix="archive") as pool:
        for _ in pool.map(lambda program: make_archive(java, program), programs):
            pass


def make_archive(java: Java, program: JvmProgram) -> None:
    """Make the archive of *program* for *java*, if it is not there, and remove those that it had
    before. Where that cannot be, an empty file says so, and nobody tries again.
    """
    archive = _place(java, program)
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        fresh = Path(scratch) / archive.name
        listed = Path(scratch) / "classes"
        listed.write_bytes(_class_list(program.name))
        dump = [
            *(
                "-Xshare:dump",
                f"-XX:SharedClassListFile={listed}",
                f"-XX:SharedArchiveFile={fresh}",
            ),
            *(*_IN_PLACE, "-XX:+UseG1GC", _QUIET, "-cp", program.joined),
        ]
        try:
            done = subprocess.run(
                [java.executable, *dump], capture_output=True, timeout=_DUMP_SECONDS
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            done = 1
        if done or not fresh.exists():
            fresh.write_bytes(b"")
        for former in archive.parent.glob(f"{_name(program)}-*.jsa"):
            # a JVM that runs keeps what it has mapped
            former.unlink(missing_ok=True)
        fresh.replace(archive)


def archive_options(java: Java, program: JvmProgram) -> list[str]:
    """Return the JVM's options that use the archive; none when there is none."""
    archive = _place(java, program)
    if not archive.exists() or not archive.stat().st_size:
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _QUIET, *_IN_PLACE]


def _place(java: Java, program: JvmProgram) -> Path:
    """Return where the archive for this Java, these jars and this list of classes lies."""
    runtime = java.home / "lib" / "server" / "libjvm.so"
    made_with = [runtime if runtime.exists() else java.executable.resolve(), *program.files()]
    about = [(path, path.stat()) for path in made_with]
    key = "\n".join(
        [*_IN_PLACE, *(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in about)]
    )
    digest = _digest(key.encode() + _class_list(program.name))
    return cache_directory() / "classes" / f"{_name(program)}-{digest}.jsa"


def _name(program: JvmProgram) -> str:
    """Return what the names of all archives of a program at its place begin with."""
    return f"{program.name}-{_digest(program.joined.encode())}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _class_list(name: str) -> bytes:
    return gzip.decompress(files("penstock.setup").joinpath(f"{name}.classes.gz").read_bytes())
