"""DESCRIBE, and SHOW CREATE: the statement that makes a thing again, but for passwords. Reads the
catalog only, but for child tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.stream_tables import options_of
from penstock import foreign, names
from penstock.catalog.model import ROW_ID, Child, External, Replicated, Table, VirtualColumn
from penstock.catalog.view import Catalog
from penstock.link import external
from penstock.rows import tag_values
from penstock.sql import render
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.sql.render import value as sql_value
from penstock.sql.secret import hide
from penstock.sql.statements import ShowCreate
from penstock.sql.words import in_backticks
from penstock.types import ColumnType

_TEXT = ColumnType("VARCHAR", 192)
_LONG = ColumnType("VARCHAR", 65_535)
#: finds a child table and its supertable by database and name, also one that rows made
FindChild = Callable[[str, str], tuple[Child, Table] | None]
_DESCRIBE = (("field", _TEXT), ("type", _TEXT), ("length", ColumnType("INT")), ("note", _TEXT))


def describe(entry: Table | External) -> pa.Table:
    """DESCRIBE; an external stream is as the other side had it when it was looked at."""
    rows = [
        (c.name, c.type.kind, c.type.bytes(), "COMPOSITE KEY" if c.name == entry.key_column else "")
        for c in entry.columns
    ]
    rows += [(t.name, t.type.kind, t.type.bytes(), "TAG") for t in entry.tags]
    return table_of(_DESCRIBE, rows)


def describe_list(shown: Sequence[tuple[str, ColumnType]]) -> pa.Table:
    """DESCRIBE a table of `information_schema`."""
    return table_of(_DESCRIBE, [(name, kind.kind, kind.bytes(), "") for name, kind in shown])


def show_create(
    catalog: Catalog, statement: ShowCreate, database: str | None, find_child: FindChild
) -> pa.Table:
    """SHOW CREATE DATABASE | STABLE | TABLE | STREAM."""
    if statement.kind == "database":
        return _show_database(catalog, statement)
    home = statement.name.database or database
    if home is None:
        raise statement.error(
            "which database?", statement.name, code="E_WHICH_DATABASE", hint="write database.name"
        )
    if _is_external(catalog, statement, home):
        return _show_external(catalog, statement, home)
    if statement.kind == "materialized view":
        return _show_view(catalog, statement, home)
    if statement.kind == "stream":
        return _show_stream(catalog, statement, home)
    return _show_table(catalog, statement, home, find_child)


def _show_database(catalog: Catalog, statement: ShowCreate) -> pa.Table:
    name = statement.name
    found = catalog.database(name.name)
    if found is None:
        raise statement.error(f'there is no database "{name.name}"', name, code="E_NO_DATABASE")
    parts = [
        f"CREATE DATABASE {in_backticks(found.name)} PRECISION '{found.precision}'",
        f"PARTITIONS {found.partitions}",
    ]
    if found.keep:
        parts.append(f"KEEP {found.keep}")
    if found.replica > 1:
        parts.append(f"REPLICA {found.replica}")
    if found.dot_to_underscore:
        parts.append("DOT_TO_UNDERSCORE 1")
    parts.append(f"MAX_AHEAD {found.max_ahead}")
    return _answer("Database", found.name, " ".join(parts))


def _is_external(catalog: Catalog, statement: ShowCreate, home: str) -> bool:
    """Tell whether an external stream is asked for; to users it is a stream and a table, too."""
    if statement.kind == "external stream":
        return True
    if statement.kind not in ("stream", "stable", "table"):
        return False
    table = catalog.table(home, statement.name.name)
    if table is not None and table.foreign:
        return True
    return catalog.external(home, statement.name.name) is not None


def _show_external(catalog: Catalog, statement: ShowCreate, home: str) -> pa.Table:
    name = statement.name
    table = catalog.table(home, name.name)
    topic = foreign.of(table) if table is not None else None
    if table is not None and topic is not None:
        return _answer(
            "External Stream", table.name, foreign.definition_sql(table, topic), "Stream"
        )
    entry = catalog.external(home, name.name)
    if entry is None:
        raise statement.error(
            f'there is no external stream "{name.name}"', name, code="E_NO_STREAM"
        )
    return _answer("External Stream", entry.name, external.definition_sql(entry), "Stream")


def _show_view(catalog: Catalog, statement: ShowCreate, home: str) -> pa.Table:
    name = statement.name
    view = catalog.view(home, name.name)
    if view is None:
        raise statement.error(
            f'there is no materialized view "{name.name}"', name, code="E_NO_VIEW"
        )
    into = "" if view.owns_target else f" INTO {name_of(catalog, view.target_id)}"
    on_error = "" if view.on_error == "retry" else f" ON_ERROR {view.on_error.upper()}"
    text = f"CREATE MATERIALIZED VIEW {in_backticks(view.name)}{into}{on_error} AS {view.sql}"
    return _answer("Materialized View", view.name, text, "View")


def _show_stream(catalog: Catalog, statement: ShowCreate, home: str) -> pa.Table:
    name = statement.name
    stream = catalog.stream(home, name.name)
    if stream is None:
        raise statement.error(f'there is no stream "{name.name}"', name, code="E_NO_STREAM")
    return _answer("Stream", stream.name, hide(stream.plan.sql))


def _show_table(
    catalog: Catalog, statement: ShowCreate, home: str, find_child: FindChild
) -> pa.Table:
    name = statement.name
    table = catalog.table(home, name.name)
    if table is not None:
        return _answer("Table", table.name, _create_table(table))
    found = find_child(home, name.name)
    if found is None:
        raise statement.error(f'there is no table "{name.name}"', name, code="E_NO_TABLE")
    return _answer("Table", found[0].name, _create_child(*found))


def _create_child(child: Child, stable: Table) -> str:
    # tags that came later are missing at the end
    values = (*child.tags, *(None,) * (len(stable.tags) - len(child.tags)))
    tags = ", ".join(map(_tag_value, stable.tags, values))
    word = "VTABLE" if stable.kind == "virtual" else "TABLE"
    origins = ", ".join(f"{in_backticks(o.column)} {_from(o)}" for o in child.origins)
    origins = f" ({origins})" if origins else ""
    return (
        f"CREATE {word} {in_backticks(child.name)}{origins} USING {in_backticks(stable.name)} TAGS"
        f" ({tags})"
    )


def _tag_value(tag: Column, value: Any) -> str:
    held = tag_values.from_json(value, tag.type)
    return f"'\\x{held.hex()}'" if isinstance(held, bytes) else sql_value(value)


def name_of(catalog: Catalog, entry_id: int) -> str:
    """Return `database`.`name` of a table or external stream; "?" when it is gone."""
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

    def render_all(columns: Sequence[Column]) -> str:
        return ", ".join(
            f"{in_backticks(c.name)} {c.type}"
            + (" COMPOSITE KEY" if c.name == table.key_column else "")
            + origins.get(c.name, "")
            for c in columns
        )

    word = "STABLE" if table.tags else "TABLE"
    if table.kind == "virtual":
        word = "VIRTUAL STABLE" if table.tags else "VTABLE"
    text = f"CREATE {word} {in_backticks(table.name)} ({render_all(table.columns)})"
    if table.tags:
        text += f" TAGS ({render_all(table.tags)})"
    if names.has_own(table.topic):
        text += f" WITH (topic='own', partitions={table.partitions})"
    return text


def _create_stream_table(table: Table, replicated: Replicated) -> str:
    columns = tuple(st.ColumnDef(c.name, c.type) for c in table.columns if c.name != ROW_ID)
    options = options_of(replicated)
    return render(st.CreateStreamTable(table=st.Name(table.name), columns=columns, options=options))
