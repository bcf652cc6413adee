"""Literals are cut out of a text where they can be exchanged, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql import parse_one
from penstock.sql.query_texts import REAL, TEXT, WHOLE, cut_text
from penstock.sql.statements import Query
from tests.nightly import drawn


@pytest.mark.parametrize(
    ("text", "literals", "kinds"),
    [
        ("ts >= '2026-01-01' AND v<5", ["'2026-01-01'", "5"], "tw"),
        ("v > 1.50 OR v = 007", ["1.50", "007"], "rw"),
        ("w = 'it''s' AND w = 'x'", ["'it''s'", "'x'"], "-t"),
        (r"w = 'a\'b' AND w = 'x'", [r"'a\'b'", "'x'"], "-t"),
        ("""w = "a'b" AND w = 'x'""", ['"a\'b"', "'x'"], "-t"),
        ("`a'b` = 'x' -- it's 5\n AND v = 5", ["`a'b`", "'x'", "-- it's 5", "5"], "-t-w"),
        ("/* ' */ v = 1", ["/* ' */", "1"], "-w"),
        ("m500 = t1.v AND x = 10s AND y = 1e5 AND z = 0x1F", [], ""),
        ("v = .5 AND v = 5. AND v = 1234567890123456", [], ""),
        ("w = 'line\nbreak' AND w = '\0'", ["'line\nbreak'", "'\0'"], "--"),
        ("w = 'open AND v = 5", ["5"], "w"),
        ("$1 = '$1'", ["'$1'"], "t"),
    ],
)
def test_what_is_a_literal(text: str, literals: list[str], kinds: str) -> None:
    made = cut_text(text)
    assert (list(made.literals), made.kinds) == (literals, kinds)
    assert [text[start:end] for start, end in made.spans] == literals


@given(st.text(alphabet="'\"\\`-/*\n$a1.5 eé\0", max_size=40))
@settings(max_examples=drawn(200), deadline=None)
def test_a_text_is_its_pieces(text: str) -> None:
    made = cut_text(text)
    pieces = [*made.literals, ""]
    assert "".join(a + b for a, b in zip(made.between, pieces, strict=True)) == text
    assert [text[start:end] for start, end in made.spans] == list(made.literals)


#: literals by kind, all that may stand in the place of another
_OTHERS = {
    TEXT: st.text(st.characters(exclude_characters="'\\", exclude_categories=["Cs", "Cc"])).map(
        lambda text: f"'{text}'"
    ),
    WHOLE: st.from_regex("[0-9]{1,15}", fullmatch=True),
    REAL: st.from_regex("[0-9]{1,9}[.][0-9]{1,9}", fullmatch=True),
}
_SOUP = st.lists(
    st.sampled_from(
        [
            "v",
            "=",
            "<",
            "AND",
            "OR",
            "(",
            ")",
            "'",
            '"',
            "`",
            "--",
            "/*",
            "*/",
            "\n",
            ",",
            "-",
            "\\",
        ]
        + ["'a'", "'it''s'", "5", "1.5", "10s", ".", "ts", "IN", "''", "1e5", "NOT", "'x' = w"]
    ),
    max_size=14,
)


@given(_SOUP, st.sampled_from([" ", ""]), st.data())
@settings(max_examples=drawn(300), deadline=None)
def test_other_literals_change_nothing_else_of_the_tree(
    soup: list[str], blank: str, data: st.DataObject
) -> None:
    text = f"SELECT v FROM m WHERE v = 1 AND {blank.join(soup)} OR w = 'z'"
    try:
        before = _tree(text)
    except SqlError:
        return
    made = cut_text(text)
    literals = list(made.literals)
    exchanged = {}
    for place, span in enumerate(made.spans):
        # as with queries, only what the parser takes for a literal is exchanged
        if made.kinds[place] != "-" and span in {_span(x) for x in before.find_all(exp.Literal)}:
            literals[place] = data.draw(_OTHERS[made.kinds[place]])
            exchanged[span] = literals[place]
    other = "".join(a + b for a, b in zip(made.between, [*literals, ""], strict=True))
    for literal in list(before.find_all(exp.Literal)):
        if _span(literal) in exchanged:
            literal.set("this", exchanged[_span(literal)].strip("'"))
    assert _tree(other) == before


def _tree(text: str) -> exp.Query:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    return statement.query


def _span(node: exp.Expr) -> tuple[int, int]:
    return node.meta.get("start", -1), node.meta.get("end", -1)
