"""The pinned jars of the broker and of Spark's Kafka source, as `jar_download.py` has put them into
a cache. `jars.lock` says which.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from penstock.errors import ConfigError

JarSet = Literal["broker", "spark"]


@dataclass(frozen=True)
class Jar:
    """One line of jars.lock."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Path below a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def cache_directory() -> Path:
    """`$PENSTOCK_CACHE_DIR`, else ~/.cache/penstock (or below $XDG_CACHE_HOME)."""
    own = os.environ.get("PENSTOCK_CACHE_DIR")
    if own:
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def read_lock(which: JarSet) -> list[Jar]:
    """Read the jars of one set, in the lock's order."""
    found = []
    for line in _lock_text().splitlines():
        if line.startswith(f"{which} "):
            _, coordinates, digest = line.split()
            group, artifact, version = coordinates.split(":")
            found.append(Jar(group, artifact, version, digest))
    return found


def paths(which: JarSet) -> list[Path]:
    """Files of one set, as `fetch` has put them.

    Raises:
        ConfigError: they are not there yet.
    """
    directory = cache_directory() / "jars" / which
    if not stamp(which).exists():
        raise ConfigError(
            f"the {which} jars are not in {directory}", hint="run `make setup` or `penstock setup`"
        )
    return [directory / jar.file_name for jar in read_lock(which)]


def _lock_text() -> str:
    return files("penstock.setup").joinpath("jars.lock").read_text(encoding="utf-8")


def stamp(which: JarSet) -> Path:
    """Exists once every jar of this very lock has been checked."""
    digest = hashlib.sha256(_lock_text().encode()).hexdigest()[:16]
    return cache_directory() / "jars" / which / f".complete-{digest}"
