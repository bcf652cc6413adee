"""Rules of DDL as pure decisions: catalog and arguments in, a `Change` or a CatalogError out.

They say which names and columns are possible, which ALTERs keep old records readable, and that
nothing a stream uses is dropped or changed under it.
"""

from penstock.catalog.changes.change import Change, NewId
from penstock.catalog.changes.columns import add_column, drop_column, modify_column, rename_tag
from penstock.catalog.changes.databases import alter_database, create_database, drop_database
from penstock.catalog.changes.federation import (
    create_external,
    create_view,
    drop_external,
    drop_view,
    set_view_status,
)
from penstock.catalog.changes.registry import clear_compatibility, set_compatibility
from penstock.catalog.changes.streams import (
    check_flow,
    create_snode,
    create_stream,
    drop_snode,
    drop_stream,
    set_stream_status,
)
from penstock.catalog.changes.tables import (
    create_child,
    create_foreign,
    create_table,
    drop_child,
    drop_table,
    set_table_options,
    set_tags,
)

__all__ = [
    "Change",
    "NewId",
    "add_column",
    "alter_database",
    "check_flow",
    "clear_compatibility",
    "create_child",
    "create_database",
    "create_external",
    "create_foreign",
    "create_snode",
    "create_stream",
    "create_table",
    "create_view",
    "drop_child",
    "drop_column",
    "drop_database",
    "drop_external",
    "drop_snode",
    "drop_stream",
    "drop_table",
    "drop_view",
    "modify_column",
    "rename_tag",
    "set_compatibility",
    "set_stream_status",
    "set_table_options",
    "set_tags",
    "set_view_status",
]
