"""parse(render(x)) == [x] for statements made at random: data classes for DDL and rows, texts for
queries and streams.
"""

# ruff: noqa: E501
from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some
from sqlglot import exp

from penstock.sql import parse, parse_one, render
from penstock.sql.plan import Duration, Trigger
from penstock.sql.statements import (
    AlterDatabase,
    AlterTable,
    ChildDef,
    ColumnDef,
    CreateChildren,
    CreateDatabase,
    CreateExternalStream,
    CreateFunction,
    CreateStable,
    CreateStream,
    CreateStreamTable,
    CreateTable,
    CreateView,
    DatabaseOptions,
    Drop,
    Insert,
    InsertPart,
    Name,
    NotifyClause,
    Query,
    RelativeTime,
    Statement,
    SteerView,
    StreamOptions,
    StreamTableSettings,
    TableOptions,
    TargetColumn,
    TargetTag,
)
from penstock.types import ColumnType
from tests.nightly import drawn

MANY = settings(max_examples=drawn(100), deadline=None)

words = some.sampled_from(
    [
        "a",
        "tbname",
        "_wstart",
        "Met",
        "select",
        "now",
        "from",
        "order",
        "tags",
        "interval",
        "open",
        "übung",
        "名",
        "x y",
        "a`b",
        "1a",
        "-",
    ]
)
names = words | some.text(
    some.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
)
texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=12) | some.sampled_from(
    ["it's", '"', "\\", "\\n", "a\nb", "''", '""', "%", ";--", "/*"]
)
tables = some.builds(Name, names, some.none() | names)
durations = some.builds(Duration, some.integers(0, 200), some.sampled_from("buasmhdwny"))
decimals = some.decimals(allow_nan=False, allow_infinity=False, places=18).filter(
    lambda d: "E" not in str(d) and len(str(abs(d))) > 16
)
moments = some.builds(
    RelativeTime,
    some.sampled_from(["now", "today"]),
    some.lists(some.tuples(some.sampled_from([1, -1]), durations), max_size=2).map(tuple),
) | some.builds(
    RelativeTime,
    texts,
    some.lists(some.tuples(some.sampled_from([1, -1]), durations), min_size=1, max_size=2).map(
        tuple
    ),
    some.just(True),
)
values = (
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**64 - 1)
    | some.floats(allow_nan=False, allow_infinity=False).filter(lambda f: len(repr(abs(f))) <= 16)
    | decimals
    | texts
    | moments
)
simple = some.sampled_from(
    "BOOL TINYINT SMALLINT INT BIGINT FLOAT DOUBLE JSON TIMESTAMP".split()
    + ["INT UNSIGNED", "BIGINT UNSIGNED"]
)
types = (
    some.builds(ColumnType, simple)
    | some.builds(
        ColumnType, some.sampled_from(["VARCHAR", "NCHAR", "VARBINARY"]), some.integers(1, 65517)
    )
    | some.integers(1, 38).flatmap(
        lambda p: some.builds(
            ColumnType, some.just("DECIMAL"), some.just(0), some.just(p), some.integers(0, p)
        )
    )
)
columns = some.builds(
    ColumnDef,
    names,
    types,
    some.booleans(),
    some.none() | texts,
    some.none() | some.tuples(tables, names),
)


def distinct(items: Any) -> bool:
    lowered = [i.name.lower() for i in items]
    return len(set(lowered)) == len(lowered)


def with_time(items: list[ColumnDef]) -> tuple[ColumnDef, ...]:
    return (ColumnDef("ts of all", ColumnType("TIMESTAMP")), *items)


column_lists = some.lists(columns, max_size=4).filter(distinct).map(with_time)
flags = some.booleans()
stream_table_options = some.builds(
    StreamTableSettings,
    some.integers(-3, 99) | names,
    some.integers(-3, 10**7),
    some.lists(words.filter(str.strip), max_size=3).map(tuple),
    some.sampled_from([1440, 1, 0.5, 60]),
    some.none() | some.integers(-1, 9),
    some.none() | names,
    some.none() | names,
    some.sampled_from(["first", "latest", "changelog"]),
    some.lists(words.filter(str.strip), max_size=2).map(tuple),
    some.none() | names,
    flags,
    flags,
    some.integers(0, 2),
)
table_options = some.builds(
    TableOptions,
    some.none() | texts,
    some.none() | durations,
    some.just(True),
    some.none() | some.integers(1, 1024),
)
database_options = some.builds(
    DatabaseOptions,
    some.none() | some.sampled_from(["ms", "us", "ns"]),
    some.none() | durations,
    some.none() | some.integers(1, 1024),
    some.none() | durations,
    some.none() | some.integers(1, 3),
)
using = some.integers(1, 3).flatmap(
    lambda n: some.tuples(
        some.none() | some.lists(names, min_size=n, max_size=n, unique_by=str.lower).map(tuple),
        some.lists(values, min_size=n, max_size=n).map(tuple),
    )
)
children = some.builds(
    lambda t, s, u, e: ChildDef(t, s, u[0], u[1], e), tables, tables, using, flags
)
tagged = some.tuples(tables, using) | some.none()


