"""Queries of tools over `pg_catalog` and `information_schema`, and those of no table at all.

A text is read as PostgreSQL's. Its tree may have tables of these two schemas, functions of a list,
and values; every other node is refused by name. What DuckDB runs is printed from that tree, in an
engine that has these tables and opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gateway.postgres.catalog_casts import convert_casts
from gateway.postgres.catalog_columns import PG_CATALOG, PREFIXES, TABLES
from gateway.postgres.catalog_functions import ENGINE_FUNCTIONS, MARK, CatalogMacro
from gateway.postgres.catalog_tables import CatalogTables
from gateway.postgres.session import PgSession
from gateway.postgres.translate import without_schemas
from penstock.errors import SqlSemanticError, SqlSyntaxError
from penstock.rows.parameters import Moment

#: texts that may be about catalogs; others are not looked at
_MAY_BE = re.compile(r"\bpg_\w+|\binformation_schema\b|\A(?:(?!\bfrom\b).)*\Z", re.I | re.S)
_LONGEST = 65_536
#: nodes that compute something and reach nothing
_PLAIN_FUNCTIONS = frozenset(
    """
    Abs All And Any Array ArrayAgg ArrayConcat ArrayContains ArraySize ArrayToString Avg Case
    Cast Ceil Coalesce Concat ConcatWs Count CurrentDate CurrentTimestamp Exists
    ExplodingGenerateSeries Explode Extract Floor GenerateSeries Greatest GroupConcat If Initcap
    Least Left Length LogicalAnd LogicalOr Lower MD5 Max Min Not Nullif Or Rank RegexpExtract
    RegexpILike RegexpLike RegexpReplace Repeat Replace Reverse Right Round RowNumber Sign Split
    SplitPart StrPosition StringToArray Substring Sum Trim TryCast Unnest Upper Xor
    """.split()
)
#: nodes that are functions to sqlglot, and words without parentheses to PostgreSQL
_SESSION_NODES = {
    "CurrentUser": "current_user",
    "SessionUser": "session_user",
    "CurrentSchema": "current_schema",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "CurrentRole": "current_role",
    "CurrentVersion": "version",
    "CurrentSchemas": "current_schemas",
    "Version": "version",
}
_ROWS_OF_FUNCTIONS = (exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Unnest, exp.Explode)
#: words that are functions without parentheses, and no columns
_WORDS = ("user", "current_role", "session_user")
_REFUSED = (
    exp.Into,
    exp.Lock,
    exp.Command,
    exp.DML,
    exp.DDL,
    exp.TableSample,
    exp.Pivot,
    exp.Placeholder,
)


class CatalogQuery:
    """One query, made ready for the engine."""

    def __init__(self, tree: exp.Query) -> None:
        self._tree = tree
        #: tables and functions that it needs, by their names in the engine and in PostgreSQL
        self.tables: set[str] = set()
        self.macros: set[str] = set()

    def prepare(
        self,
        catalog: CatalogTables,
        known: Mapping[str, CatalogMacro],
        session: PgSession,
        values: Sequence[Any],
    ) -> str:
        """Return its text for DuckDB. Raises SqlSemanticError: it has something that is not
        served.
        """
        tree: exp.Expr = self._tree
        _refuse(tree)
        _name_columns(self._tree)
        _put_values(tree, values)
        _put_settings(tree, session)
        _fold_names(tree)
        self.tables |= _bind_tables(tree)
        tree = convert_casts(tree, catalog)
        self.macros |= _bind_functions(tree, known)
        for name in self.macros:
            self.tables |= known[name].tables
        return tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)


def read_catalog_query(text: str) -> CatalogQuery | None:
    """Return the query that *text* is, if it is one over catalogs or over no table; else None."""
    if len(text) > _LONGEST or not _MAY_BE.search(text):
        return None
    tree = _parsed(text)
    return CatalogQuery(tree) if tree is not None and _is_over_catalogs(tree) else None


def _parsed(text: str) -> exp.Query | None:
    """Return the tree of a text that is one query; None: it is something else."""
    try:
        statements = sqlglot.parse(without_schemas(text), dialect="postgres")
    except (SqlglotError, SqlSyntaxError, RecursionError):
        return None
    tree = statements[0] if len(statements) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def _is_over_catalogs(tree: exp.Query) -> bool:
    """Return whether a query names a table of the catalogs, or no table."""
    tables = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    named = [t for t in tables if t.db or t.name.lower() not in own]
    return not named or any(_engine_name(t) for t in named)


def _engine_name(table: exp.Table) -> str | None:
    """Return the name of a table in the engine; None: it is none of the catalogs'."""
    schema = table.db.lower() or PG_CATALOG
    if schema not in PREFIXES or (not table.db and not table.name.lower().startswith("pg_")):
        return None
    name = PREFIXES[schema] + table.name.lower()
    return name if name in TABLES else None


# ---------------------------------------------------------------- steps


def _refuse(tree: exp.Expr) -> None:
    found = next(tree.find_all(*_REFUSED), None)
    if found is not None:
        raise _unsupported(f"{type(found).__name__.upper()} in a query over catalogs is not served")


