"""Values in JSON tags: `tag->'key'` and `tag CONTAINS 'key'`, as DuckDB reads them.

A value is the text that is in it: of `"x"` that is x. The answer of a query shows it as JSON does,
with its quotes, as the reference.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.duckdb import macro
from services.store.binding import Context

#: a value as a number; true and false are 1 and 0, and other text is NULL
json_number = macro(
    "json_number",
    "(x) AS list_transform([x], lambda v: coalesce(TRY_CAST(v AS DOUBLE),"
    " CASE v WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END))[1]",
)


def rewrite_value(node: exp.JSONExtract, context: Context) -> exp.Expr:
    """Return `tag->'key'` as it is shown, or as the text that is in it."""
    path = _path(node.expression.name)
    if context.shown and _is_whole(node):
        node.set("expression", path)
        return node
    return exp.Anonymous(this="json_extract_string", expressions=[node.this, path])


def rewrite_contains(node: nodes.ContainsKey) -> exp.Expr:
    """Return `tag CONTAINS 'key'`: a key whose value is null is there, too."""
    path = _path(str(node.expression.unnest().name))
    return exp.Anonymous(this="json_exists", expressions=[node.this, path])


def _is_whole(node: exp.Expr) -> bool:
    """Tell if *node* is a whole item of the select list, key, or item of ORDER BY."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, exp.Ordered)


def _path(key: str) -> exp.Literal:
    """Return the path of a key. DuckDB's paths know no escapes; the compiler of expressions has
    refused what has backslashes. A key with quotes in it is taken as it is.
    """
    return exp.Literal.string(key if '"' in key else f'$."{key}"')
