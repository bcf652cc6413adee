"""Plans, OVER and FILTER as DuckDB gets them, and what never gets there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from penstock.duck import printer
from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.relational import (
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    PlannedQuery,
    QueryPlan,
    RowLimits,
    Scan,
    SelectItem,
    SelectPlan,
    SetOperation,
    TableColumns,
    lower,
    map_scans,
)


def print_query(tree: exp.Query, relations: list[str]) -> str:
    plan = map_scans(lower(tree), lambda scan, _: replace(scan, relation=scan.table))
    return printer.print_query(plan, relations)


def printed(function: exp.Expr, **more: object) -> str:
    window = exp.Window(this=function, **more)
    return print_query(exp.select(exp.alias_(window, "n")).from_("t"), ["t"])


def test_rows_are_numbered_in_partitions_and_in_an_order() -> None:
    order = exp.Order(expressions=[exp.Ordered(this=exp.column("b"), desc=True)])
    text = printed(exp.RowNumber(), partition_by=[exp.column("a")], order=order)
    assert text == ('SELECT row_number() OVER (PARTITION BY "a" ORDER BY "b" DESC) AS "n" FROM "t"')
    assert "dense_rank() OVER ()" in printed(exp.DenseRank())


def test_computed_rows_are_a_relation_that_the_caller_has_named() -> None:
    source = Derived(SelectPlan((SelectItem(exp.Star()),), Scan("secrets", relation="secrets")), "")
    clause = nodes.CountWindow()
    rows = ComputedRows('w"', clause, source, None, (), None, TableColumns(()), {})
    plan = SelectPlan((SelectItem(exp.column("n")),), rows)
    assert printer.print_query(plan, ['w"']) == 'SELECT "n" FROM "w"""'
    with pytest.raises(SqlSemanticError) as wrong:
        printer.print_query(plan, ["secrets"])
    assert wrong.value.code == "E_TABLE_NOT_EXIST"


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def spec(**more: object) -> exp.WindowSpec:
    given = {"kind": "ROWS", "start": "UNBOUNDED", "start_side": "PRECEDING", "end": "CURRENT ROW"}
    return exp.WindowSpec(**(given | more))


def test_functions_frames_and_filters_are_printed_from_their_parts() -> None:
    frame = spec(kind="RANGE", end=exp.Literal.number(3), end_side="FOLLOWING")
    text = printed(call("lag", exp.column("a"), exp.Literal.number(1)), spec=frame)
    assert 'lag("a", 1) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING) AS "n"' in text
    condition = exp.Where(this=exp.GT(this=exp.column("a"), expression=exp.Literal.number(1)))
    kept = exp.Filter(this=call("count", exp.Star()), expression=condition)
    assert 'count(*) FILTER (WHERE "a" > 1) OVER ()' in printed(kept)
    column = exp.column("a")
    twice = exp.select(column).from_("t")
    twice.set("qualify", exp.Qualify(this=exp.EQ(this=column, expression=exp.Literal.number(1))))
    assert print_query(twice, ["t"]).endswith('FROM "t" QUALIFY "a" = 1')


HOSTILE = "1) FROM secrets --"


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (exp.Rank(), {}),
        (exp.Sum(this=exp.column("a")), {}),
        (call("rank"), {"alias": exp.to_identifier("w")}),
        (call("rank"), {"first": True}),
        (call("rank"), {"over": HOSTILE}),
        (call("rank"), {"spec": exp.WindowSpec()}),
        (call("rank"), {"spec": spec(kind=HOSTILE)}),
        (call("rank"), {"spec": spec(start=HOSTILE)}),
        (call("rank"), {"spec": spec(start_side=HOSTILE)}),
        (call("rank"), {"spec": spec(end=HOSTILE)}),
        (call("rank"), {"spec": spec(end=exp.column("a"), end_side="FOLLOWING")}),
        (call("rank"), {"spec": spec(end=exp.Var(this=HOSTILE), end_side="FOLLOWING")}),
        (call("rank"), {"spec": spec(exclude=HOSTILE)}),
        (call("rank"), {"spec": exp.Var(this=HOSTILE)}),
        (exp.Filter(this=exp.column("a"), expression=exp.Where(this=exp.true())), {}),
        (exp.Filter(this=call("sum"), expression=exp.Var(this=HOSTILE)), {}),
    ],
)
def test_nothing_else_stands_before_over_and_in_it(
    function: exp.Expr, more: dict[str, object]
) -> None:
    with pytest.raises(SqlSemanticError, match="is not possible"):
        printed(function, **more)


@pytest.mark.parametrize("name", ["read_text", "rank", "getenv", "nextval"])
def test_what_needs_over_is_no_function_without_and_others_are_none_with_it(name: str) -> None:
    with pytest.raises(SqlSemanticError, match="there is no function"):
        print_query(exp.select(exp.alias_(call(name), "n")).from_("t"), ["t"])
    if name != "rank":
        with pytest.raises(SqlSemanticError, match="there is no function"):
            printed(call(name))


