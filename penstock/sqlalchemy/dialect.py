"""The dialect: how SQLAlchemy connects, and what it reads of databases, tables and columns.

A schema of SQLAlchemy's is a database. Tables are supertables and plain tables; the child tables of
a supertable may be a million, so they are not listed, though each can be asked for by name.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import URL, Connection, default, reflection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchTableError
from sqlalchemy.sql.compiler import IdentifierPreparer

from penstock.client.connection_options import ConnectionOptions
from penstock.sqlalchemy.columns import PenstockTypes, type_of
from penstock.sqlalchemy.compilers import PenstockDefinitions, PenstockNames, PenstockStatements

_PORT = 7700
#: what may stand behind the `?` of an address
_OPTIONS = {"timezone", "timeout", "notifier_url", "ca", "tls", "token"}
_TABLES = """
SELECT stable_name FROM information_schema.ins_stables WHERE db_name = :database
UNION ALL
SELECT table_name FROM information_schema.ins_tables
WHERE db_name = :database AND type = 'NORMAL_TABLE'
"""
_NO_TABLE = ("E_NO_TABLE", "E_TABLE_NOT_EXIST", "E_NO_DATABASE")


class PenstockDialect(default.DefaultDialect):
    """`penstock://user:password@host:port/database?timezone=…&tls=1&ca=FILE`."""

    name = "penstock"
    driver = "dbapi"
    default_paramstyle = "qmark"
    max_identifier_length = 192

    statement_compiler = PenstockStatements
    ddl_compiler = PenstockDefinitions
    type_compiler_cls = PenstockTypes
    preparer: type[IdentifierPreparer] = PenstockNames

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_default_values = False
    supports_empty_insert = False
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    supports_sequences = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    insert_executemany_returning = False
    supports_schemas = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        from penstock import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Return what `penstock.dbapi.connect` takes for *url*."""
        given: dict[str, Any] = dict(url.query)
        unknown = sorted(given.keys() - _OPTIONS)
        if unknown:
            raise ArgumentError(
                f"{unknown[0]} is no option of a Penstock address: " + ", ".join(sorted(_OPTIONS))
            )
        scheme = "https" if given.pop("tls", "") or "ca" in given else "http"
        host = url.host or "127.0.0.1"
        shown = f"[{host}]" if ":" in host else host
        login = {
            "user": url.username or "root",
            "password": url.password or "",
            "database": url.database,
            "token": given.pop("token", None),
        }
        if "timeout" in given:
            given["timeout"] = float(given["timeout"])
        address = f"{scheme}://{shown}:{url.port or _PORT}"
        return [address], {**login, "options": ConnectionOptions(**given)}

    def _get_default_schema_name(self, connection: Connection) -> str:
        driver: Any = connection.connection.driver_connection
        return str(driver.penstock.database or "")

    def _get_server_version_info(self, connection: Connection) -> Any:
        said = connection.exec_driver_sql("SELECT server_version()").scalar_one()
        return tuple(int(part) for part in said.split()[0].split("."))

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[Any]:
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return "AUTOCOMMIT"

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        """Tell that no connection can be lost: every statement is a request of its own."""
        return False

    # ---------------------------------------------------------------- reflection

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        found = connection.execute(text("SELECT name FROM information_schema.ins_databases"))
        return sorted(found.scalars())

    @reflection.cache
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        database = schema or self.default_schema_name
        found = connection.execute(text(_TABLES), {"database": database})
        return sorted(found.scalars())

    @reflection.cache
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return none: what a materialized view has made is a table."""
        return []

    @reflection.cache
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Tell if there is a table or child table of that name."""
        try:
            self.get_columns(connection, table_name, schema, **kw)
        except NoSuchTableError:
            return False
        return True

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return columns, then tags. Raises NoSuchTableError."""
        try:
            rows = connection.exec_driver_sql(f"DESCRIBE {self._path(table_name, schema)}").all()
        except DBAPIError as error:
            if _code(error) in _NO_TABLE:
                raise NoSuchTableError(table_name) from error
            raise
        return [
            {
                "name": name,
                "type": type_of(kind, length),
                "nullable": position > 0,
                "default": None,
                "comment": note or None,
            }
            for position, (name, kind, length, note, *_) in enumerate(rows)
        ]

    @reflection.cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return the time column: with the name of its child table it is a row's key."""
        columns = self.get_columns(connection, table_name, schema, **kw)
        return {"constrained_columns": [columns[0]["name"]], "name": None}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return []

    @reflection.cache
    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return []

    @reflection.cache
    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return []

    @reflection.cache
    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return []

    @reflection.cache
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        return {"text": None}

    def _path(self, table: str, schema: str | None) -> str:
        quote = self.identifier_preparer.quote
        return f"{quote(schema)}.{quote(table)}" if schema else str(quote(table))


def _code(error: DBAPIError) -> str:
    """Return Penstock's code of an error that SQLAlchemy has wrapped."""
    cause = error.orig.__cause__ if error.orig is not None else None
    return str(getattr(cause, "code", ""))
