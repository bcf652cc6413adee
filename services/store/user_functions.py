"""User-defined functions in a query: DuckDB calls them, each in its sandbox."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from penstock.duck.types import duck_type
from penstock.udf import UserFunction, sandbox
from services.store.translate import own_name


def register(con: duckdb.DuckDBPyConnection, function: UserFunction) -> None:
    """Let *con* call a scalar function."""
    types: list[Any] = [duck_type(t.kind, "ms", str(t)) for t in function.parameters]
    result = duck_type(function.returns.kind, "ms", str(function.returns))
    con.create_function(
        own_name(function),
        _callable(function),
        types,
        result,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
    )


def _callable(function: UserFunction) -> Callable[..., pa.Array]:
    """Return a scalar function on columns as DuckDB hands them over; DuckDB counts the parameters
    of the signature.
    """
    types = [t.polars() for t in function.parameters]

    def call(*arguments: pa.ChunkedArray) -> pa.Array:
        columns = {
            f"a{i}": pl.Series(pl.from_arrow(a)).cast(t)
            for i, (a, t) in enumerate(zip(arguments, types, strict=True))
        }
        return (
            sandbox.sandbox_of(function)
            .call(pl.DataFrame(columns))
            .to_arrow(compat_level=pl.CompatLevel.oldest())
        )

    names = [f"a{i}" for i in range(len(types))]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    )
    return call