def _name_columns(tree: exp.Query) -> None:
    """Give columns of the answer the names that PostgreSQL gives them."""
    select: exp.Expr = tree
    while isinstance(select, exp.SetOperation):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    made = []
    for item in select.expressions:
        inner = item
        while isinstance(inner, exp.Cast | exp.Paren):
            inner = inner.this
        if isinstance(item, exp.Alias | exp.Star) or isinstance(inner, exp.Star):
            made.append(item)
        elif isinstance(inner, exp.Column):
            made.append(item if inner.is_star else exp.alias_(item, inner.name, quoted=True))
        else:
            made.append(exp.alias_(item, _function_name(inner) or "?column?", quoted=True))
    select.set("expressions", made)


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.Case):
        return "case"
    session = _SESSION_NODES.get(type(node).__name__)
    if isinstance(node, exp.GroupConcat):
        return "string_agg"
    return session or (node.sql_name().lower() if isinstance(node, exp.Func) else "")


def _put_values(tree: exp.Expr, values: Sequence[Any]) -> None:
    for node in list(tree.find_all(exp.Parameter)):
        number = node.name
        if not number.isdigit() or not 1 <= int(number) <= len(values):
            raise SqlSemanticError(f"there is no parameter ${number[:9]}", code="E_PARAMETER")
        node.replace(_value_node(values[int(number) - 1]))


def _value_node(value: Any) -> exp.Expr:
    if value is None or isinstance(value, bool | int | float | Decimal):
        return exp.convert(value)
    if isinstance(value, Moment):
        return exp.Literal.string(value.text)
    if isinstance(value, bytes):
        raise SqlSemanticError("bytes cannot be bound here", code="E_PARAMETER")
    return exp.Literal.string(str(value))


def _put_settings(tree: exp.Expr, session: PgSession) -> None:
    """Put the value of a setting in the place of `current_setting('name')`."""
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() != "current_setting" or not call.expressions:
            continue
        name = call.expressions[0]
        value = session.value(name.name.lower()) if isinstance(name, exp.Literal) else None
        made = exp.Literal.string(value) if value is not None else exp.null()
        call.replace(made)


def _fold_names(tree: exp.Expr) -> None:
    """Spell names as PostgreSQL does: small letters where there are no quotes."""
    for column in list(tree.find_all(exp.Column)):
        if column.name.lower() in _WORDS and not column.table and not column.this.args["quoted"]:
            column.replace(exp.Anonymous(this=column.name.lower()))
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
            name.set("quoted", True)
    for column in tree.find_all(exp.Column):
        # catalog and schema in front of a table's name
        column.set("db", None)
        column.set("catalog", None)


def _bind_tables(tree: exp.Expr) -> set[str]:
    """Put the engine's tables in the place of PostgreSQL's; return their names."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = set()
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Anonymous) and not table.this.expressions:
            # pg_get_keywords() and the like are tables here
            table.set("this", exp.to_identifier(table.this.name.lower(), quoted=True))
        if not isinstance(table.this, exp.Identifier):
            _bind_table_function(table)
            continue
        if not table.db and table.name.lower() in own:
            continue
        found.add(_bind_table(table))
    return found


def _bind_table(table: exp.Table) -> str:
    """Put the engine's table in the place of PostgreSQL's; return its name."""
    name = _engine_name(table)
    if name is None:
        raise _unsupported(
            f"{table.db or 'table'} {table.name} is not served beside catalogs".replace("  ", " ")
        )
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    table.set("db", None)
    table.set("catalog", None)
    table.set("this", exp.to_identifier(name, quoted=True))
    return name


def _bind_table_function(table: exp.Table) -> None:
    """Have a function in FROM give a column of its alias, as PostgreSQL does; a value is a row."""
    alias = table.args.get("alias")
    name = table.alias or "f"
    if not isinstance(table.this, _ROWS_OF_FUNCTIONS):
        select = exp.select(exp.alias_(table.this.copy(), name, quoted=True))
        table.replace(select.subquery(exp.to_identifier(name, quoted=True)))
    elif alias is not None and not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(name, quoted=True)])


def _bind_functions(tree: exp.Expr, known: Mapping[str, CatalogMacro]) -> set[str]:
    """Put macros in the place of PostgreSQL's functions; return their names in PostgreSQL.

    Raises:
        SqlSemanticError: a function is not served.
    """
    used = set()
    # the innermost first: what is put in place of the outer ones has them already
    for node in reversed(list(tree.find_all(exp.Func))):
        kind = type(node).__name__
        if kind in _PLAIN_FUNCTIONS or isinstance(node, exp.Connector):
            continue
        plain = isinstance(node, exp.Anonymous)
        name = node.name.lower() if plain else _SESSION_NODES.get(kind, "")
        if name in known:
            arguments = node.expressions if plain else _arguments(node)
            made = exp.Anonymous(this=MARK + name, expressions=[a.copy() for a in arguments])
            node.replace(made)
            used.add(name)
        elif name not in ENGINE_FUNCTIONS:
            shown = name or node.sql_name().lower()
            raise SqlSemanticError(
                f"the function {shown[:64]} is not served over catalogs", code="E_UNKNOWN_FUNCTION"
            )
    return used


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return [node.this] if isinstance(node.this, exp.Expr) else []


def _unsupported(words: str) -> SqlSemanticError:
    hint = "query tables of the mesh and catalogs in two statements"
    return SqlSemanticError(words, code="E_UNSUPPORTED_QUERY", hint=hint)
