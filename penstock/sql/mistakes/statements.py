"""Statements of other databases and commands of other shells."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

_REPLACED = "INSERT a row with the same time: its values replace the old ones"
_NO_TRANSACTIONS = (
    "there are no transactions",
    "leave it out: the rows of a request are checked before any of them is written",
)
_HELP = (
    "this is no shell",
    "SHOW DATABASES, SHOW STABLES, SHOW TABLES and DESCRIBE name tell what there is",
)
_LEAVE = ("this is no shell", "close the connection to leave")
#: first word → message and hint
_OTHERS = {
    "UPDATE": ("there is no UPDATE", _REPLACED),
    "UPSERT": ("there is no UPSERT", _REPLACED),
    "REPLACE": ("there is no REPLACE", _REPLACED),
    "MERGE": ("there is no MERGE", _REPLACED),
    "TRUNCATE": ("there is no TRUNCATE", "DELETE FROM name deletes all rows of a table"),
    "START": ("there is no START", "RESUME STREAM name lets a stream go on"),
    "STOP": ("there is no STOP", "PAUSE STREAM name stops a stream and keeps its state"),
    "RENAME": ("names cannot be changed", "make a new table, and INSERT INTO it SELECT … FROM old"),
    "BEGIN": _NO_TRANSACTIONS,
    "COMMIT": _NO_TRANSACTIONS,
    "ROLLBACK": _NO_TRANSACTIONS,
    "SAVEPOINT": _NO_TRANSACTIONS,
    "SET": ("a session has no settings", "USE name chooses the database"),
    "HELP": _HELP,
    "H": _HELP,
    "EXIT": _LEAVE,
    "QUIT": _LEAVE,
    "Q": _LEAVE,
}
#: commands of shells, behind "\" or "." → the statement that answers the same
_COMMANDS = {
    "D": "SHOW TABLES, or DESCRIBE name",
    "DT": "SHOW TABLES",
    "TABLES": "SHOW TABLES",
    "SCHEMA": "SHOW CREATE TABLE name",
    "L": "SHOW DATABASES",
    "DATABASES": "SHOW DATABASES",
    "DBS": "SHOW DATABASES",
    "C": "USE database",
    "U": "USE database",
    "DU": "SHOW USERS",
    "DF": "SHOW FUNCTIONS",
    "DV": "SHOW VIEWS",
}
#: what other databases create → message and hint
_CREATED = {
    "INDEX": ("there are no indexes", "leave it out: time, tbname and tags need none"),
    "UNIQUE": ("there are no indexes", "leave it out: time, tbname and tags need none"),
    "VIEW": (
        "there are no plain views",
        "CREATE MATERIALIZED VIEW and CREATE STREAM keep results up to date",
    ),
    "SCHEMA": ("there are no schemas", "CREATE DATABASE name"),
    "SEQUENCE": ("there are no sequences", "the time of a row is its key"),
    "TRIGGER": ("there are no triggers", "CREATE STREAM computes results as rows come"),
    "TEMPORARY": ("there are no temporary tables", "CREATE TABLE, and DROP TABLE afterwards"),
    "TEMP": ("there are no temporary tables", "CREATE TABLE, and DROP TABLE afterwards"),
}


def _other_statement(place: Place) -> SqlSyntaxError | None:
    if not place.says("this is no statement"):
        return None
    if place.kind() is TokenType.PLACEHOLDER or place.shown() == "?":
        return place.mistake(*_HELP)
    if place.shown() in ("\\", "."):
        return _command(place)
    if place.word() == "START" and place.word(1) == "TRANSACTION":
        return place.mistake(*_NO_TRANSACTIONS)
    other = _OTHERS.get(place.word())
    return place.mistake(*other) if other else None


def _command(place: Place) -> SqlSyntaxError:
    word = place.word(1)
    if word in _OTHERS and word != "UPDATE":
        return place.mistake(*_OTHERS[word])
    instead = _COMMANDS.get(word)
    return place.mistake(_HELP[0], f"write {instead}" if instead else _HELP[1])


def _other_object(place: Place) -> SqlSyntaxError | None:
    """Explain CREATE of an object that does not exist here."""
    other = _CREATED.get(place.word()) if place.says("expected what to create") else None
    return place.mistake(*other) if other else None


def _other_list(place: Place) -> SqlSyntaxError | None:
    """SHOW COLUMNS FROM name"""
    if place.word() in ("COLUMNS", "FIELDS") and place.says("expected what to show"):
        return place.hinted("write DESCRIBE name")
    return None


def _rename(place: Place) -> SqlSyntaxError | None:
    """ALTER TABLE … RENAME of anything but a tag."""
    if place.word(-1) != "RENAME" or not place.says("expected TAG"):
        return None
    return place.mistake(
        "only tags can be renamed",
        "RENAME TAG old new; for another name of a table or column make a new table, and"
        " INSERT INTO it SELECT … FROM the old one",
    )


def _second_statement(place: Place) -> SqlSyntaxError | None:
    """A statement that begins where the first one should end."""
    word = place.word()
    first = ("SELECT", "INSERT", "CREATE", "DROP", "ALTER", "DELETE", "SHOW", "DESCRIBE", "USE")
    if not place.says("the statement should end") or word not in first or place.index == 0:
        return None
    if place.word(-1) == "TABLE":  # DESCRIBE TABLE name
        return None
    return place.hinted("write ; in front of a second statement")


def _needless_word(place: Place) -> SqlSyntaxError | None:
    """Words that other databases have between, or that are missing."""
    if place.index == 1 and place.word(-1) == "DELETE" and place.word(1) in ("", "WHERE"):
        return place.hinted("write DELETE FROM name WHERE …")
    if place.index == 1 and place.word(-1) == "INSERT" and place.word() != "OVERWRITE":
        return place.hinted("write INSERT INTO name VALUES (…)")
    return None


def _described(place: Place) -> SqlSyntaxError | None:
    """`DESCRIBE TABLE name`, `DESC STREAM name`"""
    if place.index != 2 or place.word(-2) not in ("DESC", "DESCRIBE"):
        return None
    if place.word(-1) == "TABLE":
        return place.hinted(f"leave TABLE out: DESCRIBE {place.shown()}")
    if place.word(-1) == "STREAM":
        return place.hinted(
            f"SHOW CREATE STREAM {place.shown()} shows its text; DESCRIBE takes its result table"
        )
    return None


def _explained(place: Place) -> SqlSyntaxError | None:
    """`EXPLAIN ANALYZE SELECT …`, `EXPLAIN (VERBOSE) SELECT …`"""
    if not place.says("EXPLAIN knows"):
        return None
    if place.word() in ("ANALYZE", "VERBOSE", "PLAN") or place.kind() is TokenType.L_PAREN:
        return place.hinted("leave options out: EXPLAIN SELECT …")
    return place.hinted("write EXPLAIN SELECT …, or EXPLAIN CREATE STREAM … AS SELECT …")


def _rows(place: Place) -> SqlSyntaxError | None:
    """Rows of an INSERT without VALUES or parentheses."""
    if place.says("expected VALUES") and place.kind() is TokenType.L_PAREN:
        return place.hinted("write VALUES in front of the rows")
    if place.says("expected VALUES") and place.word() == "SET":
        return place.hinted("write INSERT INTO name (column, …) VALUES (value, …)")
    if place.says('expected "(" and a row'):
        return place.hinted("a row stands in parentheses: VALUES (now, 1)")
    return None


STATEMENTS = (
    _other_statement,
    _other_object,
    _other_list,
    _rename,
    _second_statement,
    _described,
    _needless_word,
    _explained,
    _rows,
)
