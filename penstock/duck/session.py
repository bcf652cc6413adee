"""Connections to DuckDB that can open nothing but the files named for them, and that end in
time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from penstock.duck.databases import Bounds, Database, Databases
from penstock.errors import PenstockError, SqlSemanticError
from penstock.sql.functions.duckdb import Macro

#: rows that are taken from the engine at a time: few enough that those of the longest texts fit
#: into memory
_BATCH = 4096
#: between two interrupts of a query that is late
_INTERRUPT_SECONDS = 0.1


class Engine:
    """One query's DuckDB: a connection of its own, to a database in memory that no other query uses
    meanwhile.

    There is no connection before `confine`; from then on it opens no file but those named there,
    loads no extension and keeps its configuration.
    """

    con: duckdb.DuckDBPyConnection

    def __init__(self, bounds: Bounds, databases: Databases | None = None) -> None:
        """
        Args:
            databases: where one is taken from, and where `keep` leaves it; None: a new one.
        """
        self._bounds = bounds
        self._databases = Databases(bounds, 0) if databases is None else databases
        self._database: Database | None = None
        self._kept = False
        #: whether the time of the query is over
        self.late = False

    def confine(self, files: Collection[str] = ()) -> None:
        """Connect to a database that can open *files* and nothing else, for good. Division by zero
        gives NULL, as in the dialect.
        """
        self._database = self._databases.take(frozenset(files))
        self.con = self._database.connection.cursor()

    @property
    def macros(self) -> dict[str, Macro]:
        """Macros of the dialect that the database has, by name; whoever adds one notes it here."""
        if self._database is None:
            raise RuntimeError("the engine is not confined yet")
        return self._database.macros

    def keep(self) -> None:
        """Leave the database to the next query of the same files: this one has done nothing that
        outlives its connection.
        """
        self._kept = True

    def answer(self, text: str, values: Sequence[int | float | str] = ()) -> pa.Table:
        """The rows of one SELECT, which `print_query` or this code has written.

        Args:
            values: for `$1`, `$2` and so on in *text*.

        Raises:
            duckdb.Error: it cannot be executed.
            SqlSemanticError: it is not one SELECT.
            PenstockError: E_RESULT_TOO_LARGE, after the first batch that goes over the bytes of an
                answer.
        """
        if self._database is None:
            raise RuntimeError("the engine is not confined yet")
        if self.late:
            raise self._too_long()
        statements = self.con.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise SqlSemanticError("one SELECT is answered at a time", code="E_QUERY")
        reader = _stream(self.con, statements[0].query, values)
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
            if self._database is not None:
                self.con.interrupt()
            done.wait(_INTERRUPT_SECONDS)

    def _too_long(self) -> PenstockError:
        return PenstockError(
            f"the query was ended after {self._bounds.seconds:g} s",
            code="E_TIMEOUT",
            hint="narrow it by time or by table, or let a stream keep what it computes",
        )

    def close(self) -> None:
        if self._database is None:
            return
        self.con.close()
        if self._kept and not self.late:
            self._databases.give_back(self._database)
        else:
            self._database.close()


def _stream(
    con: duckdb.DuckDBPyConnection, text: str, values: Sequence[int | float | str]
) -> pa.RecordBatchReader:
    """Return the rows of one SELECT as they are computed. Values are constants to the engine when
    it binds the statement, so it plans with them as with those of the text.

    `con.sql` has the engine bind a statement to learn its columns, and bind it again when its rows
    are read, which is a good part of a small query. What is below it binds once, but is DuckDB's
    own affair, so it may be gone in another version.
    """
    given = list(values) or None
    submit = getattr(con, "_submit", None)
    if submit is None:
        return con.sql(text, params=given).to_arrow_reader(_BATCH)
    return submit(text, given, "stream", _BATCH).arrow_reader()


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
