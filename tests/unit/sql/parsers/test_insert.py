"""INSERT's own scanner: tables, tags, rows, strings, and where it points."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.errors import SqlError
from penstock.sql.parsers.insert import parse_insert
from penstock.sql.source import Source
from penstock.sql.statements import Insert, InsertPart, InsertSelect, Name, Query
from penstock.sql.words import quote_name, quote_string
from tests.nightly import drawn
from tests.unit.sql.reading import refusal, refused

FEW = settings(max_examples=drawn(40), deadline=None)


def no_select(at: int) -> Query:
    raise AssertionError(f"a SELECT at {at}")


def insert(text: str) -> Insert:
    found = parse_insert(Source(text), 0, len(text), no_select)
    assert isinstance(found, Insert)
    return found


def part(text: str) -> InsertPart:
    (only,) = insert(text).parts
    return only


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("INSERT INTO t VALUES (1, 2)", InsertPart(Name("t"), ((1, 2),))),
        (
            "insert into db.t (a, `b c`) values (1, 2) (3, 4), (5, 6)",
            InsertPart(Name("t", "db"), ((1, 2), (3, 4), (5, 6)), ("a", "b c")),
        ),
        ("INSERT INTO t VALUE (1)", InsertPart(Name("t"), ((1,),))),
        (
            "INSERT INTO c USING s TAGS ('x', 1) VALUES (1)",
            InsertPart(Name("c"), ((1,),), None, Name("s"), None, ("x", 1)),
        ),
        (
            "INSERT INTO c USING db.s (t1) TAGS (NULL) (a) VALUES (1)",
            InsertPart(Name("c"), ((1,),), ("a",), Name("s", "db"), ("t1",), (None,)),
        ),
        (
            "INSERT INTO c (a) USING s TAGS (1) VALUES (1)",
            InsertPart(Name("c"), ((1,),), ("a",), Name("s"), None, (1,)),
        ),
        (
            "INSERT /* a */ INTO t -- b\n VALUES /* c */ (1 /* d */, 2) -- e\n , /* f */ (3, 4)",
            InsertPart(Name("t"), ((1, 2), (3, 4))),
        ),
    ],
)
def test_rows_of_one_table(text: str, wanted: InsertPart) -> None:
    assert part(text) == wanted


def test_one_statement_fills_several_tables() -> None:
    parts = insert("INSERT INTO a VALUES (1) (2) b (x) VALUES (3) `c` USING s TAGS (4) VALUES (5)")
    assert [(p.table.name, p.rows) for p in parts.parts] == [
        ("a", ((1,), (2,))),
        ("b", ((3,),)),
        ("c", ((5,),)),
    ]


def test_every_row_knows_where_it_stands() -> None:
    text = "INSERT INTO t VALUES (1), (2)\n  (3)"
    assert part(text).row_offsets == tuple(i for i, c in enumerate(text) if c == "(")


def test_a_piece_of_a_longer_text_is_read_by_its_bounds() -> None:
    text = "USE a; INSERT INTO t VALUES (1); USE b"
    found = parse_insert(Source(text), 7, 31, no_select)
    assert found.text == "INSERT INTO t VALUES (1)"
    assert found.parts[0].table.offset == 19  # type: ignore[union-attr]


def test_a_select_is_left_to_the_other_parser() -> None:
    text = "INSERT INTO db.t (a, b)  SELECT 1"
    asked: list[int] = []
    answer: Any = SimpleNamespace(placeholders=())

    def query(at: int) -> Query:
        asked.append(at)
        return answer  # type: ignore[no-any-return]

    found = parse_insert(Source(text), 0, len(text), query)
    assert isinstance(found, InsertSelect)
    assert (found.table, found.columns) == (Name("t", "db"), ("a", "b"))
    assert found.select is answer
    assert asked == [text.index("SELECT")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'a\nb'", "a\nb"),
        (r"'a\tb\rc\0'", "a\tb\rc\0"),
        (r"'\\'", "\\"),
        (r"'\''", "'"),
        ("''''", "'"),
        ("'it''s'", "it's"),
        ('"a""b"', 'a"b'),
        ("'a\"\"b'", 'a""b'),
        ("\"a''b\"", "a''b"),
        (r"'\%\q'", r"\%\q"),
        ("'--no comment'", "--no comment"),
        ("'(1), (2)'", "(1), (2)"),
    ],
)
def test_a_string_is_unescaped(text: str, value: str) -> None:
    assert part(f"INSERT INTO t VALUES (1, {text}, 2)").rows == ((1, value, 2),)
    assert part(f"INSERT INTO t VALUES ({text} )").rows == ((value,),)


@FEW
@given(
    some.lists(
        some.none()
        | some.booleans()
        | some.integers(-(2**63), 2**64 - 1)
        | some.text(some.characters(exclude_categories=["Cs"])),
        min_size=1,
        max_size=5,
    )
)
def test_written_values_are_read_back(values: list[Any]) -> None:
    def sql(value: Any) -> str:
        return quote_string(value) if isinstance(value, str) else str(value).replace("None", "NULL")

    row = f"({', '.join(map(sql, values))})"
    assert part(f"INSERT INTO t VALUES {row} {row}").rows == (tuple(values), tuple(values))


@FEW
@given(some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_quoted_table_name_is_read_back(name: str) -> None:
    assert part(f"INSERT INTO {quote_name(name)} VALUES (1)").table == Name(name)


REFUSED = [
    ("INSERT t VALUES (1)", 8, "expected INTO"),
    ("INSERT INTO VALUES (1)", 13, "expected a table name, found the reserved word VALUES"),
    ("INSERT INTO 1 VALUES (1)", 13, "expected a table name"),
    ("INSERT INTO `` VALUES (1)", 13, "a name cannot be empty"),
    ("INSERT INTO t", 14, "expected VALUES, but the statement ends"),
    ("INSERT INTO t VALUES", 21, 'expected "(" and a row, but the statement ends'),
    ("INSERT INTO t VALUES 1", 22, 'expected "(" and a row'),
    ("INSERT INTO t VALUES (1), x", 27, "expected another row"),
    ("INSERT INTO t VALUES (1", 24, 'expected "," or ")", but the statement ends'),
    ("INSERT INTO t VALUES (1 2)", 25, 'expected "," or ")"'),
    ("INSERT INTO t VALUES ()", 23, "expected a value"),
    ("INSERT INTO t VALUES (abc)", 23, "expected a value"),
    ("INSERT INTO t VALUES ('a)", 23, "this string is never closed"),
    ("INSERT INTO t VALUES (1e999)", 23, "this number is out of range"),
    ("INSERT INTO t VALUES (1.5 + 1s)", 23, "arithmetic is only allowed on times"),
    ("INSERT INTO t VALUES (TRUE + 1s)", 23, "arithmetic is only allowed on times"),
    ("INSERT INTO t VALUES (now + 1)", 29, "expected a length of time such as 10s"),
    ("INSERT INTO t VALUES (now + 291y)", 29, "a length of time may have 290 years"),
    (
        "INSERT INTO t VALUES (1, 2) (3)",
        29,
        "this row has 1 values, there are 2 values in the first row",
    ),
    ("INSERT INTO t (a) VALUES (1, 2)", 26, "this row has 2 values, there are 1 columns"),
    ("INSERT INTO t (a, A) VALUES (1, 2)", 19, '"A" is given twice'),
    ("INSERT INTO t (a, b, B) VALUES (1, 2)", 22, '"B" is given twice'),
    ("INSERT INTO t (a b) VALUES (1)", 18, 'expected "," or ")"'),
    ("INSERT INTO c USING s (x) TAGS (1, 2) VALUES (1)", 32, "found 2 tag values for 1 tag names"),
    ("INSERT INTO c USING s VALUES (1)", 23, "expected TAGS"),
    ("INSERT INTO t FILE 'x.csv'", 15, "rows from a file are not read here"),
]


@pytest.mark.parametrize(("text", "column", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_fault_is_refused_at_its_place(text: str, column: int, message: str) -> None:
    assert refused(lambda: insert(text)) == ("E_SYNTAX", 1, column, message)


def test_a_misspelt_word_gets_a_hint() -> None:
    assert refusal(lambda: insert("INSERT INTO t VALUS (1)")).hint.startswith("did you mean VALUES")
    assert "`select`" in refusal(lambda: insert("INSERT INTO select VALUES (1)")).hint


@FEW
@given(some.text("(),'\"`-+/*\\ 1an\n", max_size=30))
def test_any_text_is_read_or_refused(tail: str) -> None:
    try:
        insert("INSERT INTO t VALUES (" + tail)
    except SqlError as error:
        assert error.code == "E_SYNTAX"
