"""Texts and what they become: canonical form and notices (`=>`), or the whole error message (`!!`).
See corpus/*.txt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import SqlError, SqlSyntaxError
from penstock.sql import parse, parse_one, render

CORPUS = Path(__file__).parent / "corpus"
BLOCKS = [
    (path.stem, block.strip("\n"))
    for path in sorted(CORPUS.glob("*.txt"))
    for block in path.read_text(encoding="utf-8").split("\n\n====\n\n")
]


def answer(text: str) -> str:
    try:
        statements = parse(text)
    except SqlError as error:
        return f"!!\n{error}"
    notices = [f"-- {n}" for s in statements for n in s.notices]
    return "\n".join(["=>", *map(render, statements), *notices])


@pytest.mark.parametrize(("family", "block"), BLOCKS, ids=lambda x: x.split("\n")[0][:60])
def test_each_text_gives_its_canonical_form_or_its_error(family: str, block: str) -> None:
    separator = "\n!!\n" if family == "errors" else "\n=>\n"
    text, expected = block.split(separator)
    assert answer(text) == separator.lstrip("\n") + expected


@pytest.mark.parametrize("block", [b for f, b in BLOCKS if f != "errors"])
def test_the_canonical_form_is_read_back_as_the_same_statement(block: str) -> None:
    statements = parse(block.split("\n=>\n")[0])
    assert statements
    for statement in statements:
        assert parse(render(statement)) == [statement]
        assert render(parse_one(render(statement))) == render(statement)


def test_positions_point_into_the_whole_text() -> None:
    text = "USE a;\n  -- about b\n  USE b ;"
    first, second = parse(text)
    assert (first.text, second.text) == ("USE a", "USE b")
    assert (second.line, second.column) == (3, 3)


def test_a_semantic_error_points_at_an_expression_an_option_or_a_name() -> None:
    text = "USE x;\nCREATE STREAM s TRIGGER AT_ONCE WATERMARK 1s\nINTO o AS SELECT _wstart,\n  twa(a) FROM t INTERVAL(10s)"
    stream = parse(text)[1]
    function = stream.query.expressions[1]  # type: ignore[attr-defined]
    error = stream.error("no twa", function, code="E_FORBIDDEN_FUNC")
    assert (error.line, error.column, error.snippet) == (
        4,
        3,
        "  twa(a) FROM t INTERVAL(10s)\n  ^^^^^^",
    )
    assert stream.error("option", stream.positions["watermark"]).column == 33  # type: ignore[attr-defined]
    target = stream.error("target", stream.target)  # type: ignore[attr-defined]
    assert (target.line, target.column) == (3, 6)
    window = stream.error("window", stream.query.args["window"])  # type: ignore[attr-defined]
    assert window.snippet.endswith("^" * len("INTERVAL(10s)"))


def test_select_items_keep_their_text_as_written() -> None:
    (statement,) = parse("SELECT COUNT( * ), a+b AS c, max(a)  m FROM t")
    assert [e.meta["sql"] for e in statement.query.expressions] == ["COUNT( * )", "a+b", "max(a)"]  # type: ignore[attr-defined]


def test_one_statement_is_asked_for() -> None:
    with pytest.raises(SqlSyntaxError, match="a second one begins"):
        parse_one("USE a; USE b")
    with pytest.raises(SqlSyntaxError, match="no statement"):
        parse_one(" -- nothing\n;")
