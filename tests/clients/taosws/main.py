"""taosws, TDengine's WebSocket connector for Python."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import taosws
from told import options, serve, value

_told = options()
_connection: Any
_COLUMNS = {
    "time": taosws.nanos_timestamps_to_column,
    "int": taosws.ints_to_column,
    "double": taosws.doubles_to_column,
    "text": taosws.varchar_to_column,
}
_TAGS = {"int": taosws.int_to_tag, "text": taosws.varchar_to_tag}


def connect() -> str:
    global _connection
    zone = f"?timezone={quote(_told['zone'], safe='')}" if "zone" in _told else ""
    _connection = taosws.connect(
        f"taosws://{_told['user']}:{_told['password']}@{_told['host']}:{_told['http']}"
        f"/{_told['database']}{zone}"
    )
    return str(taosws.__version__)


def query(sql: str) -> Any:
    found = _connection.query(sql)
    names = [[field.name(), field.type()] for field in found.fields]
    return {"columns": names, "rows": [list(row) for row in found]}


def update(sql: str) -> int:
    return int(_connection.execute(sql))


def many(sql: str, size: str) -> list[int]:
    cursor = _connection.cursor()
    cursor.execute(sql)
    rows: list[Any] = []
    while some := cursor.fetchmany(int(size)):
        rows += some
    return [len(rows), sum(row[0] for row in rows)]


def bind(sql: str, *tables: str) -> int:
    """Write by the older prepared statements, one table after another.

    A table is `name|tag,tag|column|column`, where a column is `kind:value,value`.
    """
    statement = _connection.statement()
    statement.prepare(sql)
    for table in tables:
        name, tags, columns = _table(table)
        statement.set_tbname_tags(name, tags)
        statement.bind_param(columns)
        statement.add_batch()
    statement.execute()
    written = int(statement.affect_rows())
    statement.close()
    return written


def bind_all(sql: str, *tables: str) -> int:
    """Write by the newer prepared statements, all tables at once."""
    statement = _connection.stmt2_statement()
    statement.prepare(sql)
    statement.bind([taosws.stmt2_bind_param_view(*_table(table)) for table in tables])
    written = int(statement.execute())
    statement.close()
    return written


def ask_bound(sql: str, *columns: str) -> list[Any]:
    """Ask by a prepared statement."""
    statement = _connection.stmt2_statement()
    statement.prepare(sql)
    statement.bind([taosws.stmt2_bind_param_view(None, None, [_column(c) for c in columns])])
    statement.execute()
    rows = [list(row) for row in statement.result_set()]
    statement.close()
    return rows


def lines(*points: str) -> None:
    """Write line protocol."""
    _connection.schemaless_insert(
        lines=list(points),
        protocol=taosws.PySchemalessProtocol.Line,
        precision=taosws.PySchemalessPrecision.Nanosecond,
        ttl=0,
        req_id=7,
    )


def _table(text: str) -> tuple[str, list[Any], list[Any]]:
    name, tags, *columns = text.split("|")
    made = [_TAGS[tag.partition(":")[0]](value(tag)) for tag in tags.split(",")]
    return name, made, [_column(column) for column in columns]


def _column(text: str) -> Any:
    kind, _, values = text.partition(":")
    read = {"time": int, "int": int, "double": float, "text": str}[kind]
    return _COLUMNS[kind]([None if v == "null" else read(v) for v in values.split(",")])


def _code_of(wrong: Exception) -> Any:
    """Return TDengine's code, which stands in front of the words: `[0x2602] …`."""
    words = str(wrong)
    at = words.find("[0x")
    return words[at + 3 : words.index("]", at)].lower() if at >= 0 else None


serve(
    connect,
    {
        "query": query,
        "update": update,
        "many": many,
        "bind": bind,
        "bind_all": bind_all,
        "ask_bound": ask_bound,
        "lines": lines,
    },
    _code_of,
)
