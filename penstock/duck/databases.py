"""Databases in memory that can open nothing but the files named for them, and those that wait for
another query of the same files.

To make a database takes longer than most queries. So one that a query is done with is kept, for
queries that may open exactly the same files: what it knows of them (their footers) is then there
already, and so are the macros of the dialect. Each query has a connection of its own; views and
registered rows end with it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass

import duckdb

from penstock.duck.quoting import literal
from penstock.sql.functions.duckdb import Macro


@dataclass(frozen=True)
class Bounds:
    """Limits of one query."""

    memory: str
    threads: int
    #: a query is ended after this many seconds
    seconds: float
    #: most bytes that it may write to disk while it sorts or joins
    spill: str = "0B"
    #: most bytes of an answer, as Arrow
    answer: int = 256 * 2**20


class Database:
    """A database that can open *files* and nothing else."""

    def __init__(self, bounds: Bounds, files: frozenset[str]) -> None:
        self.files = files
        self.connection = _open(bounds, files)
        #: macros of the dialect that it has, by name; they hold nothing of a query
        self.macros: dict[str, Macro] = {}

    def close(self) -> None:
        self.connection.close()


class Databases:
    """Thread-safe. A database is of one query at a time, so that its limits are that query's."""

    def __init__(self, bounds: Bounds, most: int) -> None:
        """
        Args:
            most: databases that are kept while no query uses them.
        """
        self._bounds = bounds
        self._most = most
        self._lock = threading.Lock()
        #: what is not used, the longest unused first
        self._idle: list[Database] = []

    def take(self, files: frozenset[str]) -> Database:
        """Return a database that can open *files* and nothing else; it is the caller's."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place].files == files:
                    return self._idle.pop(place)
        return Database(self._bounds, files)

    def give_back(self, database: Database) -> None:
        """Keep a database for the next query of the same files, and close what is over the number
        that is kept.
        """
        with self._lock:
            self._idle.append(database)
            over = self._idle[: max(len(self._idle) - self._most, 0)]
            del self._idle[: len(over)]
        for one in over:
            one.close()


def _open(bounds: Bounds, files: Collection[str]) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(
        config={
            "memory_limit": bounds.memory,
            "threads": bounds.threads,
            "max_temp_directory_size": bounds.spill,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        }
    )
    allowed = ", ".join(literal(f) for f in sorted(files))
    # an idle database holds footers, but no rows: those are in the system's cache
    database.execute(
        "SET GLOBAL error_on_division_by_zero=false; SET GLOBAL ieee_floating_point_ops=false; SET"
        " GLOBAL TimeZone='UTC'; SET GLOBAL parquet_metadata_cache=true; SET GLOBAL"
        f" enable_external_file_cache=false; SET GLOBAL allowed_paths=[{allowed}]; SET GLOBAL"
        " enable_external_access=false; SET GLOBAL lock_configuration=true"
    )
    return database
