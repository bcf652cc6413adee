"""A planned query run by DuckDB: the rows of its tables as of one moment, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import polars as pl
import pyarrow as pa

from penstock.duck import Engine
from penstock.duck.helpers import Installed
from penstock.errors import PenstockError
from penstock.sql.functions.duckdb import Helper
from penstock.sql.relational import Output
from penstock.sql.source import Source
from services.store.explain import TableReach
from services.store.free_literals import Value
from services.store.images import Images
from services.store.plans import Plan, Reading
from services.store.relation import TablePart
from services.store.resolve import ResolvedTable
from services.store.table_source import TableSource


class Execution:
    """State of one query, which reads each table as it was at one moment."""

    #: what was added to the engine, once that is open
    _installed: Installed

    def __init__(self, source: TableSource, images: Images, engine: Engine, max_rows: int) -> None:
        self._source = source
        self._images = images
        self._engine = engine
        self.max_rows = max_rows
        #: what was read so far, and its SQL
        self.readings: list[tuple[Reading, str]] = []
        #: "topic:partition" → offset of the first record that was not read
        self.positions: dict[str, int] = {}

    def open(self, tables: Iterable[ResolvedTable], source: Source) -> None:
        """Connect to a database that can open the segments of *tables* and nothing else.

        Args:
            source: the query, which errors point into.
        """
        for found in tables:
            for table in self._source.tables(found):
                self._images.of(table)
        self._engine.confine(self._images.files())
        self._installed = Installed(self._engine.con, source, self._engine.macros)

    @property
    def needed(self) -> dict[str, Helper]:
        """What the query needs besides DuckDB's own functions, by name; `add` brings it."""
        return self._installed.needed

    def add(self, helpers: Iterable[Helper]) -> None:
        """Add what DuckDB's text calls, each once. Raises SqlSemanticError."""
        self._installed.add(helpers)

    def read(self, reading: Reading, values: Sequence[Value] = ()) -> str:
        """Return the SQL of the live rows of a table.

        Args:
            values: of the query's free literals, if it has any.
        """
        found = reading.found
        views, _ = self._images.of(found.table)
        for partition, view in views.items():
            place = f"{found.table.topic}:{partition}"
            self.positions[place] = min(view.next, self.positions.get(place, view.next))
        rows = self._source.relation(
            self._engine.con,
            reading.prefix,
            found,
            self._images,
            places=reading.places,
            scope=reading.scope(values),
        )
        self.readings.append((reading, rows))
        return rows

    def reaches(self) -> list[TableReach]:
        """Return what was read so far of each table."""
        return [self._reach(reading) for reading, _ in self.readings]

    def _reach(self, reading: Reading) -> TableReach:
        found = reading.found
        scope = reading.scope()
        scope = scope if found.child is None else scope.among([found.child])
        tables = list(self._source.tables(found))
        every = [part for table in tables for part in self._images.of(table)[1]]
        # only a table that is one in the log is narrowed
        read = scope.narrow(every, found.table) if tables == [found.table] else every
        files = [segment for part in read for segment in part.found]
        return TableReach(
            f"{found.table.database}.{found.table.name}",
            None if scope.tables is None else len(scope.tables),
            len(files),
            sum(map(_count_files, every)),
            sum(segment.rows for segment in files),
            sum(map(_count_tail, read)),
        )

    def run(self, plan: Plan, values: Sequence[Value]) -> pa.Table:
        """Return the answer of a query that was planned before. Raises PenstockError,
        duckdb.Error.

        Args:
            values: of its free literals.
        """
        self.add(plan.helpers)
        text = plan.text([self.read(reading, values) for reading in plan.readings])
        return self.answer(text, plan.outputs, values)

    def rows(self, text: str, values: Sequence[Value] = ()) -> pa.Table:
        """Return all rows of DuckDB's *text*. Raises PenstockError, duckdb.Error."""
        with self.failures():
            return self._engine.answer(text, values)

    def fetch(self, text: str) -> pl.DataFrame:
        """Return all rows of DuckDB's *text*, however many they are. Raises duckdb.Error."""
        return pl.DataFrame(self._engine.con.sql(text).to_arrow_table())

    def add_view(self, name: str, text: str) -> None:
        """Let a relation have the rows of DuckDB's *text*. Raises duckdb.Error."""
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {text}")

    def add_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Let a relation have the rows of *frame*."""
        self._engine.con.register(name, frame.to_arrow())

    def answer(
        self, text: str, outputs: Sequence[Output], values: Sequence[Value] = ()
    ) -> pa.Table:
        """Return the rows of DuckDB's *text*, which ends the query, with the types of *outputs*."""
        arrow = self.rows(text, values)
        self._installed.remove()
        if arrow.num_rows > self.max_rows:
            raise PenstockError(
                f"more than {self.max_rows} rows",
                code="E_RESULT_TOO_LARGE",
                hint="narrow the query, or use `penstock export`",
            )
        fields = zip(arrow.schema, outputs, strict=True)
        return arrow.cast(pa.schema([_with_type(field, output) for field, output in fields]))

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise the error of a function that polars computes, where one ended what DuckDB did."""
        try:
            yield
        except duckdb.Error:
            self._installed.raise_failure()
            raise


def schema_of(outputs: Sequence[Output]) -> pa.Schema:
    """Return the schema of an answer, by the types of its columns alone."""
    return pa.schema([_field_of(output) for output in outputs])


def _field_of(output: Output) -> pa.Field:
    if output.type.kind == "NULL":
        return pa.field(output.name, pa.null())
    kind = output.type.arrow(output.precision)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp(kind.unit)  # as DuckDB has it
    return pa.field(output.name, kind, metadata={"type": str(output.type)})


def _count_files(part: TablePart) -> int:
    return len(part.found)


def _count_tail(part: TablePart) -> int:
    return sum(frame.height for frame in part.frames)


def _with_type(field: pa.Field, output: Output) -> pa.Field:
    """Let a field of the answer say its column type; of NULL nobody knows one. Times have the unit
    of their database, whatever DuckDB computes with.
    """
    if output.type.kind == "NULL":
        return field
    if output.type.kind == "TIMESTAMP" and pa.types.is_timestamp(field.type):
        field = field.with_type(pa.timestamp(output.precision, field.type.tz))
    return field.with_metadata({"type": str(output.type)})