@some.composite
def insert_parts(draw: Any) -> InsertPart:
    width = draw(some.integers(1, 4))
    rows = draw(
        some.lists(
            some.lists(values, min_size=width, max_size=width).map(tuple), min_size=1, max_size=4
        )
    )
    given_columns = draw(
        some.none()
        | some.lists(names, min_size=width, max_size=width, unique_by=str.lower).map(tuple)
    )
    stable = draw(tagged)
    if stable is None:
        return InsertPart(draw(tables), tuple(rows), given_columns)
    return InsertPart(
        draw(tables), tuple(rows), given_columns, stable[0], stable[1][0], stable[1][1]
    )


ddl: some.SearchStrategy[Statement] = some.one_of(
    some.builds(CreateDatabase, name=names, if_not_exists=flags, options=database_options),
    some.builds(
        AlterDatabase, name=names, options=database_options.filter(lambda o: o != DatabaseOptions())
    ),
    some.builds(
        CreateStreamTable,
        table=tables,
        columns=column_lists,
        if_not_exists=flags,
        options=stream_table_options,
    ),
    some.builds(
        CreateTable,
        table=tables,
        columns=column_lists,
        if_not_exists=flags,
        options=table_options,
        stream=flags,
    ),
    some.builds(
        lambda c, t, table, e, o, v: CreateStable(
            table=table, columns=c, tags=tuple(t), if_not_exists=e, options=o, virtual=v
        ),
        some.just(with_time([])),
        some.lists(columns, min_size=1, max_size=3).filter(distinct),
        tables,
        flags,
        table_options,
        flags,
    ).filter(lambda s: distinct((*s.columns, *s.tags))),
    some.builds(
        CreateChildren,
        children=some.lists(children, min_size=1, max_size=3).map(tuple),
        virtual=flags,
    ),
    some.builds(
        AlterTable,
        table=tables,
        action=some.sampled_from(["add_column", "modify_column", "add_tag"]),
        stable=flags,
        definition=columns,
    ),
    some.builds(
        AlterTable, table=tables, action=some.sampled_from(["drop_column", "drop_tag"]), name=names
    ),
    some.builds(
        AlterTable, table=tables, action=some.just("rename_tag"), name=names, new_name=names
    ),
    some.builds(
        AlterTable,
        table=tables,
        action=some.just("set_origin"),
        name=names,
        origin=some.none() | some.tuples(tables, names),
    ),
    some.builds(
        CreateFunction,
        name=names,
        parameters=some.lists(columns.map(lambda c: (c.name, c.type)), min_size=1, max_size=3).map(
            tuple
        ),
        returns=columns.map(lambda c: c.type),
        code=some.text(max_size=40),
        aggregate=flags,
        if_not_exists=flags,
        or_replace=flags,
    ),
    some.builds(
        AlterTable,
        table=tables,
        action=some.just("set_tag"),
        values=some.lists(some.tuples(names, values), min_size=1, max_size=3).map(tuple),
    ),
    some.lists(some.tuples(tables, flags), min_size=1, max_size=3).map(
        lambda items: Drop(
            kind="table", names=tuple(n for n, _ in items), if_exists=tuple(e for _, e in items)
        )
    ),
)

atoms = some.sampled_from(
    [
        "a",
        "t.a",
        "`x y`",
        "1",
        "2.5",
        "1e3",
        "'s'",
        '"it\'s"',
        "NULL",
        "TRUE",
        "10s",
        "now",
        "count(*)",
        "j -> 'k'",
        "count(DISTINCT a, b)",
        "_wstart",
        "CAST(a AS VARCHAR(4))",
        "TIMESTAMP '2024-01-01'",
        "(SELECT max(a) FROM t)",
        "tbname",
        "EXISTS (SELECT 1)",
    ]
)