def test_names_of_columns_behind_a_subquery_are_quoted() -> None:
    names = [exp.to_identifier('a" FROM secrets --', quoted=True)]
    inner = exp.select(exp.column("a")).from_("t")
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=names)
    outer = exp.select(exp.Star()).from_(exp.Subquery(this=inner, alias=alias))
    text = print_query(outer, ["t"])
    assert text.endswith('FROM (SELECT "a" FROM "t") AS "q" ("a"" FROM secrets --")')


def test_rows_may_be_chosen_by_their_number() -> None:
    window = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("a")])
    test = exp.LTE(this=window, expression=exp.Literal.number(2))
    tree = exp.select(exp.Star()).from_("t")
    tree.set("qualify", exp.Qualify(this=test))
    wanted = 'SELECT * FROM "t" QUALIFY row_number() OVER (PARTITION BY "a") <= 2'
    assert print_query(tree, ["t"]) == wanted


def test_a_choice_is_printed_from_nodes_only() -> None:
    tree = exp.select(exp.Star()).from_("t")
    tree.set("qualify", exp.Qualify(this=exp.Anonymous(this="read_csv", expressions=[])))
    with pytest.raises(SqlSemanticError, match="there is no function read_csv"):
        print_query(tree, ["t"])


COUNT = exp.Literal(this="1", is_string=False)
ONE = SelectItem(COUNT, "n")
KNOWN = Scan("t", alias="a", relation="t")
ROWS = SelectPlan((ONE,), KNOWN)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (SelectPlan((ONE,)), 'SELECT 1 AS "n"'),
        (SelectPlan((SelectItem(ONE.expression, HOSTILE + '"'),)), f'SELECT 1 AS "{HOSTILE}"""'),
        (
            SelectPlan((ONE,), Derived(ROWS, 'q" JOIN x', ('a"b',))),
            'SELECT 1 AS "n" FROM (SELECT 1 AS "n" FROM "t" AS "a") AS "q"" JOIN x" ("a""b")',
        ),
        (
            SelectPlan((ONE,), Join(KNOWN, KNOWN, "ASOF", "LEFT", on=exp.column("b"))),
            'SELECT 1 AS "n" FROM "t" AS "a" ASOF LEFT JOIN "t" AS "a" ON "b"',
        ),
        (
            SelectPlan((ONE,), Join(Join(KNOWN, KNOWN), KNOWN, using=('x"',))),
            'SELECT 1 AS "n" FROM "t" AS "a", "t" AS "a" JOIN "t" AS "a" USING ("x""")',
        ),
        (
            SetOperation("EXCEPT", ROWS, Enclosed(ROWS, limits=RowLimits(COUNT)), every=True),
            'SELECT 1 AS "n" FROM "t" AS "a" EXCEPT ALL ((SELECT 1 AS "n" FROM "t" AS "a") LIMIT 1)',
        ),
        (
            SelectPlan((SelectItem(exp.Exists(this=exp.Subquery(this=PlannedQuery(plan=ROWS)))),)),
            'SELECT EXISTS(SELECT 1 AS "n" FROM "t" AS "a")',
        ),
    ],
)
def test_a_plan_is_printed_node_by_node(plan: QueryPlan, text: str) -> None:
    assert printer.print_query(plan, ["t"]) == text


@pytest.mark.parametrize(
    "plan",
    [
        SelectPlan((ONE,), Scan("t")),
        SelectPlan((ONE,), Scan("t", relation="secrets")),
        SelectPlan((ONE,), Scan("t", relation='t" JOIN secrets')),
        SelectPlan((ONE,), Join(KNOWN, KNOWN, method=HOSTILE)),
        SelectPlan((ONE,), Join(KNOWN, KNOWN, side=HOSTILE)),
        SelectPlan((ONE,), Join(KNOWN, KNOWN, kind="NATURAL")),
        SelectPlan((SelectItem(exp.Subquery(this=exp.select("1"))),)),
        SelectPlan((SelectItem(exp.Exists(this=exp.select("1"))),)),
        SelectPlan((SelectItem(exp.Anonymous(this="read_csv")),)),
        SelectPlan((ONE,), limits=RowLimits(exp.Literal(this=HOSTILE, is_string=False))),
        SetOperation(HOSTILE, ROWS, ROWS),
        Enclosed(SelectPlan((ONE,), Scan("t", relation="u"))),
    ],
)
def test_no_other_word_and_no_other_relation_is_printed(plan: QueryPlan) -> None:
    with pytest.raises(SqlSemanticError):
        printer.print_query(plan, ["t"])
