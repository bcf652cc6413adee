"""What a JVM has learned in a training run: an ahead-of-time cache (JEP 483, 514 and 515).

The cache holds classes as the JVM keeps them in memory, already linked, and which methods are worth
compiling. A start without it finds, reads, checks and links thousands of classes from jars, and
learns what to compile by running it slowly (docs/performance.md). `penstock.mesh.training` makes
it, once, at install. The JVM uses a cache only with the jars and the Java it was made with, and
else starts without it.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from penstock import installed
from penstock.errors import StateError
from penstock.setup.jars import cache_directory
from penstock.setup.java import Java
from penstock.setup.jvm_programs import JvmProgram

#: the first Java that remembers which methods are worth compiling
FIRST_JAVA = 25
#: mapped where it was made for: elsewhere, which is what Java does if nothing is said, each JVM
#: writes into nearly every page of its own copy
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
#: the JVM finds what it cannot use by itself, and has nothing to say about it
_QUIET = "-Xlog:aot*=off,cds*=off"
_RECORD = "-XX:AOTMode=record"
_CREATE = "-XX:AOTMode=create"
_CREATE_SECONDS = 600.0


def is_trained(java: Java, programs: Iterable[JvmProgram]) -> bool:
    """Whether all *programs* have their caches, or *java* cannot have them."""
    return java.version < FIRST_JAVA or all(
        cache_file(java, program).exists() for program in programs
    )


def cache_options(java: Java, program: JvmProgram) -> list[str]:
    """Return the JVM's options that use the cache; none when there is none."""
    cache = cache_file(java, program)
    return [f"-XX:AOTCache={cache}", _QUIET, *_IN_PLACE] if cache.exists() else []


def recording_options(program: JvmProgram, directory: Path) -> list[str]:
    """Return the JVM's options that write down what it does, when it ends, into `recording` of
    *directory*.
    """
    return [_RECORD, f"-XX:AOTConfiguration={recording(program, directory)}", _QUIET, *_IN_PLACE]


def recording(program: JvmProgram, directory: Path) -> Path:
    """Return where a JVM that records leaves what it has learned."""
    return directory / f"{program.name}.aotconf"


def make_cache(java: Java, program: JvmProgram, command: list[str], learned: Path) -> None:
    """Make the cache of *program* from *learned*, and remove those that it had before. Takes 5 to
    20 s.

    Args:
        java: that has recorded.
        program: that has recorded.
        command: how it was started: Java uses a cache only with options like those it was made
            with.
        learned: what it wrote.

    Raises:
        StateError: Java made none; says why.
    """
    cache = cache_file(java, program)
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        fresh = Path(scratch) / cache.name
        options = [
            _CREATE if option == _RECORD else option
            for option in command[1:]
            if not option.startswith("-XX:AOTConfiguration=")
        ]
        created = [f"-XX:AOTConfiguration={learned}", f"-XX:AOTCache={fresh}"]
        try:
            done = subprocess.run(
                [command[0], *created, *options],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_CREATE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as wrong:
            raise StateError(f"no cache for {program.name}: {wrong}") from wrong
        if done.returncode or not fresh.exists():
            raise StateError(
                f"no cache for {program.name}: {java.executable} ended with {done.returncode}",
                detail=(done.stderr or done.stdout)[-2_000:],
            )
        for former in cache.parent.glob(f"{_name(program)}-*.aot"):
            # a JVM that runs keeps what it has mapped
            former.unlink(missing_ok=True)
        fresh.replace(cache)


def cache_file(java: Java, program: JvmProgram) -> Path:
    """Return where the cache for this Java, these jars and this version of Penstock lies."""
    runtime = java.home / "lib" / "server" / "libjvm.so"
    made_with = [runtime if runtime.exists() else java.executable.resolve(), *program.files()]
    about = [(path, path.stat()) for path in made_with]
    key = "\n".join(
        [
            *(installed.version(), *_IN_PLACE),
            *(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in about),
        ]
    )
    return cache_directory() / "aot" / f"{_name(program)}-{_digest(key)}.aot"


def _name(program: JvmProgram) -> str:
    """Return what the names of all caches of a program at its place begin with."""
    return f"{program.name}-{_digest(program.joined)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
