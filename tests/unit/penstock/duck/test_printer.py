"""Numbers of rows and partitions, the only use of OVER in what DuckDB gets."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.duck.printer import print_query
from penstock.errors import SqlSemanticError


def printed(function: exp.Expr, **more: object) -> str:
    window = exp.Window(this=function, **more)
    return print_query(exp.select(exp.alias_(window, "n")).from_("t"), ["t"])


def test_rows_are_numbered_in_partitions_and_in_an_order() -> None:
    order = exp.Order(expressions=[exp.Ordered(this=exp.column("b"), desc=True)])
    text = printed(exp.RowNumber(), partition_by=[exp.column("a")], order=order)
    assert text == ('SELECT row_number() OVER (PARTITION BY "a" ORDER BY "b" DESC) AS "n" FROM "t"')
    assert "dense_rank() OVER ()" in printed(exp.DenseRank())


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (exp.Rank(), {}),
        (exp.Sum(this=exp.column("a")), {}),
        (exp.RowNumber(), {"spec": exp.WindowSpec()}),
        (exp.RowNumber(), {"alias": exp.to_identifier("w")}),
    ],
)
def test_nothing_else_stands_before_over(function: exp.Expr, more: dict[str, object]) -> None:
    with pytest.raises(SqlSemanticError, match="OVER is not possible"):
        printed(function, **more)


def test_rows_may_be_chosen_by_their_number() -> None:
    window = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("a")])
    test = exp.LTE(this=window, expression=exp.Literal.number(2))
    tree = exp.select(exp.Star()).from_("t")
    tree.set("qualify", exp.Qualify(this=test))
    wanted = 'SELECT * FROM "t" QUALIFY (row_number() OVER (PARTITION BY "a")) <= 2'
    assert print_query(tree, ["t"]) == wanted


def test_a_choice_is_printed_from_nodes_only() -> None:
    tree = exp.select(exp.Star()).from_("t")
    tree.set("qualify", exp.Qualify(this=exp.Anonymous(this="read_csv", expressions=[])))
    with pytest.raises(SqlSemanticError, match="there is no function read_csv"):
        print_query(tree, ["t"])
