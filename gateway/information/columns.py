"""The columns of SHOW's lists, and so of the tables of `information_schema`: names and types, in
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.types import ColumnType

TEXT = ColumnType("VARCHAR", 192)
LONG = ColumnType("VARCHAR", 65_535)
INT = ColumnType("INT")
BIG = ColumnType("BIGINT")
TIME = ColumnType("TIMESTAMP")
Columns = Sequence[tuple[str, ColumnType]]

DATABASES: Columns = (
    ("name", TEXT),
    ("ntables", BIG),
    ("partitions", INT),
    ("replica", INT),
    ("keep", TEXT),
    ("precision", TEXT),
    ("max_ahead", TEXT),
    ("topic", TEXT),
    ("status", TEXT),
)
STABLES: Columns = (
    ("stable_name", TEXT),
    ("db_name", TEXT),
    ("columns", INT),
    ("tags", INT),
    ("table_comment", LONG),
    ("topic", TEXT),
)
TABLES: Columns = (
    ("table_name", TEXT),
    ("db_name", TEXT),
    ("columns", INT),
    ("stable_name", TEXT),
    ("uid", BIG),
    ("type", TEXT),
)
STORAGE: Columns = (
    ("table_name", TEXT),
    ("db_name", TEXT),
    # as in COLUMNS; child tables are not listed
    ("table_type", TEXT),
    ("partitions", INT),
    # of the table itself
    ("keep", TEXT),
    ("table_comment", LONG),
    ("child_tables", BIG),
    # versions of rows in files, and those that are in none yet
    ("stored_rows", BIG),
    ("tail_rows", BIG),
    ("stored_bytes", BIG),
    ("stored_files", BIG),
)
COLUMNS: Columns = (
    ("table_name", TEXT),
    ("db_name", TEXT),
    ("table_type", TEXT),
    ("col_name", TEXT),
    ("col_type", TEXT),
    ("col_length", INT),
    ("note", TEXT),
)
TAGS: Columns = (
    ("table_name", TEXT),
    ("db_name", TEXT),
    ("stable_name", TEXT),
    ("tag_name", TEXT),
    ("tag_type", TEXT),
    ("tag_value", LONG),
)
INDEXES: Columns = (
    ("index_name", TEXT),
    ("db_name", TEXT),
    ("table_name", TEXT),
    ("vgroup_id", INT),
    ("create_time", TIME),
    ("columns", LONG),
    ("index_extensions", TEXT),
)
STREAMS: Columns = (
    ("stream_name", TEXT),
    ("create_time", TIME),
    ("stream_id", BIG),
    ("sql", LONG),
    ("status", TEXT),
    ("source_db", TEXT),
    ("source_table", TEXT),
    ("target_db", TEXT),
    ("target_table", TEXT),
    ("watermark", TEXT),
    ("trigger", TEXT),
    ("path", TEXT),
    ("message", LONG),
    ("rows_in", BIG),
    ("rows_out", BIG),
    ("late_rows", BIG),
    ("failed_rows", BIG),
    ("state_bytes", BIG),
    ("lag_records", BIG),
    ("last_error", LONG),
    ("max_results", BIG),
    ("max_state", BIG),
    ("events_waiting", BIG),
    ("lag_partition", TEXT),
    # how much of its history is filled, where that goes on
    ("history_percent", INT),
    # what MAX_STATE counts
    ("full_state_bytes", BIG),
)
LATE: Columns = (
    ("stream_name", TEXT),
    ("db_name", TEXT),
    ("arrived", TIME),
    ("table_name", TEXT),
    ("ticks", BIG),
    ("row", LONG),
)
LETTERS: Columns = (
    ("topic", TEXT),
    ("partition", INT),
    ("offset", BIG),
    ("reader", TEXT),
    ("stream_name", TEXT),
    ("db_name", TEXT),
    ("code", TEXT),
    ("reason", LONG),
    ("time", TIME),
    ("value", LONG),
    # what `value` holds: row, result or record
    ("kind", TEXT),
    # the table whose rows they are, as far as it is known, and its first column
    ("source_db", TEXT),
    ("source_table", TEXT),
    ("time_column", TEXT),
    ("to_do", LONG),
)
TASKS: Columns = (
    ("stream_name", TEXT),
    ("db_name", TEXT),
    ("stream_id", BIG),
    ("task_id", TEXT),
    ("level", TEXT),
    ("status", TEXT),
    ("live_from", BIG),
    ("progress", LONG),
    ("rows_in", BIG),
    ("rows_out", BIG),
    ("late_rows", BIG),
    ("failed_rows", BIG),
    ("state_bytes", BIG),
    ("last_error", LONG),
    ("history_percent", INT),
)
EXTERNALS: Columns = (
    ("stream_name", TEXT),
    ("db_name", TEXT),
    ("type", TEXT),
    ("hosts", LONG),
    ("remote_db", TEXT),
    ("remote_stream", TEXT),
    ("user", TEXT),
    ("secure", ColumnType("BOOL")),
    ("create_time", TIME),
    ("status", TEXT),
    ("rows_read", BIG),
    ("lag_records", BIG),
    ("last_error", LONG),
)
VIEWS: Columns = (
    ("view_name", TEXT),
    ("db_name", TEXT),
    ("status", TEXT),
    ("source", TEXT),
    ("target", TEXT),
    ("rows_sent", BIG),
    ("lag_records", BIG),
    ("lag_seconds", ColumnType("DOUBLE")),
    ("last_error", LONG),
    ("create_time", TIME),
    ("sql", LONG),
    ("on_error", TEXT),
    ("rows_dropped", BIG),
)
USERS: Columns = (
    ("name", TEXT),
    ("super", INT),
    ("enable", INT),
    ("roles", LONG),
    ("create_time", TIME),
)
ROLES: Columns = (("name", TEXT), ("users", LONG))
GRANTS: Columns = (
    ("user_name", TEXT),
    ("kind", TEXT),
    ("privilege", TEXT),
    ("object_type", TEXT),
    ("db_name", TEXT),
    ("object_name", TEXT),
)
DNODES: Columns = (
    ("id", INT),
    ("endpoint", TEXT),
    ("status", TEXT),
    ("create_time", TIME),
    ("services", TEXT),
    ("note", TEXT),
    # the former name of `services`
    ("rooms", TEXT),
)
SNODES: Columns = (
    ("id", INT),
    ("endpoint", TEXT),
    ("create_time", TIME),
    ("status", TEXT),
    ("backup_dir", TEXT),
    ("backups", BIG),
    ("newest", TIME),
    ("note", LONG),
)
FUNCTIONS: Columns = (
    ("name", TEXT),
    ("aggregate", ColumnType("BOOL")),
    ("parameters", LONG),
    ("output_type", TEXT),
    ("func_language", TEXT),
    ("streams", INT),
    ("func_body", LONG),
)

#: the tables of `information_schema`
LISTS: dict[str, Columns] = {
    "ins_databases": DATABASES,
    "ins_stables": STABLES,
    "ins_tables": TABLES,
    "ins_storage": STORAGE,
    "ins_columns": COLUMNS,
    "ins_tags": TAGS,
    "ins_indexes": INDEXES,
    "ins_streams": STREAMS,
    "ins_stream_tasks": TASKS,
    "ins_external_streams": EXTERNALS,
    "ins_views": VIEWS,
    "ins_users": USERS,
    "ins_roles": ROLES,
    "ins_user_privileges": GRANTS,
    "ins_dnodes": DNODES,
    "ins_snodes": SNODES,
    "ins_functions": FUNCTIONS,
    "ins_late_rows": LATE,
    "ins_dead_letters": LETTERS,
}
