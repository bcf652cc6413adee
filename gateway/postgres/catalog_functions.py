"""Functions of PostgreSQL that tools call beside `pg_catalog`, as macros of the engine.

A macro is made only for a query that calls it, under a name of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.postgres.catalog_tables import LONG_NAMES
from gateway.postgres.session import SERVER_VERSION, PgSession
from penstock.duck.quoting import literal

#: in front of the names of macros
MARK: Final = "f_"
_NULL_TEXT = "CAST(NULL AS VARCHAR)"
_NULL_NUMBER = "CAST(NULL AS BIGINT)"
_TYPE_CASES = " ".join(f"WHEN {oid} THEN {literal(name)}" for oid, name in LONG_NAMES.items())
_TYPE = (
    f"CASE o {_TYPE_CASES} ELSE (SELECT CASE WHEN typelem <> 0 THEN ltrim(typname, '_') || '[]'"
    " ELSE typname END FROM p_pg_type WHERE oid = o) END"
)
_NUMERIC = (
    "CASE WHEN o = 1700 AND m >= 4 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535)"
    f" || ')' ELSE {_TYPE} END"
)
_IDENT = (
    "CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_$]*') THEN s ELSE '\"' || replace(s, '\"',"
    " '\"\"') || '\"' END"
)
_COMMENT = "(SELECT max(description) FROM p_pg_description WHERE objoid = o AND objsubid = {})"
_VISIBLE = "EXISTS (SELECT 1 FROM p_pg_class WHERE oid = o AND relnamespace IN ({}))"
_EXPAND = "unnest(list_transform(v, lambda e, i: {'x': e, 'n': i}))"


@dataclass(frozen=True)
class CatalogMacro:
    """Bodies of one function, by their parameters."""

    bodies: tuple[tuple[str, str], ...]

    @property
    def tables(self) -> frozenset[str]:
        """Return the engine's tables that it reads."""
        return frozenset(re.findall(r"\bp_pg_\w+", " ".join(body for _, body in self.bodies)))

    def definition(self, name: str) -> str:
        """Return the statement that makes it."""
        bodies = ", ".join(f"({parameters}) AS {body}" for parameters, body in self.bodies)
        return f"CREATE TEMP MACRO {MARK}{name}{bodies}"


def _one(parameters: str, body: str) -> CatalogMacro:
    return CatalogMacro(((parameters, body),))


def _constant(body: str, *counts: int) -> CatalogMacro:
    """Return a function of so many arguments whose value does not depend on them."""
    lists = (", ".join(f"a{n}" for n in range(count)) for count in counts)
    return CatalogMacro(tuple((parameters, body) for parameters in lists))


