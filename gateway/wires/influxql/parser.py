"""Statements of InfluxQL: text to trees.

Owns which statements there are here. What InfluxDB has beyond that is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gateway.wires.influxql.conditions import condition
from gateway.wires.influxql.lexer import BoundValues
from gateway.wires.influxql.reading import TokenReader
from gateway.wires.influxql.tree import (
    CreateInfluxDatabase,
    DropDatabase,
    Grouping,
    GroupingFill,
    MeasurementName,
    Page,
    Pattern,
    Select,
    SelectColumn,
    ShowKind,
    ShowList,
    Statement,
)
from penstock.errors import SqlSemanticError

#: statements of one request, and names in one of its lists
MOST_STATEMENTS = 50
MOST_LISTED = 500
#: measurements that one statement asks
MOST_SOURCES = 20
T = TypeVar("T")
AGGREGATES = ("count", "mean", "min", "max", "sum", "first", "last")


def parse(text: str, now: int, bound: BoundValues | None = None) -> list[Statement]:
    """Return the statements of *text*.

    Args:
        now: what now() means, in nanoseconds.
        bound: what stands for `$name`.

    Raises:
        SqlSyntaxError: in the words of InfluxDB.
        SqlSemanticError: what is asked for does not exist here.
    """
    reader = TokenReader(text, bound)
    found: list[Statement] = []
    while not reader.ended:
        if not reader.take_sign(";"):
            found.append(_statement(reader, now))
            if not reader.ended and not reader.take_sign(";"):
                raise reader.wrong(";, EOF")
        if len(found) > MOST_STATEMENTS:
            raise unsupported(f"more than {MOST_STATEMENTS} statements in one request")
    if not found:
        raise reader.wrong("SELECT, SHOW, CREATE, DROP")
    return found


def unsupported(what: str, hint: str = "") -> SqlSemanticError:
    """Make the error for what InfluxDB can do and this cannot."""
    return SqlSemanticError(
        f"{what} is not supported here",
        code="E_UNSUPPORTED_QUERY",
        hint=hint or "POST /v1/query takes SQL, which can do more",
    )


def _statement(reader: TokenReader, now: int) -> Statement:
    word = reader.want_word("SELECT", "SHOW", "CREATE", "DROP")
    if word == "SELECT":
        return _select(reader, now)
    if word == "SHOW":
        return _show(reader)
    if not reader.take_word("DATABASE"):
        raise unsupported(f"{word} {reader.here.text[:32].upper()}")
    name = reader.identifier()
    return DropDatabase(name) if word == "DROP" else CreateInfluxDatabase(name, _retention(reader))


def _read_list(
    reader: TokenReader, read: Callable[[TokenReader], T], most: int = MOST_LISTED
) -> list[T]:
    """Read what stands between commas."""
    found = [read(reader)]
    while reader.take_sign(","):
        if len(found) >= most:
            raise reader.wrong(f"at most {most} in a list")
        found.append(read(reader))
    return found


def _retention(reader: TokenReader) -> int | None:
    """Read what stands behind WITH, of which DURATION counts here."""
    keep = None
    if not reader.take_word("WITH"):
        return keep
    while reader.is_word("DURATION", "REPLICATION", "SHARD", "NAME", "FUTURE", "PAST"):
        word = reader.want_word("DURATION", "REPLICATION", "SHARD", "NAME", "FUTURE", "PAST")
        if word == "REPLICATION":
            reader.count()
        elif word == "NAME":
            reader.identifier()
        elif word == "DURATION":
            keep = _length_or_none(reader)
        else:
            reader.want_word("DURATION", "LIMIT")
            _length_or_none(reader)
    return keep


def _length_or_none(reader: TokenReader) -> int | None:
    """Read a duration; INF and 0s are for ever."""
    if reader.take_word("INF"):
        return None
    return reader.length() or None


# ---------------------------------------------------------------- SELECT


def _select(reader: TokenReader, now: int) -> Select:
    outputs = _read_list(reader, _output)
    if reader.is_word("INTO"):
        raise unsupported("SELECT … INTO", "CREATE STREAM fills a table for good")
    reader.want_word("FROM")
    sources = _read_list(reader, _source, MOST_SOURCES)
    where = condition(reader, now) if reader.take_word("WHERE") else None
    grouping = _grouping(reader)
    descending = _order(reader)
    page = _page(reader)
    if reader.take_word("TZ"):
        raise unsupported("tz()", "times are in UTC")
    return Select(tuple(outputs), tuple(sources), where, grouping, descending, page)


def _output(reader: TokenReader) -> SelectColumn:
    if reader.take_sign("*"):
        output = SelectColumn(None)
    else:
        name = reader.identifier()
        output = _call(reader, name) if reader.take_sign("(") else SelectColumn(name)
    if reader.take_sign(":"):
        reader.want_sign(":")
        reader.want_word("FIELD", "TAG", "FLOAT", "INTEGER", "STRING", "BOOLEAN")
    if reader.is_sign("+", "-", "*", "/", "%"):
        raise unsupported("arithmetic between columns")
    return replace(output, alias=reader.identifier()) if reader.take_word("AS") else output


def _call(reader: TokenReader, name: str) -> SelectColumn:
    function = name.lower()
    if function not in AGGREGATES:
        raise unsupported(f"the function {name[:32]}()", f"there are {', '.join(AGGREGATES)}")
    field = None if reader.take_sign("*") else reader.identifier()
    if reader.here.kind in ("name", "word") or reader.is_sign("(", ","):
        raise unsupported(f"{function}() of more than one field")
    reader.want_sign(")")
    return SelectColumn(field, function)


def _source(reader: TokenReader) -> MeasurementName:
    """Read measurement, policy.measurement, database.policy.measurement or database..measurement;
    there is one retention policy, whatever it is called.
    """
    if reader.is_sign("("):
        raise unsupported("a SELECT in FROM")
    if reader.is_sign("/"):
        raise unsupported("a regular expression in FROM")
    parts = [reader.identifier()]
    while reader.take_sign("."):
        parts.append("" if reader.is_sign(".") else reader.identifier())
    if len(parts) > 3:
        raise reader.wrong("database.policy.measurement")
    return MeasurementName(parts[0] if len(parts) == 3 else None, parts[-1])


def _grouping(reader: TokenReader) -> Grouping:
    found = Grouping()
    if reader.take_word("GROUP"):
        reader.want_word("BY")
        for add in _read_list(reader, _dimension):
            found = add(found)
    if reader.take_word("FILL"):
        reader.want_sign("(")
        found = replace(found, fill=_fill(reader))
        reader.want_sign(")")
    return found


def _dimension(reader: TokenReader) -> Callable[[Grouping], Grouping]:
    """Read a part of GROUP BY; return what it adds to the parts before."""
    if reader.take_sign("*"):
        return lambda before: replace(before, tags=None)
    name = reader.identifier()
    if name.lower() == "time" and reader.take_sign("("):
        return _windows(reader)
    return lambda before: (
        before if before.tags is None else replace(before, tags=(*before.tags, name))
    )


def _windows(reader: TokenReader) -> Callable[[Grouping], Grouping]:
    every = reader.length()
    if not every:
        raise reader.wrong("a duration above 0")
    offset = 0
    if reader.take_sign(","):
        negative = reader.take_sign("-")
        offset = reader.length() * (-1 if negative else 1)
    reader.want_sign(")")

    def add(before: Grouping) -> Grouping:
        if before.every is not None:
            raise unsupported("a second time() in GROUP BY", "windows have one length: keep one")
        return replace(before, every=every, offset=offset % every)

    return add


def _fill(reader: TokenReader) -> GroupingFill:
    if reader.take_word("NULL"):
        return GroupingFill("null")
    if reader.take_word("NONE"):
        return GroupingFill("none")
    if reader.take_word("PREVIOUS"):
        return GroupingFill("previous")
    if reader.is_word("LINEAR"):
        raise unsupported("fill(linear)")
    return GroupingFill("number", reader.number())


def _order(reader: TokenReader) -> bool:
    """Read ORDER BY time; tell whether the newest comes first."""
    if not reader.take_word("ORDER"):
        return False
    reader.want_word("BY")
    name = reader.identifier()
    if name.lower() != "time":
        raise unsupported("ORDER BY of anything but time")
    return reader.is_word("ASC", "DESC") and reader.want_word("ASC", "DESC") == "DESC"


def _page(reader: TokenReader) -> Page:
    found = Page()
    if reader.take_word("LIMIT"):
        found = replace(found, limit=reader.count())
    if reader.take_word("OFFSET"):
        found = replace(found, offset=reader.count())
    if reader.take_word("SLIMIT"):
        found = replace(found, series=reader.count())
    if reader.take_word("SOFFSET"):
        found = replace(found, skipped_series=reader.count())
    return found


# ---------------------------------------------------------------- SHOW


def _show(reader: TokenReader) -> ShowList:
    word = reader.want_word("DATABASES", "MEASUREMENTS", "TAG", "FIELD", "RETENTION")
    return _SHOWS[word](reader)


def _databases(reader: TokenReader) -> ShowList:
    return ShowList("databases")


def _policies(reader: TokenReader) -> ShowList:
    reader.want_word("POLICIES")
    return ShowList("retention policies", _on(reader))


def _measurements(reader: TokenReader) -> ShowList:
    database = _on(reader)
    names: tuple[str | Pattern, ...] = ()
    if reader.take_word("WITH"):
        reader.want_word("MEASUREMENT")
        names = (_name_or_pattern(reader),)
    _no_condition(reader)
    return ShowList("measurements", database, names, page=_page(reader))


def _tags(reader: TokenReader) -> ShowList:
    values = reader.want_word("KEYS", "VALUES") == "VALUES"
    database = _on(reader)
    names = _from(reader)
    keys = _with_key(reader) if values else ()
    _no_condition(reader)
    kind: ShowKind = "tag values" if values else "tag keys"
    return ShowList(kind, database, names, keys, _page(reader))


def _fields(reader: TokenReader) -> ShowList:
    reader.want_word("KEYS")
    return ShowList("field keys", _on(reader), _from(reader), page=_page(reader))


_SHOWS: dict[str, Callable[[TokenReader], ShowList]] = {
    "DATABASES": _databases,
    "MEASUREMENTS": _measurements,
    "TAG": _tags,
    "FIELD": _fields,
    "RETENTION": _policies,
}


def _on(reader: TokenReader) -> str | None:
    return reader.identifier() if reader.take_word("ON") else None


def _from(reader: TokenReader) -> tuple[str | Pattern, ...]:
    if not reader.take_word("FROM"):
        return ()
    return tuple(source.measurement for source in _read_list(reader, _source))


def _name_or_pattern(reader: TokenReader) -> str | Pattern:
    if reader.take_sign("="):
        return reader.identifier()
    if not reader.take_sign("=~"):
        raise reader.wrong("=, =~")
    token = reader.here  # the lexer has seen to it that this is a pattern
    reader.step()
    return Pattern(token.text)


def _with_key(reader: TokenReader) -> tuple[str, ...]:
    reader.want_word("WITH")
    reader.want_word("KEY")
    if reader.take_sign("="):
        return (reader.identifier(),)
    reader.want_word("IN")
    reader.want_sign("(")
    keys = _read_list(reader, TokenReader.identifier, MOST_SOURCES)
    reader.want_sign(")")
    return tuple(keys)


def _no_condition(reader: TokenReader) -> None:
    if reader.is_word("WHERE"):
        raise unsupported("WHERE in SHOW")
