"""The types that the columns of a list declare, in the answer of a query over it: the engine keeps
no length of a text.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from gateway.answers import TYPE_KEY
from gateway.information import columns
from penstock.types import ColumnType


def declare(answer: pa.Table, tree: exp.Query) -> pa.Table:
    """Return *answer* with the types of those columns that *tree* takes from one list as they
    are.
    """
    types = _types(tree)
    if len(types) != answer.num_columns:
        return answer
    fields = [
        field if kind is None else field.with_metadata({TYPE_KEY: str(kind)})
        for field, kind in zip(answer.schema, types, strict=True)
    ]
    return pa.table(answer.columns, schema=pa.schema(fields, answer.schema.metadata))


def _types(tree: exp.Query) -> list[ColumnType | None]:
    """Return the declared type of each column; None where something is computed, nothing for
    another kind of query.
    """
    source = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or source is None or tree.args.get("joins"):
        return []
    if not isinstance(source.this, exp.Table):
        return []
    shown = dict(columns.LISTS[source.this.name.lower()])
    types: list[ColumnType | None] = []
    for item in tree.expressions:
        column = item.unalias()
        if isinstance(column, exp.Star) or isinstance(column.this, exp.Star):
            types += shown.values()
        else:
            known = isinstance(column, exp.Column)
            types.append(shown.get(column.name.lower()) if known else None)
    return types
