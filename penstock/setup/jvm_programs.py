"""The two programs that Java runs here, and where it finds their classes."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError
from penstock.setup import jars


@dataclass(frozen=True)
class JvmProgram:
    """`name` is what its list of classes is called; `class_path` is in Java's words, in which `*`
    stands for all jars of a directory.
    """

    name: str
    class_path: tuple[str, ...]

    @property
    def joined(self) -> str:
        """The class path as it stands on a command line."""
        return os.pathsep.join(self.class_path)

    def files(self) -> list[Path]:
        """Return the files that the class path names and that are there."""
        found: list[Path] = []
        for entry in self.class_path:
            path = Path(entry)
            found += sorted(path.parent.glob("*.jar")) if path.name == "*" else [path]
        return [path for path in found if path.is_file()]


def broker() -> JvmProgram:
    """Return the embedded broker. Raises ConfigError: its jars are not there yet."""
    return JvmProgram("broker", tuple(map(str, jars.paths("broker"))))


def spark() -> JvmProgram:
    """Return Spark as its launcher starts it in local mode, with the jars of the Kafka source in
    front (`spark.driver.extraClassPath`).

    Raises:
        ConfigError: the jars are not there yet, or pyspark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ConfigError("pyspark is not installed", hint="pip install 'penstock[mesh]'")
    home = Path(found.submodule_search_locations[0])
    # the launcher puts these first, and the directory of its settings even where there is none
    logging = sorted(map(str, (home / "jars").glob("slf4j-api-*.jar")))
    kafka_source = map(str, jars.paths("spark"))
    own = (str(home / "conf"), *logging, str(home / "jars" / "*"))
    return JvmProgram("spark", (*kafka_source, *own))
