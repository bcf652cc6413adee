"""Parameters: values in the place of placeholders, and what is said when they do not fit."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlglot import exp

from penstock.errors import SchemaError, SqlError
from penstock.rows.parameters import Moment, Parameters, decode, encode
from penstock.sql import nodes, parse, parse_one, render
from penstock.sql import statements as st
from penstock.sql.source import span_of
from tests.nightly import drawn

NOON = "2026-03-01 12:00:00"
#: anything but half characters, which are no text
texts = some.text(some.characters(exclude_categories=["Cs"]))
values = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-(10**39), 10**39),
    some.floats(allow_nan=False, allow_infinity=False),
    some.decimals(-(10**18), 10**18, allow_nan=False, allow_infinity=False, places=9),
    texts,
    texts.map(lambda text: f"'{text}\"`?:a--/*\\"),
    some.binary(),
    some.datetimes(timezones=some.just(UTC)),
)


def bound(sql: str, parameters: Parameters) -> str:
    (statement,) = parse(sql, parameters)
    assert statement.placeholders == ()
    return render(statement)


@pytest.mark.parametrize(
    ("sql", "parameters", "text"),
    [
        (
            "SELECT a FROM t WHERE a = ? AND b < ?",
            [-1, "x"],
            "SELECT a FROM t WHERE a = -1 AND b < 'x'",
        ),
        ("SELECT :n FROM t WHERE a > :n", {"n": 2}, "SELECT 2 FROM t WHERE a > 2"),
        ("SELECT a FROM t LIMIT ? OFFSET ?", [5, 0], "SELECT a FROM t LIMIT 5 OFFSET 0"),
        (
            "SELECT a FROM t WHERE a IN (?, ?, NULL)",
            [1, None],
            "SELECT a FROM t WHERE a IN (1, NULL, NULL)",
        ),
        (
            "SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE c = ?)",
            [True],
            "SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE c = TRUE)",
        ),
        (
            "SELECT a FROM t WHERE a = ? UNION SELECT a FROM u WHERE a = ?",
            [1, 2],
            "SELECT a FROM t WHERE a = 1 UNION SELECT a FROM u WHERE a = 2",
        ),
        ("EXPLAIN SELECT a FROM t WHERE a = ?", [0.5], "EXPLAIN SELECT a FROM t WHERE a = 0.5e0"),
        ("DELETE FROM t WHERE ts < ?", [10], "DELETE FROM t WHERE ts < 10"),
        ("INSERT INTO t SELECT ts, ? FROM u", [7], "INSERT INTO t SELECT ts, 7 FROM u"),
        (
            "INSERT INTO t (a, b) VALUES (?, 1) (2, ?)",
            ["'", None],
            "INSERT INTO t (a, b) VALUES ('\\'', 1) (2, NULL)",
        ),
        (
            "INSERT INTO c USING s TAGS (:g) VALUES (:t, /* ? */ :g)",
            {"g": 1, "t": Moment(NOON)},
            f"INSERT INTO c USING s TAGS (1) VALUES ('{NOON}+00:00', 1)",
        ),
        ("SELECT - ? FROM t", [-1], "SELECT - -1 FROM t"),
    ],
)
def test_values_take_the_place_of_placeholders(sql: str, parameters: Parameters, text: str) -> None:
    assert bound(sql, parameters) == text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '? :a' FROM t",
        'SELECT "? :a" FROM t -- ? :a',
        "SELECT `?`, `:a` /* ? :a */ FROM t",
        "SELECT tag -> '?' FROM t WHERE ts > '2026-03-01 09:00:00'",
        "SELECT CAST('09:00:00' AS VARCHAR) FROM t WHERE ts > TIMESTAMP '2026-03-01 09:00:00'",
        "INSERT INTO t VALUES ('2026-03-01 09:00:00', '?', \":a\") -- ?",
    ],
)
def test_what_only_looks_like_a_placeholder_is_untouched(sql: str) -> None:
    (statement,) = parse(sql)
    assert statement.placeholders == ()
    assert render(statement) == render(parse_one(render(statement)))


# ---------------------------------------------------------------- a value stays a value


def value_of(node: exp.Expr) -> Any:
    """The value of a literal in a tree."""
    if isinstance(node, exp.Neg):
        return -value_of(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return node.this
    if isinstance(node, nodes.BinaryLiteral):
        return bytes.fromhex(node.name)
    if isinstance(node, exp.Cast):
        assert node.args["to"].name == "TIMESTAMP"
        return datetime.fromisoformat(node.this.name)
    assert isinstance(node, exp.Literal)
    if node.is_string:
        return node.this
    if "e" in node.this:
        return float(node.this)
    return Decimal(node.this) if "." in node.this else int(node.this)


def shape(node: exp.Expr) -> Any:
    """What a tree is made of; negative numbers and times are literals as others are."""
    if isinstance(node, exp.Literal | exp.Null | exp.Boolean | nodes.BinaryLiteral):
        return "value"
    if isinstance(node, exp.Cast) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    ):
        return "value"
    return type(node), [shape(child) for child in node.iter_expressions()]


@settings(max_examples=drawn(200), deadline=None)
@given(values, values)
def test_any_value_goes_through_as_itself_and_the_shape_stays(one: Any, two: Any) -> None:
    sql = "SELECT ?, a + 1 AS x FROM t WHERE b = ? ORDER BY x"
    sent = decode(json.loads(json.dumps(encode([one, two]))))
    (statement,) = parse(sql, sent)
    assert isinstance(statement, st.Query)
    query = statement.query
    assert isinstance(query, exp.Select)
    assert value_of(query.expressions[0]) == one
    assert value_of(query.args["where"].this.expression) == two
    (plain,) = parse(sql.replace("?", "NULL"))
    assert isinstance(plain, st.Query)
    assert shape(query) == shape(plain.query)
    again = parse_one(render(statement))
    assert isinstance(again, st.Query)
    assert shape(again.query) == shape(query)
    assert isinstance(again.query, exp.Select)
    assert value_of(again.query.expressions[0]) == one


_PIECES = (
    *"? :a :b ' \" ` -- /* */ ( ) , ; -> - + * . 1 10s x t".split(),
    *"SELECT FROM WHERE ORDER BY GROUP LIMIT INSERT INTO VALUES TAGS USING DELETE AS IN".split(),
    "INTERVAL(1s)",
    "\n",
)


@settings(max_examples=drawn(300), deadline=None)
@given(
    some.sampled_from(["", "SELECT ", "SELECT a FROM t WHERE ", "INSERT INTO t VALUES ("]),
    some.lists(some.sampled_from(_PIECES), max_size=8),
    some.one_of(some.lists(values, max_size=3), some.fixed_dictionaries({"a": values})),
)
def test_whatever_is_written_no_placeholder_is_left(
    head: str, pieces: list[str], parameters: Parameters
) -> None:
    try:
        statements = parse(head + " ".join(pieces), parameters)
    except SqlError:
        return
    for statement in statements:
        assert statement.placeholders == () and "Placeholder" not in repr(statement)
        render(statement)


@settings(max_examples=drawn(200), deadline=None)
@given(values, values)
def test_any_value_is_inserted_as_itself(one: Any, two: Any) -> None:
    sent = decode(json.loads(json.dumps(encode({"one": one, "two": two}))))
    (statement,) = parse("INSERT INTO c USING s TAGS (:two) VALUES (:one, 1) (:two, 2)", sent)
    assert isinstance(statement, st.Insert)
    (part,) = statement.parts

    def same(found: Any, value: Any) -> bool:
        if isinstance(found, st.RelativeTime):
            assert found.literal and found.steps == ()
            return datetime.fromisoformat(str(found.base)) == value
        return bool(found == value) and type(found) is type(value)

    assert same(part.rows[0][0], one) and same(part.rows[1][0], two)
    assert same(part.tag_values[0], two)


def test_times_without_a_zone_are_in_the_requests() -> None:
    naive = decode(
        encode(
            [
                datetime.fromisoformat("2026-07-01T12:00"),
                date(2026, 1, 1),
                Moment(NOON + ".123456789"),
            ]
        )
    )
    (statement,) = parse("INSERT INTO t VALUES (?, ?, ?)", naive, "Europe/Berlin")
    assert isinstance(statement, st.Insert)
    found = [v.base for v in statement.parts[0].rows[0] if isinstance(v, st.RelativeTime)]
    assert found == [
        "2026-07-01 10:00:00+00:00",
        "2025-12-31 23:00:00+00:00",
        "2026-03-01 11:00:00.123456789+00:00",
    ]


def test_errors_point_at_the_placeholder_of_the_users_text() -> None:
    (statement,) = parse("SELECT a\nFROM t WHERE a = :longer", {"longer": "x" * 500})
    assert isinstance(statement, st.Query)
    literal = statement.query.find(exp.Literal)
    assert span_of(literal) == (26, 33)
    error = statement.error("wrong", literal)
    assert (error.line, error.column) == (2, 18)
    assert error.snippet.endswith("^" * 7) and "xxx" not in error.snippet


# ---------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    ("sql", "parameters", "words", "place"),
    [
        ("SELECT ?, ?", [1], "too few parameters: 1 for 2", (1, 11)),
        ("SELECT ?", [1, 2], "too many parameters: 2 for 1", (1, 8)),
        ("SELECT 1", [1], "no placeholders", (1, 1)),
        ("SELECT 1", {"a": 1}, "no placeholders", (1, 1)),
        ("SELECT\n ?", None, "no parameters for 1", (2, 2)),
        ("INSERT INTO t VALUES (1, :a)", None, "no parameters for 1", (1, 26)),
        ("SELECT :tepm", {"temp": 1}, "there is no parameter tepm", (1, 8)),
        ("SELECT :a", {"a": 1, "b": 2}, "the statement has no :b", (1, 8)),
        ("SELECT ?, :a", [1, 2], "are mixed", (1, 11)),
        ("INSERT INTO t VALUES (:a, ?)", {"a": 1}, "are mixed", (1, 27)),
        ("SELECT ?", {"a": 1}, "in a list", (1, 8)),
        ("SELECT :a", [1], "by name", (1, 8)),
        ("SELECT ?", [[1, 2]], "is a list", (1, 8)),
        ("SELECT :a", {"a": {"b": 1}}, "is an object", (1, 8)),
        ("SELECT ?", [float("inf")], "not finite", (1, 8)),
        ("SELECT ?", [float("nan")], "not finite", (1, 8)),
        ("SELECT ?", [Decimal("NaN")], "digits", (1, 8)),
        ("SELECT ?", [Decimal("1e999999")], "digits", (1, 8)),
        ("SELECT ?", [10**41], "digits", (1, 8)),
        ("SELECT ?", ["\ud800"], "half a character", (1, 8)),
        ("SELECT ?", [Moment("noon")], "is no time", (1, 8)),
        ("SELECT ?", [Moment("2026-02-30")], "is no time", (1, 8)),
        ("SELECT a FROM t ORDER BY ?", [1], "a column or its place", (1, 26)),
        ("SELECT a FROM t ORDER BY (-?)", [1], "a column or its place", (1, 28)),
        ("SELECT a FROM t GROUP BY ?", [1], "a column or its place", (1, 26)),
        ("SELECT a FROM t PARTITION BY ? AS x", [1], "a column or its place", (1, 30)),
        ("SELECT a FROM t LIMIT ?", [-1], "whole number", (1, 23)),
        ("SELECT a FROM t LIMIT ?", [True], "whole number", (1, 23)),
        ("SELECT a FROM t LIMIT ?", [2**63], "whole number", (1, 23)),
        ("SELECT a FROM t SLIMIT ?", ["1"], "whole number", (1, 24)),
        (
            "CREATE STREAM s INTO r AS SELECT _wstart FROM t WHERE a > ? INTERVAL(1s)",
            [1],
            "takes no parameters",
            (1, 59),
        ),
        (
            "EXPLAIN CREATE STREAM s INTO r AS SELECT _wstart FROM t WHERE a > ? INTERVAL(1s)",
            [1],
            "takes no parameters",
            (1, 67),
        ),
    ],
)
def test_refusals(
    sql: str, parameters: Parameters | None, words: str, place: tuple[int, int]
) -> None:
    with pytest.raises(SqlError, match=words) as caught:
        parse(sql, parameters)
    assert caught.value.code == "E_PARAMETER"
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT a FROM ?", 15),
        ("SELECT a FROM t.:b", 17),
        ("SELECT a AS ? FROM t", 13),
        ("SELECT a FROM t INTERVAL(?)", 26),
        ("SELECT a -> ? FROM t", 13),
        ("SELECT ?(1)", 9),
        ("INSERT INTO ? VALUES (1)", 13),
        ("INSERT INTO t (?) VALUES (1)", 16),
        ("DELETE FROM :t", 13),
        ("CREATE DATABASE ?", 17),
        ("CREATE USER ann PASS ?", 22),
        ("SHOW TABLES LIKE :p", 18),
        ("USE ?", 5),
        (":a", 1),
    ],
)
def test_names_and_keywords_are_no_parameters(sql: str, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse(sql, {"a": 1})
    assert caught.value.code == "E_SYNTAX" and caught.value.column == column
    assert "names, keywords" in caught.value.hint or sql.startswith("SELECT ?(")


def test_parameters_are_for_one_statement() -> None:
    with pytest.raises(SqlError) as caught:
        parse("SELECT ?; SELECT ?", [1])
    assert (caught.value.code, caught.value.column) == ("E_SEVERAL_STATEMENTS", 11)
    assert len(parse("SELECT 1; SELECT 2", [])) == 2


def test_a_name_is_suggested() -> None:
    with pytest.raises(SqlError) as caught:
        parse("SELECT :tepm", {"temp": 1})
    assert caught.value.hint == "did you mean temp?"


# ---------------------------------------------------------------- as JSON


def test_what_has_no_form_in_json_is_refused_by_its_name() -> None:
    for parameters, words in (
        ([1, {2}], "number 2 is of type set"),
        ({"a": object()}, ":a is of type object"),
        ([float("-inf")], "number 1 is infinite"),
        ("ab", "a list or a dict"),
        ({1: 2}, "names of parameters are text"),
    ):
        with pytest.raises(SchemaError, match=words):
            encode(parameters)  # type: ignore[arg-type]


def test_nan_is_null_as_in_rows() -> None:
    assert encode([float("nan")]) == [None]


@pytest.mark.parametrize("sent", [5, "a", True])
def test_parameters_are_a_list_or_an_object(sent: object) -> None:
    with pytest.raises(SchemaError, match="no list and no object"):
        decode(sent)


@pytest.mark.parametrize(
    "value", [{"$bytes": "0g"}, {"$decimal": "x"}, {"$bytes": 5}, {"$odd": "x"}, {}]
)
def test_objects_without_a_type_are_no_values(value: Any) -> None:
    with pytest.raises(SqlError, match="is an object"):
        parse("SELECT ?", decode([value]))