def grown(inner: some.SearchStrategy[str]) -> some.SearchStrategy[str]:
    wrapped = inner.map(lambda x: f"({x})")
    operand = atoms | wrapped
    return some.one_of(
        some.tuples(operand, some.sampled_from("+ - * / % & |".split()), operand).map(" ".join),
        some.tuples(
            operand,
            some.sampled_from(
                "= <> != < <= > >= LIKE MATCH NMATCH CONTAINS".split() + ["NOT LIKE"]
            ),
            operand,
        ).map(" ".join),
        some.tuples(operand, some.sampled_from(["AND", "OR"]), operand).map(" ".join),
        some.tuples(some.sampled_from(["-", "+", "NOT ", "- -"]), operand)
        .map("".join)
        .map(lambda x: f"({x})"),
        some.tuples(
            operand,
            some.sampled_from(
                [
                    "IS NULL",
                    "IS NOT NULL",
                    "IN (1, a)",
                    "NOT IN (SELECT a FROM t)",
                    "BETWEEN 1 AND b",
                ]
            ),
        ).map(" ".join),
        some.tuples(
            some.sampled_from(["concat", "IF", "my_f", "substr", "trim"]),
            some.lists(inner, max_size=3),
        ).map(lambda x: f"{x[0]}({', '.join(x[1][:1] if x[0] == 'trim' else x[1])})"),
        some.tuples(inner, inner, inner).map(
            lambda x: f"CASE WHEN {x[0]} THEN {x[1]} ELSE {x[2]} END"
        ),
        some.tuples(inner, inner).map(lambda x: f"trim(BOTH {x[0]} FROM {x[1]})"),
    )


expressions = some.recursive(atoms, grown, max_leaves=8)
windows = some.one_of(
    some.sampled_from(
        [
            "",
            "INTERVAL(10s)",
            "INTERVAL(1n, 2d) SLIDING(1d)",
            "INTERVAL(1d, AUTO)",
            "SESSION(ts, 5a)",
            "COUNT_WINDOW(3)",
            "COUNT_WINDOW(4, 2)",
            "INTERVAL(1s) FILL(PREV)",
            "INTERVAL(1s) FILL(VALUE, 1, -2.5, NULL)",
            "RANGE('2024-01-01', 1d) FILL(NEAR, 1)",
        ]
    ),
    expressions.map(lambda x: f"STATE_WINDOW({x}) TRUE_FOR(3s)"),
    some.tuples(expressions, expressions).map(lambda x: f"RANGE({x[0]}, {x[1]}, 1h) EVERY(1s)"),
    some.tuples(expressions, expressions).map(
        lambda x: f"EVENT_WINDOW START WITH {x[0]} END WITH {x[1]}"
    ),
)
sources = some.sampled_from(
    [
        "t",
        "db.t AS u",
        "t, u",
        "t JOIN u ON t.ts = u.ts",
        "t LEFT ASOF JOIN u ON t.ts >= u.ts CROSS JOIN v",
        "t LEFT WINDOW JOIN u ON t.a = u.a WINDOW_OFFSET(-1s, 2m)",
        "t AS v RIGHT WINDOW JOIN u WINDOW_OFFSET(0a, 2m) JLIMIT 7",
        "t RIGHT ASOF JOIN u ON t.ts < u.ts JLIMIT 0",
        "(SELECT * FROM t LIMIT 3) AS q",
        "t FULL OUTER JOIN u USING (ts, a)",
        "s OPEN WINDOWS",
    ]
)
aliased = some.tuples(expressions, some.sampled_from(["", " AS c", " `d e`"])).map("".join)


@some.composite
def selects(draw: Any) -> str:
    parts = [
        "SELECT",
        draw(some.sampled_from(["", "DISTINCT"])),
        ", ".join(draw(some.lists(aliased, min_size=1, max_size=3))),
    ]
    parts += ["FROM", draw(sources)]
    parts += [f"WHERE {draw(expressions)}"] if draw(flags) else []
    parts += (
        [f"PARTITION BY {', '.join(draw(some.lists(aliased, min_size=1, max_size=2)))}"]
        if draw(flags)
        else []
    )
    parts.append(draw(windows))
    parts += (
        [f"GROUP BY {draw(expressions)}", f"HAVING {draw(expressions)}"]
        if draw(some.integers(0, 3)) == 0
        else []
    )
    return " ".join(parts)


