"""PostgreSQL's casts and operators in a query over catalogs, as the engine has them: names of types
that stand for oids, `OPERATOR(pg_catalog.~)`, COLLATE.
"""

from __future__ import annotations

import re

from sqlglot import exp

from gateway.postgres.catalog_tables import LONG_NAMES, CatalogTables
from gateway.postgres.pg_types import ALL_TYPES, ARRAY_TYPES
from penstock.errors import SqlSemanticError

_TEXT_TYPES = (
    "char",
    "name",
    "sql_identifier",
    "character_data",
    "yes_or_no",
    "regproc",
    "regprocedure",
    "regoper",
    "pg_node_tree",
    "aclitem",
    "text",
    "varchar",
    "bpchar",
    "tid",
)
_NUMBER_TYPES = ("oid", "xid", "cid", "cardinal_number", "int8", "int4", "int2")
_PLAIN = frozenset(
    """
    TEXT VARCHAR CHAR BPCHAR NCHAR INT SMALLINT BIGINT TINYINT BOOLEAN DOUBLE FLOAT DECIMAL
    TIMESTAMP TIMESTAMPTZ TIMESTAMPNTZ DATE
    """.split()
)
_PART = re.compile(r'"((?:[^"]|"")*)"|([^."\s]+)')


def convert_casts(tree: exp.Expr, catalog: CatalogTables) -> exp.Expr:
    """Return *tree* with nothing but casts and operators of the engine. Raises SqlSemanticError."""
    for collated in list(tree.find_all(exp.Collate)):
        collated.replace(collated.this)
    for text in list(tree.find_all(exp.ByteString)):
        text.replace(exp.Literal.string(text.name))
    for operator in list(tree.find_all(exp.Operator)):
        operator.replace(_operator(operator))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "ALL" and len(call.expressions) == 1:
            # over a list it is a call to the parser, which ANY is not
            call.replace(exp.All(this=exp.Paren(this=call.expressions[0].copy())))
            continue
        kind = call.name.lower().removeprefix("to_")
        if kind in _OBJECTS and kind != call.name.lower() and len(call.expressions) == 1:
            call.replace(_named(call.expressions[0], kind, catalog))
    # the innermost first: what is cast to regclass and then to text is a name by then
    for cast in reversed(list(tree.find_all(exp.Cast))):
        made = _cast(cast, catalog)
        if made is not cast:
            cast.replace(made)
    return tree


def _operator(node: exp.Operator) -> exp.Expr:
    word = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    kinds: dict[str, type[exp.Expr]] = {
        "~": exp.RegexpLike,
        "~*": exp.RegexpILike,
        "~~": exp.Like,
        "=": exp.EQ,
        "<>": exp.NEQ,
        "<": exp.LT,
        ">": exp.GT,
    }
    kind = kinds.get(word.removeprefix("!"))
    if kind is None:
        raise SqlSemanticError(
            f"the operator {word[:16]} is not served over catalogs", code="E_UNSUPPORTED_QUERY"
        )
    made = kind(this=left, expression=right)
    return exp.Not(this=exp.Paren(this=made)) if word.startswith("!") else made


def _cast(cast: exp.Cast, catalog: CatalogTables) -> exp.Expr:
    target = cast.args["to"]
    kind = target.this
    if kind == exp.DataType.Type.ARRAY:
        return _array(cast, target)
    if isinstance(kind, exp.DataType.Type) and kind.name in _PLAIN:
        return cast
    name = _type_name(target)
    if name in _TEXT_TYPES:
        if name.startswith("regproc") and isinstance(cast.this, exp.Literal):
            return exp.Literal.string(cast.this.name.rpartition(".")[2])
        return exp.cast(cast.this, "VARCHAR")
    if name in _NUMBER_TYPES:
        return exp.cast(cast.this, "BIGINT")
    if name in _OBJECTS:
        return _object(cast.this, name, catalog)
    raise SqlSemanticError(
        f"the type {name[:64]} is not served over catalogs", code="E_UNSUPPORTED_QUERY"
    )


def _type_name(target: exp.Expr) -> str:
    """Return the last part of a type's name, in small letters."""
    kind = target.args.get("kind")
    if isinstance(kind, exp.Dot):
        kind = kind.expression
    if isinstance(kind, exp.Expr):
        return kind.name.lower()
    named = target.this.name if isinstance(target.this, exp.DataType.Type) else target.this
    return str(kind or named).rpartition(".")[2].strip('"').lower()


def _array(cast: exp.Cast, target: exp.DataType) -> exp.Expr:
    """Return `'{a,b}'::text[]` as a list; of anything else the type is left to the engine."""
    of = target.expressions[0] if target.expressions else None
    number = isinstance(of, exp.DataType) and (
        _type_name(of) in (*_NUMBER_TYPES, "int", "smallint", "bigint")
    )
    kind = "BIGINT[]" if number else "VARCHAR[]"
    literal = cast.this
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return exp.cast(literal, kind, dialect="duckdb")
    words = [w.strip().strip('"') for w in literal.name.strip().strip("{}").split(",") if w.strip()]
    made = exp.Array(expressions=[exp.Literal.string(word) for word in words])
    return exp.cast(made, kind, dialect="duckdb")


# ---------------------------------------------------------------- names that stand for oids


_OBJECTS = {
    "regclass": "relation_name",
    "regnamespace": "namespace_name",
    "regtype": "format_type",
    "regrole": "pg_get_userbyid",
}


def _object(node: exp.Expr, kind: str, catalog: CatalogTables) -> exp.Expr:
    """Return the oid that a text names, or the name of an oid."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return exp.Anonymous(this=_OBJECTS[kind], expressions=[node.copy()])
    found = _named(node, kind, catalog)
    if isinstance(found, exp.Null):
        raise SqlSemanticError(
            f'"{node.name[:64]}" does not exist', code="E_TABLE_NOT_EXIST", hint="\\dt shows tables"
        )
    return found


def _named(node: exp.Expr, kind: str, catalog: CatalogTables) -> exp.Expr:
    """Return the oid that a text names; NULL: there is no such thing."""
    if node.name.isdigit():
        return exp.Literal.number(node.name)
    parts = [a.replace('""', '"') or b.lower() for a, b in _PART.findall(node.name)]
    name = parts[-1] if parts else ""
    schema = parts[-2] if len(parts) > 1 else None
    oid: int | None = None
    if kind == "regclass":
        oid = catalog.class_oid(schema, name)
    elif kind == "regnamespace":
        oid = catalog.namespace_oid(name)
    elif kind == "regtype":
        oid = type_oid(name)
    return exp.null() if oid is None else exp.Literal.number(oid)


def type_oid(name: str) -> int | None:
    """Return the oid of a type by either of its names; None: there is no such one."""
    for kind in (*ALL_TYPES, *ARRAY_TYPES):
        if name in (kind.name, LONG_NAMES.get(kind.oid)):
            return kind.oid
    return None
