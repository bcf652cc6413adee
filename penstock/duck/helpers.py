"""What a translated query needs besides DuckDB's own functions: macros, and functions that polars
computes.

A polars function gets columns as DuckDB has them, of whatever type, and compiles its call for these
types as a stream does. So both engines give the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

import duckdb
import polars as pl
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from sqlglot import exp

from penstock.duck.types import column_type, duck_type
from penstock.errors import PenstockError, SqlSemanticError
from penstock.sql.compile import Compiled, compile_expression
from penstock.sql.functions import REGISTRY
from penstock.sql.functions.duckdb import Helper, Macro, PolarsCall
from penstock.sql.source import Source
from penstock.types import ColumnType


class Installed:
    """What was added to a connection for one query, whose text errors point into."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, source: Source, macros: dict[str, Macro]
    ) -> None:
        """
        Args:
            macros: of the database, by name; those that are added here are noted in it.
        """
        self._con = con
        self._source = source
        self._macros = macros
        self._names: set[str] = set()
        self.functions: list[_PolarsFunction] = []
        #: what translated queries need, by name; `add` brings it to the engine
        self.needed: dict[str, Helper] = {}

    def add(self, helpers: Iterable[Helper]) -> None:
        """Add *helpers*, each once.

        Raises:
            SqlSemanticError: a constant of a call is not one that the function takes.
        """
        for helper in helpers:
            if isinstance(helper, Macro):
                self._add_macro(helper)
            elif helper.name not in self._names:
                self._names.add(helper.name)
                function = _PolarsFunction(helper, self._source)
                function.register(self._con)
                self.functions.append(function)

    def _add_macro(self, macro: Macro) -> None:
        if self._macros.get(macro.name) == macro:
            return
        for inner in macro.calls:
            self._add_macro(inner)
        self._con.execute(f"CREATE OR REPLACE MACRO {macro.name}{', '.join(macro.overloads)}")
        self._macros[macro.name] = macro

    def raise_failure(self) -> None:
        """Raise the error of the function that ended the query, if one did: DuckDB has only its
        text.
        """
        for function in self.functions:
            if function.failure is not None:
                raise function.failure

    def remove(self) -> None:
        """Take back the functions, which hold something of the query. Macros stay with the
        database: they are the same for every query.
        """
        for function in self.functions:
            self._con.remove_function(function.name)


class _PolarsFunction:
    """One call, compiled for each combination of types that it meets."""

    def __init__(self, call: PolarsCall, source: Source) -> None:
        self._call = call
        self._source = source
        self._names = sorted(
            {c.name for c in call.call.find_all(exp.Column)}, key=lambda name: int(name[1:])
        )
        self._compiled: dict[tuple[ColumnType, ...], Compiled] = {}
        #: error that ended the query
        self.failure: PenstockError | None = None

    @property
    def name(self) -> str:
        """As DuckDB calls it."""
        return self._call.name

    def register(self, con: duckdb.DuckDBPyConnection) -> None:
        """Let *con* call it with arguments of any types."""
        kind = self._compile(tuple(self._expected_types())).type
        result = duck_type(kind.kind, self._call.precision, str(kind))
        con.create_function(
            self.name,
            self._with_signature(),
            None,
            result,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )

    def _expected_types(self) -> Iterable[ColumnType]:
        """Return a type that each column may have, to find the type of the result."""
        if self._call.types:
            yield from self._call.types
            return
        function = REGISTRY[str(self._call.call.this)]
        for i, node in enumerate(self._call.call.expressions):
            if isinstance(node, exp.Column):
                yield _EXPECTED[function.parameters[min(i, len(function.parameters) - 1)].kind]

    def _compile(self, types: tuple[ColumnType, ...]) -> Compiled:
        known = self._compiled.get(types)
        if known is None:
            columns = dict(zip(self._names, types, strict=True))
            known = compile_expression(
                self._call.call,
                columns,
                precision=self._call.precision,
                timezone=self._call.timezone,
                source=self._source,
            )
            self._compiled[types] = known
        return known

    def _compute(self, *arguments: pa.ChunkedArray) -> pa.Array:
        types = []
        columns = []
        for name, argument in zip(self._names, arguments, strict=True):
            kind = column_type(argument.type)
            if kind is None:
                raise SqlSemanticError(f"{self._call.title} does not take {argument.type}")
            types.append(kind)
            columns.append(self._ticks(pl.Series(name, pl.from_arrow(argument)), kind))
        compiled = self._compile(tuple(types))
        made = pl.DataFrame(columns).with_columns(compiled.expr.alias("_")).get_column("_")
        if compiled.type.kind == "TIMESTAMP":
            made = made.cast(pl.Datetime(self._call.precision))  # type: ignore[arg-type]
        return made.to_arrow(compat_level=pl.CompatLevel.oldest())

    def _ticks(self, values: pl.Series, kind: ColumnType) -> pl.Series:
        """Return *values* as a frame of ours has them: times as ticks."""
        if kind.kind == "TIMESTAMP":
            return values.cast(pl.Datetime(self._call.precision)).cast(pl.Int64)  # type: ignore[arg-type]
        return values

    def _with_signature(self) -> Callable[..., pa.Array]:
        """Return the function as DuckDB wants it, which counts the parameters of the signature."""

        def compute(*arguments: pa.ChunkedArray) -> pa.Array:
            try:
                return self._compute(*arguments)
            except PenstockError as error:
                self.failure = error
                raise

        compute.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in self._names]
        )
        return compute


_EXPECTED = {
    "number": ColumnType("DOUBLE"),
    "double": ColumnType("DOUBLE"),
    "integer": ColumnType("BIGINT"),
    "text": ColumnType("VARCHAR", length=64),
    "time": ColumnType("TIMESTAMP"),
    "bool": ColumnType("BOOL"),
    "any": ColumnType("VARCHAR", length=64),
}