tails = some.sampled_from(
    [
        "",
        " ORDER BY a DESC NULLS FIRST, b",
        " LIMIT 5",
        " ORDER BY 1 LIMIT 2, 3",
        " LIMIT 3 OFFSET 4",
    ]
)
queries = some.one_of(
    some.tuples(selects(), tails).map("".join),
    some.tuples(selects(), some.sampled_from([" UNION ", " UNION ALL "]), selects(), tails).map(
        "".join
    ),
    some.tuples(selects(), selects(), selects()).map(
        lambda x: f"({x[0]} LIMIT 1) UNION {x[1]} UNION ALL ({x[2]})"
    ),
)
triggers = some.one_of(
    some.builds(
        Trigger,
        some.sampled_from(
            ["at_once", "window_close", "force_window_close", "continuous_window_close"]
        ),
    ),
    some.builds(Trigger, some.sampled_from(["max_delay", "continuous_window_close"]), durations),
)
stream_options = some.builds(
    StreamOptions,
    some.none() | triggers,
    some.none() | durations,
    some.none() | flags,
    some.none() | flags,
    some.none() | durations,
    some.just(True),
    flags,
    some.none() | durations,
    some.none() | some.sampled_from(["drop", "stop"]),
    some.none() | some.integers(0, 10**9),
    some.none() | some.integers(0, 10**9),
)


def _expression(text: str) -> exp.Expr:
    found = parse_one(f"SELECT {text}")
    assert isinstance(found, Query)
    expression: exp.Expr = found.query.expressions[0]
    return expression


notifies = some.builds(
    NotifyClause,
    some.lists(texts, max_size=2).map(tuple),
    some.just(("WINDOW_OPEN", "WINDOW_CLOSE")),
    some.none() | flags,
    some.none() | some.sampled_from(["drop", "pause"]),
    signed_by=some.none() | texts,
    where=some.none() | expressions.map(_expression),
)


@some.composite
def streams(draw: Any) -> CreateStream:
    query = parse_one(draw(queries))
    assert isinstance(query, Query)
    if draw(flags):
        return CreateStream(
            stream=draw(tables),
            query=query.query,
            options=draw(stream_options),
            notify=draw(notifies),
        )
    subtable = _expression(draw(expressions)) if draw(flags) else None
    return CreateStream(
        stream=draw(tables),
        target=draw(tables),
        query=query.query,
        if_not_exists=draw(flags),
        or_replace=draw(flags),
        options=draw(stream_options),
        target_columns=draw(
            some.none()
            | some.lists(some.builds(TargetColumn, names, flags), min_size=1, max_size=3).map(tuple)
        ),
        tags=draw(
            some.none()
            | some.lists(
                some.builds(TargetTag, names, types, some.none() | texts), min_size=1, max_size=3
            ).map(tuple)
        ),
        subtable=subtable,
        notify=draw(some.none() | notifies),
    )


def check(statement: Statement) -> None:
    text = render(statement)
    assert parse(text) == [statement], text


@MANY
@given(ddl)
def test_ddl(statement: Statement) -> None:
    check(statement)


@MANY
@given(some.lists(insert_parts(), min_size=1, max_size=3))
def test_insert(parts: list[InsertPart]) -> None:
    check(Insert(parts=tuple(parts)))


@MANY
@given(queries)
def test_queries(text: str) -> None:
    check(parse_one(text))


@MANY
@given(streams())
def test_streams(stream: CreateStream) -> None:
    check(stream)


@MANY
@given(some.lists(ddl | streams(), max_size=4))
def test_several_statements_come_back_in_order(statements: list[Statement]) -> None:
    assert parse(";\n".join(map(render, statements))) == statements


@given(decimals)
def test_long_numbers_keep_every_digit(number: Decimal) -> None:
    (statement,) = parse(f"INSERT INTO t VALUES ({number})")
    assert isinstance(statement, Insert)
    assert statement.parts[0].rows == ((number,),)


@given(
    some.lists(
        some.tuples(
            some.sampled_from(["type", "hosts", "user", "password", "stream"]),
            some.text(max_size=20),
        ),
        min_size=1,
        unique_by=lambda s: s[0],
    )
)
def test_external_streams(settings: list[tuple[str, str]]) -> None:
    plain = tuple((k, v if v not in ("true", "false") else "x") for k, v in settings)
    check(
        CreateExternalStream(
            stream=Name("far", "d"), settings=(*plain, ("secure", "true")), if_not_exists=True
        )
    )


@given(selects())
def test_views(text: str) -> None:
    (query,) = parse(text)
    assert isinstance(query, Query)
    check(CreateView(view=Name("v"), target=Name("t", "d"), query=query.query))
    check(CreateView(view=Name("v"), query=query.query, on_error="drop"))
    check(CreateView(view=Name("v"), target=Name("t", "d"), query=query.query, on_error="stop"))
    check(SteerView(view=Name("v", "d"), action="pause"))
    check(Drop(kind="external stream", names=(Name("x"),), if_exists=(True,)))
