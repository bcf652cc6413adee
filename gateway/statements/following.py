"""SELECT … FROM stream, which pages follow as its results come: whose rows, and which columns."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.catalog.model import StreamEntry, Table
from penstock.catalog.view import Catalog
from penstock.sql import statements as st

#: what stands in every SELECT of the parser's
_ALWAYS = ("expressions", "from_")
_TBNAME = "tbname"


@dataclass(frozen=True)
class FollowedStream:
    """The rows that a SELECT from a stream means: of its result, some columns."""

    table: Table
    columns: tuple[str, ...]


def find_stream(statement: st.Query, database: str | None, catalog: Catalog) -> StreamEntry | None:
    """Return the stream that stands alone behind FROM; None if anything else does."""
    clause = statement.query.args.get("from_")
    node = clause.this if clause is not None else None
    if not isinstance(node, exp.Table) or statement.query.args.get("joins"):
        return None
    home = node.db or database or ""
    if catalog.table(home, node.name) is not None or catalog.view(home, node.name) is not None:
        return None
    return catalog.stream(home, node.name)


def bind_columns(statement: st.Query, stream: StreamEntry, table: Table | None) -> FollowedStream:
    """Return which columns of a stream's result a SELECT names.

    Args:
        table: the result; None if the stream has none.

    Raises:
        SqlSemanticError: it wants more than columns, or there is no such one.
    """
    if table is None:
        raise statement.error(
            f"stream {stream.name} has no result table",
            code="E_UNSUPPORTED_QUERY",
            hint="its results are notifications only",
        )
    select = statement.query
    more = [
        part
        for name, part in select.args.items()
        if name not in _ALWAYS and isinstance(part, exp.Expr)
    ]
    if more or not isinstance(select, exp.Select):
        raise _not_followed(statement, table, more[0] if more else None)
    own = {c.name.lower(): c.name for c in (*table.columns, *table.tags)}
    own.setdefault(_TBNAME, _TBNAME)
    found: dict[str, None] = {}
    for wanted in select.expressions:
        found |= dict.fromkeys(_names(statement, table, wanted, own))
    return FollowedStream(table, tuple(found))


def _names(statement: st.Query, table: Table, wanted: exp.Expr, own: dict[str, str]) -> list[str]:
    if isinstance(wanted, exp.Star) and not any(wanted.args.values()):
        return [own[_TBNAME], *(name for key, name in own.items() if key != _TBNAME)]
    if not isinstance(wanted, exp.Column) or isinstance(wanted.this, exp.Star):
        raise _not_followed(statement, table, wanted)
    name = own.get(wanted.name.lower())
    if name is None:
        raise statement.error(
            f"there is no column {wanted.name}",
            wanted,
            code="E_UNKNOWN_COLUMN",
            hint=f"columns of the result: {', '.join(own.values())}",
        )
    return [name]


def _not_followed(statement: st.Query, table: Table, at: exp.Expr | None) -> Exception:
    path = f"{table.database}.{table.name}"
    return statement.error(
        "a stream's results are followed by columns alone",
        at,
        code="E_UNSUPPORTED_QUERY",
        hint=f"SELECT * FROM the stream, or ask its result table {path}",
    )