_MACROS: dict[str, CatalogMacro] = {
    "format_type": CatalogMacro((("o, m", _NUMERIC), ("o", _TYPE))),
    "quote_ident": _one("s", _IDENT),
    "quote_literal": _one("s", "'''' || replace(s, '''', '''''') || ''''"),
    "obj_description": CatalogMacro((("o", _COMMENT.format(0)), ("o, c", _COMMENT.format(0)))),
    "col_description": _one("o, n", _COMMENT.format("n")),
    "pg_get_userbyid": _one("o", "(SELECT max(rolname) FROM p_pg_roles WHERE oid = o)"),
    "_pg_expandarray": _one("v", _EXPAND),
    "array_upper": _one("v, n", "len(v)"),
    "array_lower": _one("v, n", "1"),
    "set_config": _one("n, v, l", "v"),
    "pg_encoding_to_char": _constant("'UTF8'", 1),
    "pg_size_pretty": _one("n", "CAST(n AS VARCHAR) || ' bytes'"),
    # names of what an oid stands for: what columns cast to regclass and the like give
    "relation_name": _one("o", "(SELECT max(relname) FROM p_pg_class WHERE oid = o)"),
    "namespace_name": _one("o", "(SELECT max(nspname) FROM p_pg_namespace WHERE oid = o)"),
    **dict.fromkeys(("shobj_description",), _constant(_NULL_TEXT, 2)),
    **dict.fromkeys(
        (
            "pg_get_expr",
            "pg_get_constraintdef",
            "pg_get_viewdef",
            "pg_get_ruledef",
            "pg_get_triggerdef",
        ),
        _constant(_NULL_TEXT, 1, 2, 3),
    ),
    **dict.fromkeys(
        (
            "pg_get_functiondef",
            "pg_get_function_result",
            "pg_get_function_arguments",
            "pg_get_function_identity_arguments",
            "pg_get_partkeydef",
            "pg_get_partition_constraintdef",
            "pg_get_statisticsobjdef_columns",
            "pg_tablespace_location",
        ),
        _constant(_NULL_TEXT, 1),
    ),
    "pg_get_indexdef": _constant(_NULL_TEXT, 1, 3),
    "pg_get_serial_sequence": _constant(_NULL_TEXT, 2),
    **dict.fromkeys(
        ("pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_indexes_size"),
        _constant(_NULL_NUMBER, 1, 2),
    ),
    **dict.fromkeys(("pg_database_size", "pg_tablespace_size"), _constant(_NULL_NUMBER, 1)),
    **dict.fromkeys(
        (
            "pg_type_is_visible",
            "pg_function_is_visible",
            "pg_opclass_is_visible",
            "pg_operator_is_visible",
            "pg_collation_is_visible",
            "pg_statistics_obj_is_visible",
            "pg_relation_is_publishable",
        ),
        _constant("TRUE", 1),
    ),
    **dict.fromkeys(
        (
            "has_table_privilege",
            "has_schema_privilege",
            "has_database_privilege",
            "has_any_column_privilege",
            "has_function_privilege",
            "has_sequence_privilege",
            "pg_has_role",
        ),
        _constant("TRUE", 2, 3),
    ),
    "has_column_privilege": _constant("TRUE", 3, 4),
    "pg_is_in_recovery": _constant("FALSE", 0),
    "pg_is_other_temp_schema": _constant("FALSE", 1),
    "pg_my_temp_schema": _constant("0", 0),
    "pg_advisory_unlock_all": _constant(_NULL_TEXT, 0),
    **dict.fromkeys(("inet_server_addr", "inet_client_addr"), _constant(_NULL_TEXT, 0)),
    **dict.fromkeys(("inet_server_port", "inet_client_port"), _constant(_NULL_NUMBER, 0)),
    **dict.fromkeys(("pg_postmaster_start_time", "pg_conf_load_time"), _constant("now()", 0)),
}
#: functions that the engine has itself, with the same meaning
ENGINE_FUNCTIONS: Final = frozenset(
    ("array_to_string", "array_length", "now", "split_part", "string_agg", "md5", "unnest")
)


def macros_of(session: PgSession, schema: int | None, process: int) -> dict[str, CatalogMacro]:
    """Return all functions for a connection.

    Args:
        schema: the oid of its current schema; None: it has none, and all tables are visible.
        process: the number that a request to cancel names it by.
    """
    database = session.database
    named = _NULL_TEXT if database is None else literal(database)
    path = "[]" if database is None else f"[{literal(database)}]"
    visible = "TRUE" if schema is None else _VISIBLE.format(f"{schema}, 11")
    own = {
        "version": _constant(literal(f"PostgreSQL {SERVER_VERSION} (Penstock)"), 0),
        "current_database": _constant(literal(session.connected_to), 0),
        "current_catalog": _constant(literal(session.connected_to), 0),
        "current_schema": _constant(named, 0),
        "current_schemas": _one(
            "b", f"CASE WHEN b THEN list_concat(['pg_catalog'], {path}) ELSE {path} END"
        ),
        "pg_backend_pid": _constant(str(process), 0),
        "pg_table_is_visible": _one("o", visible),
        **dict.fromkeys(
            ("current_user", "session_user", "current_role", "user"),
            _constant(literal(session.user), 0),
        ),
    }
    return {**_MACROS, **own}
