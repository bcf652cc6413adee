"""The shape of the query: one SELECT over one table, nothing that would need all results at
once.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.sql.compile.compiler import nearest
from penstock.sql.dialect import to_sql
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.statements import CreateStream, Name

_SYSTEM = ("information_schema", "performance_schema")
_CHAIN = "write one stream per step: the result table of a stream can be the source of the next"

_AROUND = "put the window into a subquery: SELECT … FROM (SELECT … INTERVAL(…)) WHERE …"

_OVER = "write it in a query around the results: SELECT …, rank() OVER (…) FROM (SELECT …)"


def _refuse(statement: CreateStream, at: exp.Expr | int | None, what: str, hint: str) -> NoReturn:
    refuse(statement, "E_UNSUPPORTED_QUERY", at, what=what, hint=hint)


#: clauses that no stream can have: sqlglot's name, ours, and the way out
_CLAUSES = (
    ("qualify", "QUALIFY", "filter the results in a query around them"),
    ("order", "ORDER BY", "results are stored in order of time; sort when you read them"),
    ("distinct", "DISTINCT", "use PARTITION BY the columns that shall differ"),
    ("limit", "LIMIT", "limit when you read the results"),
    ("offset", "OFFSET", "limit when you read the results"),
    ("slimit", "SLIMIT", "filter partitions with WHERE"),
    ("soffset", "SOFFSET", "filter partitions with WHERE"),
    ("range", "RANGE", "it gives interp() its points in a SELECT without a window"),
    ("tags", "TAGS", "SELECT TAGS reads child tables, which have no times"),
    ("open_windows", "OPEN WINDOWS", "it asks for the open windows of a stream in a SELECT"),
)


def check_shape(statement: CreateStream) -> exp.Select:
    """Return the statement's SELECT; refuse whatever no stream can have."""
    query = statement.query
    if isinstance(query, exp.SetOperation):
        _refuse(
            statement,
            query.right,
            f"{query.key.upper()} is not possible in a stream",
            "make a stream of each SELECT, into tables of their own",
        )
    if not isinstance(query, exp.Select):
        _refuse(statement, query, "the query stands in parentheses", "write AS SELECT …")
    _check_from(statement, query)
    _check_clauses(statement, query)
    _check_stars(statement, query)
    for inner in query.find_all(exp.Subquery, exp.Exists):
        if statement.of_query:
            what, hint = "a subquery cannot stand beside a window", _AROUND
        else:
            what, hint = "a subquery is not possible in a stream", _CHAIN
        _refuse(statement, inner, what, hint)
    over = query.find(exp.Window)
    if over is not None:
        where = "beside a window clause" if statement.of_query else "in a stream"
        _refuse(statement, over, f"OVER is not possible {where}", _OVER)
    return query


def _check_from(statement: CreateStream, query: exp.Select) -> None:
    clause = query.args.get("from_")
    if clause is None:
        _refuse(statement, query, "a stream needs a source table", "write FROM table")
    if not isinstance(clause.this, exp.Table):
        _refuse(statement, clause.this, "the source is a subquery", _CHAIN)
    if query.args.get("joins"):
        join = query.args["joins"][0].this
        _refuse(
            statement,
            join,
            "the source is a join",
            "let the tables feed one supertable, or join in a SELECT over results",
        )


def _check_clauses(statement: CreateStream, query: exp.Select) -> None:
    if query.args.get("group") is not None:
        columns = ", ".join(to_sql(e) for e in query.args["group"].expressions)
        refuse(statement, "E_GROUP_BY", query.args["group"].expressions[0], columns=columns)
    if query.args.get("having") is not None:
        refuse(statement, "E_HAVING", query.args["having"].this)
    where = "with a window" if statement.of_query else "in a stream"
    for key, name, hint in _CLAUSES:
        if query.args.get(key) is not None:
            _refuse(
                statement,
                _somewhere(query.args[key]) or query,
                f"{name} is not possible {where}",
                hint,
            )


def _check_stars(statement: CreateStream, query: exp.Select) -> None:
    if query.args.get("window") is None:
        return
    for item in query.expressions:
        if item.unalias().is_star:
            _refuse(
                statement,
                item,
                "* gives rows, but a window gives one result for many",
                "name aggregates: count(*), last(column)",
            )


def _somewhere(node: object) -> exp.Expr | None:
    """Return *node* when it knows its place."""
    if isinstance(node, exp.Expr) and any("start" in n.meta for n in node.walk()):
        return node
    return None


def find_source(
    statement: CreateStream, view: SchemaView, select: exp.Select, database: str | None
) -> tuple[TableDef, tuple[str, ...]]:
    """Return the source table, and the names that may stand before its columns."""
    node = select.args["from_"].this
    given = node.args["db"].name if node.args.get("db") is not None else database
    name = Name(node.name, given, offset=node.meta.get("start", 0))
    if given is None:
        refuse(statement, "E_NO_DATABASE", name, clause="FROM", table=name.name)
    if given.lower() in _SYSTEM:
        _refuse(
            statement,
            node,
            f"{given}.{name.name} is a system table",
            "name a table that rows are written to",
        )
    if view.precision(given) is None:
        refuse(statement, "E_DATABASE_NOT_EXIST", name, clause="FROM", database=given)
    found = view.table(given, name.name)
    if found is None:
        near = nearest(name.name, view.table_names(given))
        refuse(
            statement,
            "E_TABLE_NOT_EXIST",
            name,
            clause="FROM",
            table=f"{given}.{name.name}",
            hint=f'did you mean "{near}"?' if near else "SHOW STABLES and SHOW TABLES list them",
        )
    alias = node.args.get("alias")
    if alias is not None:
        return found, (alias.name,)
    return found, tuple(dict.fromkeys((name.name, found.child or found.name, found.name)))
