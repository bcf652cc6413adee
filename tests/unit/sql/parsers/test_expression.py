"""The grammar of expressions: what binds tighter, special calls, limits and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.parsers.expression import MAX_CHAIN, MAX_DEPTH, ExpressionParser
from penstock.sql.parsers.query import QueryParser
from tests.unit.sql.reading import read, refusal, refused


def tree(text: str) -> Any:
    return read(QueryParser, text, ExpressionParser.condition)


def shape(node: exp.Expr) -> str:
    """The tree of *node* with a pair of brackets for each operator."""
    if isinstance(node, exp.Binary):
        return f"[{shape(node.this)} {type(node).__name__} {shape(node.expression)}]"
    if isinstance(node, exp.Not | exp.Neg | exp.Paren):
        return f"{type(node).__name__}[{shape(node.this)}]"
    if isinstance(node, exp.Between):
        low = shape(node.args["low"])
        return f"[{shape(node.this)} Between {low} {shape(node.args['high'])}]"
    return to_sql(node)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a OR b AND c", "[a Or [b And c]]"),
        ("a AND b OR c AND d", "[[a And b] Or [c And d]]"),
        ("NOT a AND b", "[Not[a] And b]"),
        ("NOT NOT a", "Not[Not[a]]"),
        ("! a", "Not[a]"),
        ("NOT a = b", "Not[[a EQ b]]"),
        ("a = b AND c <> d", "[[a EQ b] And [c NEQ d]]"),
        ("a + b < c - d", "[[a Add b] LT [c Sub d]]"),
        ("a >= b | c", "[a GTE [b BitwiseOr c]]"),
        ("a != b", "[a NEQ b]"),
        ("a & b | c", "[[a BitwiseAnd b] BitwiseOr c]"),
        ("a | b + c", "[a BitwiseOr [b Add c]]"),
        ("a - b - c", "[[a Sub b] Sub c]"),
        ("a + b * c % d / e", "[a Add [[[b Mul c] Mod d] Div e]]"),
        ("(a + b) * c", "[Paren[[a Add b]] Mul c]"),
        ("-a * b", "[Neg[a] Mul b]"),
        ("- -a", "Neg[Neg[a]]"),
        ("+a", "a"),
        ("a IS NULL", "[a Is NULL]"),
        ("a IS NOT NULL OR b", "[Not[[a Is NULL]] Or b]"),
        ("a BETWEEN b AND c AND d", "[[a Between b c] And d]"),
        ("a NOT BETWEEN 1 AND 2", "Not[[a Between 1 2]]"),
        ("a LIKE b", "[a Like b]"),
        ("a NOT LIKE b", "Not[[a Like b]]"),
        ("a MATCH b", "[a MatchRegex b]"),
        ("a NMATCH b", "Not[[a MatchRegex b]]"),
        ("a CONTAINS 'k'", "[a ContainsKey 'k']"),
        ("j -> 'k' = 1", "[[j JSONExtract 'k'] EQ 1]"),
    ],
)
def test_operators_bind_as_the_dialect_says(text: str, wanted: str) -> None:
    assert shape(tree(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("NULL", exp.Null()),
        ("true", exp.Boolean(this=True)),
        ("'x'", exp.Literal.string("x")),
        ("7", exp.Literal.number("7")),
        (".5", exp.Literal.number("0.5")),
        ("10S", nodes.DurationLiteral(this="10s")),
        ("now", exp.Anonymous(this="now", expressions=[])),
        ("TODAY()", exp.Anonymous(this="today", expressions=[])),
        ("count()", exp.Anonymous(this="count", expressions=[exp.Star()])),
        ("count(*)", exp.Anonymous(this="count", expressions=[exp.Star()])),
        (
            "timestamp '2024-01-01'",
            exp.Cast(this=exp.Literal.string("2024-01-01"), to=nodes.TypeName(this="TIMESTAMP")),
        ),
    ],
)
def test_an_atom_becomes_its_node(text: str, wanted: exp.Expr) -> None:
    assert tree(text) == wanted


def test_a_column_may_have_a_table_and_a_database() -> None:
    found = tree("db.t.`a b`")
    assert isinstance(found, exp.Column)
    assert (found.name, found.table, found.db) == ("a b", "t", "db")
    assert tree("`now`.a").table == "now"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Substr(s FROM 2 FOR 3)", "substr(s, 2, 3)"),
        ("substring(s FROM 2)", "substring(s, 2)"),
        ("substr(s, 2)", "substr(s, 2)"),
        ("position('a' IN s)", "position('a', s)"),
        ("position('a', s)", "position('a', s)"),
        ("trim(s)", "trim(s)"),
        ("trim(LEADING 'x' FROM s)", "trim(LEADING 'x' FROM s)"),
        ("trim('x' FROM s)", "trim('x' FROM s)"),
        ("trim(FROM s)", "trim(FROM s)"),
        ("trim(both s)", "trim(BOTH FROM s)"),
        ("count(DISTINCT a)", "count(DISTINCT a)"),
        ("last(t.*)", "last(t.*)"),
        ("f(a OR b, c)", "f(a OR b, c)"),
        ("cast(a AS int unsigned)", "CAST(a AS INT UNSIGNED)"),
        ("cast(a AS binary)", "CAST(a AS VARCHAR)"),
        ("cast(a AS nchar(3))", "CAST(a AS NCHAR(3))"),
        ("CASE WHEN a THEN 1 ELSE 2 END", "CASE WHEN a THEN 1 ELSE 2 END"),
        ("case a when 1 then b when 2 then c end", "CASE a WHEN 1 THEN b WHEN 2 THEN c END"),
        ("a IN (1, b + 1)", "a IN (1, b + 1)"),
        ("a IN (SELECT b FROM t)", "a IN (SELECT b FROM t)"),
        ("EXISTS (SELECT b FROM t)", "EXISTS(SELECT b FROM t)"),
        ("(SELECT b FROM t)", "(SELECT b FROM t)"),
    ],
)
def test_calls_and_subqueries_have_one_text(text: str, wanted: str) -> None:
    assert to_sql(tree(text)) == wanted
    assert tree(wanted) == tree(text)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a = b = c", 7, "comparisons do not chain"),
        ("a < b > c", 7, "comparisons do not chain"),
        ("a IS 1", 6, "expected NULL, found 1"),
        ("a BETWEEN 1", 12, "expected AND, but the statement ends"),
        ("a -> b", 6, "expected a key as a string, found b"),
        ("a IN 1", 6, 'expected "(", found 1'),
        ("a IN ()", 7, "expected an expression, found )"),
        ("select(a)", 1, "SELECT is no function here"),
        ("case end", 6, "expected a name, found the reserved word END"),
        ("case a end", 8, "expected WHEN, found end"),
        ("case when a 1", 13, "expected THEN, found 1"),
        ("case when a then 1", 19, "expected END, but the statement ends"),
        ("f(a) OVER (b)", 12, 'expected "," or ")", found b'),
        ("f(a", 4, 'expected "," or ")", but the statement ends'),
        ("cast(a, INT)", 7, "expected AS, found ,"),
        ("a +", 4, "expected an expression, but the statement ends"),
        ("* a", 1, "expected an expression, found *"),
        ("1x", 1, "expected a length of time such as 10s, found 1"),
    ],
)
def test_what_is_no_expression_is_refused_at_its_place(
    text: str, column: int, message: str
) -> None:
    assert refused(lambda: tree(text)) == ("E_SYNTAX", 1, column, message)


def test_nodes_know_where_they_stand() -> None:
    found = tree("  a +\n b * cc")
    assert (found.meta["start"], found.meta["end"]) == (2, 13)
    product = found.expression
    assert (product.meta["start"], product.meta["end"]) == (7, 13)
    assert (product.expression.meta["start"], product.expression.meta["end"]) == (11, 13)


def test_parentheses_nest_to_a_limit() -> None:
    least = MAX_DEPTH - 1
    assert tree("(" * least + "a" + ")" * least)
    error = refusal(lambda: tree("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH))
    assert error.message == f"nested deeper than {MAX_DEPTH} levels"
    assert error.column == MAX_DEPTH + 1


@pytest.mark.parametrize("sign", ["- ", "+ ", "NOT ", "f("])
def test_no_prefix_escapes_the_limit(sign: str) -> None:
    assert "nested deeper" in refusal(lambda: tree(sign * 500 + "a")).message


def test_operators_in_a_row_have_a_limit() -> None:
    assert tree(" + ".join(["a"] * (MAX_CHAIN + 1)))
    for operator in (" + ", " * ", " | ", " AND ", " OR "):
        text = operator.join(["a"] * (MAX_CHAIN + 2))
        error = refusal(lambda text=text: tree(text))  # type: ignore[misc]
        assert error.message == f"more than {MAX_CHAIN} operators in a row"


def test_the_depth_is_given_back_after_each_part() -> None:
    assert tree("f((a))" + " + (b)" * 2 * MAX_DEPTH)
