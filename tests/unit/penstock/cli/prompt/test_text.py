"""Where statements end, and where the cursor is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.prompt.text import command_of, is_whole, place_of, split


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "\\d",
        "\\watch 2",
        "SELECT 1;",
        "SELECT ';';",
        "SELECT 'it''s;' , \"a;\", `b;`;",
        "SELECT '\\';';",
        "SELECT 1; -- done",
        "SELECT 1; /* ; */\n",
        "SELECT 1; SELECT 2;",
        "exit",
        " Quit; ",
        "help",
    ],
)
def test_what_enter_runs(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT 1; SELECT",
        "SELECT ';",
        "SELECT `a;",
        "SELECT '\\';",
        "SELECT 1 -- ;",
        "SELECT 1 /* ; */",
        "SELECT 1; /* ;",
        "-- a;\nSELECT 1",
        "help me",
    ],
)
def test_what_enter_goes_on_with(text: str) -> None:
    assert not is_whole(text)


@given(st.text(alphabet=" ;a'\"`-/*\\\n", max_size=40))
def test_any_text_can_be_ended(text: str) -> None:
    endings = ["", ";", "';", '";', "`;", "*/;", "\n;", "x';", 'x";']
    assert any(is_whole(text + ending) for ending in endings)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; -- nothing\n;", []),
        ("SELECT 1;", ["SELECT 1;"]),
        ("USE a; SELECT ';';\n\nSELECT `;`", ["USE a;", "SELECT ';';", "SELECT `;`"]),
        ("-- first;\nSELECT 1; -- then", ["-- first;\nSELECT 1;"]),
    ],
)
def test_statements_are_told_apart(text: str, statements: list[str]) -> None:
    assert split(text) == statements


@given(st.text(alphabet=" ;a'\"`-/*\\\n", max_size=40))
def test_nothing_of_a_statement_gets_lost(text: str) -> None:
    for statement in split(text):
        assert statement in text and split(statement) == [statement]


@pytest.mark.parametrize(
    ("text", "command"),
    [("\\d a ", "\\d a"), ("EXIT", "\\q"), ("help;", "\\?"), ("SELECT 1;", None), ("", None)],
)
def test_words_of_other_prompts_are_commands(text: str, command: str | None) -> None:
    assert command_of(text) == command


@pytest.mark.parametrize(
    ("text", "word", "kind", "tables"),
    [
        ("SELECT * FROM me", "me", "table", ("me",)),
        ("SELECT a, vol", "vol", "any", ()),
        ("USE po", "po", "database", ()),
        ("SELECT 1; SELECT x FROM power.`m`\nWHERE cu", "cu", "any", ("power.m",)),
        ("DESCRIBE ", "", "table", ()),
    ],
)
def test_where_the_cursor_is(text: str, word: str, kind: str, tables: tuple[str, ...]) -> None:
    place = place_of(text, text)
    assert (place.word, place.kind, place.tables) == (word, kind, tables)


def test_tables_behind_the_cursor_count() -> None:
    assert place_of("SELECT vo", "SELECT vo FROM a JOIN b").tables == ("a", "b")
