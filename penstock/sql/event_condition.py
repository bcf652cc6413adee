"""Conditions over window events: WHERE of NOTIFY, bound to the columns of a window's result and to
the keys of PARTITION BY, with their types.

CREATE STREAM compiles one to refuse what is wrong in it; whoever passes events on compiles it again
from the plan. Neither reads a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.compile import compile_expression, parse_expression
from penstock.sql.plan import Key, Target
from penstock.sql.source import Source, span_of
from penstock.types import ColumnType


@dataclass(frozen=True, eq=False)
class EventCondition:
    """A compiled condition.

    Attributes:
        passes: over a frame with the columns that it reads.
        results: those of the window's result.
        keys: those that PARTITION BY gives.
        others: names that it reads besides, of what differs from run to run.
    """

    passes: pl.Expr
    results: Mapping[str, ColumnType]
    keys: Mapping[str, ColumnType]
    others: frozenset[str]


def compile_condition(
    where: str | exp.Expr,
    target: Target,
    keys: tuple[Key, ...],
    timezone: str,
    source: Source | None = None,
) -> EventCondition:
    """Compile *where*: text, or a tree whose text is in *source*.

    Raises:
        SqlSemanticError: a name means nothing, or types do not go together.
    """
    if isinstance(where, str):
        source = Source(where)
        where = parse_expression(where)
    results = _result_columns(target)
    # a time among the keys has the precision of the source, which may be another
    by_key = {
        key.alias: key.type for key in keys if key.type.kind not in ("VARBINARY", "TIMESTAMP")
    }
    compiled = compile_expression(
        where,
        {**by_key, **results},
        precision=target.precision,
        timezone=timezone,
        source=source,
    )
    if compiled.type.kind != "BOOL":
        raise _no_condition(where, compiled.type, source or Source())
    read = frozenset(compiled.expr.meta.root_names())
    of_results = {name: kind for name, kind in results.items() if name in read}
    of_keys = {n: k for n, k in by_key.items() if n in read and n not in of_results}
    others = read - of_results.keys() - of_keys.keys()
    return EventCondition(compiled.expr.fill_null(False), of_results, of_keys, others)


def _no_condition(where: exp.Expr, found: ColumnType, source: Source) -> SqlSemanticError:
    return source.semantic_error(
        f"a condition is needed here, not {found}",
        where,
        code="E_TYPE",
        hint="compare it with something",
    )


def name_results(where: exp.Expr, target: Target, text: str) -> exp.Expr:
    """Return a copy of *where*, of the statement *text*, in which calls that the select list has
    are the columns that they made: `avg(v) > 5` means the column `avg(v)`.
    """
    columns = {_squeezed(name): name for name in _result_columns(target)}

    def as_column(node: exp.Expr) -> exp.Expr:
        span = span_of(node) if isinstance(node, exp.Anonymous) else None
        name = columns.get(_squeezed(text[slice(*span)])) if span is not None else None
        if name is None:
            return node
        column = exp.Column(this=exp.to_identifier(name, quoted=True))
        column.meta.update(node.meta)
        return column

    named: exp.Expr = where.transform(as_column)
    return named


def _squeezed(text: str) -> str:
    """Return *text* without blanks, for comparing names of columns that are calls."""
    return "".join(text.split()).lower()


def _result_columns(target: Target) -> dict[str, ColumnType]:
    """Return the columns of a window's result that JSON can have."""
    return {
        column.name: column.type
        for column, origin in zip(target.columns, target.column_of, strict=True)
        if origin is not None and column.type.kind != "VARBINARY"
    }
