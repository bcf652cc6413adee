"""DESCRIBE, and SHOW CREATE: the statement that makes a thing again, but for passwords. Reads the
catalog only.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from gateway.answers import table_of
from gateway.stream_tables import options_of
from penstock import foreign, names
from penstock.catalog.model import ROW_ID, External, Replicated, Table, VirtualColumn
from penstock.catalog.view import Catalog
from penstock.link import external
from penstock.sql import render
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.sql.render import value as sql_value
from penstock.sql.secret import hidden
from penstock.sql.statements import ShowCreate
from penstock.sql.words import in_backticks
from penstock.types import ColumnType

_TEXT = ColumnType("VARCHAR", 192)
_LONG = ColumnType("VARCHAR", 65_535)
_DESCRIBE = (("field", _TEXT), ("type", _TEXT), ("length", ColumnType("INT")), ("note", _TEXT))


def describe(entry: Table | External) -> pa.Table:
    """DESCRIBE; an external stream is as the other side had it when it was looked at."""
    rows = [
        (c.name, c.type.kind, c.type.bytes(), "COMPOSITE KEY" if c.name == entry.key_column else "")
        for c in entry.columns
    ]
    rows += [(t.name, t.type.kind, t.type.bytes(), "TAG") for t in entry.tags]
    return table_of(_DESCRIBE, rows)


def show_create(catalog: Catalog, statement: ShowCreate, database: str | None) -> pa.Table:
    """SHOW CREATE DATABASE | STABLE | TABLE | STREAM."""
    name = statement.name
    home = name.database or database
    if statement.kind == "database":
        found = catalog.database(name.name)
        if found is None:
            raise statement.error(f'there is no database "{name.name}"', name, code="E_NO_DATABASE")
        text = (
            f"CREATE DATABASE {in_backticks(found.name)} PRECISION '{found.precision}' PARTITIONS"
            f" {found.partitions}"
        )
        text += f" KEEP {found.keep}" if found.keep else ""
        text += f" REPLICA {found.replica}" if found.replica > 1 else ""
        text += " DOT_TO_UNDERSCORE 1" if found.dot_to_underscore else ""
        return _answer("Database", found.name, f"{text} MAX_AHEAD {found.max_ahead}")
    if home is None:
        raise statement.error(
            "which database?", name, code="E_WHICH_DATABASE", hint="write database.name"
        )
    entry = catalog.external(home, name.name)
    named = catalog.table(home, name.name)
    is_external = entry is not None or (named is not None and named.foreign)
    if statement.kind == "external stream" or (
        is_external and statement.kind in ("stream", "stable", "table")
    ):
        if named is not None and (topic := foreign.of(named)) is not None:
            return _answer(
                "External Stream", named.name, foreign.definition_sql(named, topic), "Stream"
            )
        if entry is None:
            raise statement.error(
                f'there is no external stream "{name.name}"', name, code="E_NO_STREAM"
            )
        return _answer("External Stream", entry.name, external.definition_sql(entry), "Stream")
    if statement.kind == "materialized view":
        view = catalog.view(home, name.name)
        if view is None:
            raise statement.error(
                f'there is no materialized view "{name.name}"', name, code="E_NO_VIEW"
            )
        into = "" if view.owns_target else f" INTO {name_of(catalog, view.target_id)}"
        on_error = "" if view.on_error == "retry" else f" ON_ERROR {view.on_error.upper()}"
        text = f"CREATE MATERIALIZED VIEW {in_backticks(view.name)}{into}{on_error} AS {view.sql}"
        return _answer("Materialized View", view.name, text, "View")
    if statement.kind == "stream":
        stream = catalog.stream(home, name.name)
        if stream is None:
            raise statement.error(f'there is no stream "{name.name}"', name, code="E_NO_STREAM")
        return _answer("Stream", stream.name, hidden(stream.plan.sql))
    table = catalog.table(home, name.name)
    child = catalog.child(home, name.name)
    if table is not None:
        return _answer("Table", table.name, _create_table(table))
    stable = catalog.table_by_id(child.stable_id) if child is not None else None
    if child is None or stable is None:
        raise statement.error(f'there is no table "{name.name}"', name, code="E_NO_TABLE")
    tags = ", ".join(
        sql_value(v) if not isinstance(v, bytes) else f"'\\x{v.hex()}'"  # type: ignore[arg-type]
        for v in child.tags
    )
    word = "VTABLE" if stable.kind == "virtual" else "TABLE"
    origins = ", ".join(f"{in_backticks(o.column)} {_from(o)}" for o in child.origins)
    origins = f" ({origins})" if origins else ""
    text = (
        f"CREATE {word} {in_backticks(child.name)}{origins} USING {in_backticks(stable.name)} TAGS"
        f" ({tags})"
    )
    return _answer("Table", child.name, text)


def name_of(catalog: Catalog, entry_id: int) -> str:
    """`database`.`name` of a table or external stream; "?" when it is gone."""
    entry = catalog.by_id(entry_id)
    return (
        f"{in_backticks(entry.database)}.{in_backticks(entry.name)}"
        if isinstance(entry, Table | External)
        else "?"
    )


def _answer(what: str, name: str, text: str, shown: str = "") -> pa.Table:
    return table_of(((shown or what, _TEXT), (f"Create {what}", _LONG)), [(name, text)])


def _from(origin: VirtualColumn) -> str:
    names = (origin.database, origin.table, origin.source)
    return f"FROM {'.'.join(in_backticks(name) for name in names)}"


def _create_table(table: Table) -> str:
    if table.replicated is not None:
        return _create_stream_table(table, table.replicated)
    origins = {o.column: f" {_from(o)}" for o in table.origins}

    def listed(columns: Sequence[Column]) -> str:
        return ", ".join(
            f"{in_backticks(c.name)} {c.type}"
            + (" COMPOSITE KEY" if c.name == table.key_column else "")
            + origins.get(c.name, "")
            for c in columns
        )

    word = "STABLE" if table.tags else "TABLE"
    if table.kind == "virtual":
        word = "VIRTUAL STABLE" if table.tags else "VTABLE"
    text = f"CREATE {word} {in_backticks(table.name)} ({listed(table.columns)})"
    if table.tags:
        text += f" TAGS ({listed(table.tags)})"
    if names.has_own(table.topic):
        text += f" WITH (topic='own', partitions={table.partitions})"
    return text


def _create_stream_table(table: Table, replicated: Replicated) -> str:
    columns = tuple(st.ColumnDef(c.name, c.type) for c in table.columns if c.name != ROW_ID)
    options = options_of(replicated)
    return render(st.CreateStreamTable(table=st.Name(table.name), columns=columns, options=options))
