"""Parameters of a statement before they have values: their types, as far as the statement tells,
and values that stand for them while its answer is described.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.rows.parameters import Parameters
from penstock.sql import nodes
from penstock.sql import statements as st
from penstock.types import ColumnType

#: (database, name) → a table, or the supertable of a child table; None: there is no such one
Find = Callable[[str, str], Table | None]
#: of what a statement does not tell the type of
_UNKNOWN = pa.utf8()
_COUNT = pa.int64()
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)
_LIMITS = (exp.Limit, exp.Offset)


def schema_of(statement: st.Statement, find: Find, database: str) -> pa.Schema:
    """Return a field for each parameter of *statement*: one for each `?`, or for each name.

    Args:
        find: the tables that the types are of.
        database: of tables without one.
    """
    found = dict(_types(statement, find, database))
    fields: dict[str, pa.DataType] = {}
    for at, holder in enumerate(statement.placeholders, 1):
        fields.setdefault(holder.name or str(at), found.get(holder.start, _UNKNOWN))
    return pa.schema(list(fields.items()))


def stand_ins(statement: st.Statement) -> Parameters | None:
    """Return parameters that fit wherever any do: NULL, and 1 for numbers of rows; None: the
    statement has no placeholders.
    """
    holders = statement.placeholders
    if not holders:
        return None
    counts = {n.meta["start"] for tree in _trees(statement) for n in _placeholders(tree, _LIMITS)}
    values: list[Any] = [1 if holder.start in counts else None for holder in holders]
    if not holders[0].name:
        return values
    return {holder.name: value for holder, value in zip(holders, values, strict=True)}


def _types(statement: st.Statement, find: Find, database: str) -> Iterator[tuple[int, pa.DataType]]:
    """Yield where placeholders stand, with the types of those that have one."""
    if isinstance(statement, st.Insert):
        for part in statement.parts:
            yield from _types_of_rows(part, find, database)
        return
    own = statement.table if isinstance(statement, st.Delete) else None
    for tree in _trees(statement):
        for node in _placeholders(tree, _LIMITS):
            yield node.meta["start"], _COUNT
        for node in _placeholders(tree, _COMPARISONS):
            kind = _compared_type(node, own, find, database)
            if kind is not None:
                yield node.meta["start"], kind


def _trees(statement: st.Statement) -> Iterator[exp.Expr]:
    """Yield the expressions of a statement that may have placeholders."""
    if isinstance(statement, st.Explain):
        statement = statement.statement
    if isinstance(statement, st.InsertSelect):
        statement = statement.select
    if isinstance(statement, st.Query):
        yield statement.query
    elif isinstance(statement, st.Delete) and statement.where is not None:
        yield statement.where


def _placeholders(
    tree: exp.Expr, inside: tuple[type[exp.Expr], ...]
) -> Iterator[nodes.Placeholder]:
    """Yield the placeholders that stand in a node of one of the kinds *inside*, in no other."""
    for node in tree.find_all(nodes.Placeholder):
        if isinstance(_around(node), inside):
            yield node


def _around(node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg | exp.Cast):
        parent = parent.parent
    return parent


def _compared_type(
    node: exp.Expr, own: st.Name | None, find: Find, database: str
) -> pa.DataType | None:
    """Return the type of the column that a placeholder is compared with; None: with none."""
    comparison = _around(node)
    assert comparison is not None
    column = next(iter(_columns(comparison)), None)
    if column is None:
        return None
    if own is not None:
        tables = [find(own.database or database, own.name)]
    else:
        tables = [find(t.db or database, t.name) for t in _sources(column)]
    return next((kind for table in tables if (kind := _type_in(table, column.name))), None)


def _columns(comparison: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns that are an operand of a comparison."""
    for operand in comparison.iter_expressions():
        if isinstance(operand, exp.Column):
            yield operand


def _sources(column: exp.Column) -> list[exp.Table]:
    """Return the tables of FROM that a column may be of."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return []
    places = [select.args.get("from_"), *(select.args.get("joins") or [])]
    tables = [p.this for p in places if p is not None and isinstance(p.this, exp.Table)]
    wanted = column.table.lower()
    return [t for t in tables if wanted in ("", (t.alias or t.name).lower())]


def _type_in(table: Table | None, name: str) -> pa.DataType | None:
    if table is None:
        return None
    if name.lower() == "tbname":
        return pa.utf8()
    for column in (*table.columns, *table.tags):
        if column.name.lower() == name.lower():
            return _arrow(column.type, table)
    return None


def _arrow(kind: ColumnType, table: Table) -> pa.DataType:
    return kind.arrow(table.precision)


def _types_of_rows(
    part: st.InsertPart, find: Find, database: str
) -> Iterator[tuple[int, pa.DataType]]:
    """Yield the types of the placeholders in the rows of an INSERT."""
    table = _table_of(part, find, database)
    if table is None:
        return
    columns = part.columns or [c.name for c in table.columns]
    tags = part.tag_names or [t.name for t in table.tags]
    for row in part.rows:
        yield from _types_of_values(row, columns, table)
    yield from _types_of_values(part.tag_values, tags, table)


def _table_of(part: st.InsertPart, find: Find, database: str) -> Table | None:
    """Return the table of an INSERT, or the supertable of one that it makes."""
    table = find(part.table.database or database, part.table.name)
    if table is None and part.stable is not None:
        table = find(part.stable.database or database, part.stable.name)
    return table


def _types_of_values(
    values: Iterable[Any], names: Iterable[str], table: Table
) -> Iterator[tuple[int, pa.DataType]]:
    for value, name in zip(values, names, strict=False):
        if isinstance(value, st.Placeholder):
            kind = _type_in(table, name)
            if kind is not None:
                yield value.start, kind
