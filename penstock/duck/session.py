"""Connections to DuckDB that can open nothing but the files named for them, and that end in
time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from penstock.duck.quoting import literal
from penstock.errors import PenstockError, SqlSemanticError

#: rows that are taken from the engine at a time: few enough that those of the longest texts fit
#: into memory
_BATCH = 4096
#: between two interrupts of a query that is late
_INTERRUPT_SECONDS = 0.1


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


class Engine:
    """One query's DuckDB: a connection to a database of its own in memory.

    Until `confine` it runs only what this code writes; from then on it opens no file but those
    named there, loads no extension and keeps its configuration.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._confined = False
        #: whether the time of the query is over
        self.late = False
        self.con = duckdb.connect(
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

    def confine(self, files: Collection[str] = ()) -> None:
        """Close everything but *files*, for good. Division by zero gives NULL, as in the
        dialect.
        """
        allowed = ", ".join(literal(f) for f in files)
        self.con.execute(
            "SET error_on_division_by_zero=false; SET ieee_floating_point_ops=false; SET"
            f" TimeZone='UTC'; SET allowed_paths=[{allowed}]; SET enable_external_access=false; SET"
            " lock_configuration=true"
        )
        self._confined = True

    def answer(self, text: str) -> pa.Table:
        """The rows of one SELECT, which `print_query` or this code has written.

        Raises:
            duckdb.Error: it cannot be executed.
            SqlSemanticError: it is not one SELECT.
            PenstockError: E_RESULT_TOO_LARGE, after the first batch that goes over the bytes of an
                answer.
        """
        if not self._confined:
            raise RuntimeError("the engine is not confined yet")
        if self.late:
            raise self._too_long()
        statements = self.con.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise SqlSemanticError("one SELECT is answered at a time", code="E_QUERY")
        reader = self.con.sql(text).to_arrow_reader(_BATCH)
        try:
            return pa.Table.from_batches(self._limit(reader), reader.schema)
        finally:
            reader.close()

    def _limit(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in batches:
            size += batch.nbytes
            if size > self._bounds.answer:
                raise PenstockError(
                    f"the result has more than {self._bounds.answer} bytes",
                    code="E_RESULT_TOO_LARGE",
                    hint="narrow the query, or use `penstock export`",
                )
            yield batch

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """End what runs inside when its time is over. Raises PenstockError (E_TIMEOUT)."""
        done = threading.Event()
        watch = threading.Thread(target=self._end_late, args=(done,), daemon=True)
        watch.start()
        try:
            yield
        except duckdb.InterruptException:
            raise self._too_long() from None
        finally:
            done.set()
            watch.join()

    def _end_late(self, done: threading.Event) -> None:
        """Interrupt what runs when the time is over, until it is *done*.

        DuckDB forgets an interrupt that comes while no statement runs, for example while one is
        being prepared. So one interrupt is not enough.
        """
        if done.wait(self._bounds.seconds):
            return
        self.late = True
        while not done.is_set():
            self.con.interrupt()
            done.wait(_INTERRUPT_SECONDS)

    def _too_long(self) -> PenstockError:
        return PenstockError(
            f"the query was ended after {self._bounds.seconds:g} s",
            code="E_TIMEOUT",
            hint="narrow it by time or by table, or let a stream keep what it computes",
        )

    def close(self) -> None:
        self.con.close()


def explain_error(error: duckdb.Error) -> SqlSemanticError:
    """Return DuckDB's complaint without its own text and settings."""
    line = str(error).splitlines()[0]
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "narrow it by time or by table, or let a stream compute it"
        return SqlSemanticError(
            "the query needs more memory than it may have", code="E_QUERY", hint=hint
        )
    return SqlSemanticError(
        line.split(": ", 1)[-1][:500], code="E_QUERY", detail=type(error).__name__
    )
