"""The cursor: words, names, literals and durations, and where its errors point."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlglot.tokenizer_core import TokenType

from penstock.sql.dialect import tokenize
from penstock.sql.nodes import UNITS
from penstock.sql.parsers.cursor import (
    MAX_KEEP_YEARS,
    MAX_YEARS,
    TokenCursor,
    negate,
    number,
    too_long,
)
from penstock.sql.plan import Duration
from penstock.sql.source import Source
from penstock.sql.statements import Name
from penstock.sql.words import quote_name, quote_string
from tests.nightly import drawn
from tests.unit.sql.reading import read, reader, refusal, refused

FEW = settings(max_examples=drawn(40), deadline=None)


def cursor(text: str) -> TokenCursor:
    return reader(TokenCursor, text)


def test_words_are_read_without_regard_to_case() -> None:
    at = cursor("create Stream s")
    assert at.sees("CREATE", "STREAM")
    assert not at.sees("CREATE", "TABLE")
    assert at.take("CREATE", "STREAM")
    assert (at.word(), at.token.text) == ("S", "s")


def test_a_group_of_words_is_taken_whole_or_not_at_all() -> None:
    at = cursor("IF NOT HERE")
    assert not at.take("IF", "NOT", "EXISTS")
    assert at.index == 0
    assert not at.if_exists()
    assert not at.if_not_exists()


def test_a_name_in_backticks_is_no_word() -> None:
    at = cursor("`select`")
    assert at.word() == ""
    assert not at.sees("SELECT")
    assert at.identifier() == "select"


def test_looking_beyond_the_end_finds_nothing() -> None:
    at = cursor("a")
    assert at.ahead(5).token_type is TokenType.SENTINEL
    assert at.word(3) == ""
    assert at.take("A")
    assert at.at_end
    assert at.offset == 1


def test_offsets_count_from_the_whole_text() -> None:
    text = "USE a; USE b"
    at = TokenCursor(tokenize(text[7:]), Source(text), 7, len(text))
    assert (at.offset, at.previous_end) == (7, 7)
    at.expect("USE")
    assert (at.offset, at.previous_end) == (11, 10)


def test_lists_need_commas_between_their_items() -> None:
    assert read(TokenCursor, "1, 2,3", lambda p: p.list_of(p.integer)) == (1, 2, 3)
    assert read(TokenCursor, "(1)", lambda p: p.list_in_parentheses(p.integer)) == (1,)
    at = cursor("(1 2)")
    assert refused(lambda: at.list_in_parentheses(at.integer)) == (
        "E_SYNTAX",
        1,
        4,
        'expected "," or ")", found 2',
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", Name("a")),
        ("db.t", Name("t", "db")),
        ("`a.b`.`select`", Name("select", "a.b")),
        ("Übung", Name("Übung")),
        ("_x1", Name("_x1")),
    ],
)
def test_a_name_may_have_a_database_before_it(text: str, name: Name) -> None:
    assert read(TokenCursor, text, lambda p: p.name()) == name


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("select", "found the reserved word SELECT", "`select`"),
        ("``", "a name cannot be empty", ""),
        ("'a'", "expected a name, found 'a'", ""),
        ("1", "expected a name, found 1", ""),
        ("", "expected a name, but the statement ends", ""),
        ("$a", "expected a name", ""),
    ],
)
def test_what_is_no_name_is_refused(text: str, message: str, hint: str) -> None:
    error = refusal(lambda: cursor(text).identifier())
    assert message in error.message
    assert hint in error.hint
    assert (error.line, error.column) == (1, 1)


@FEW
@given(some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_quoted_name_is_read_back(name: str) -> None:
    assert read(TokenCursor, quote_name(name), lambda p: p.identifier()) == name


@FEW
@given(some.text(some.characters(exclude_categories=["Cs"])))
def test_a_quoted_string_is_read_back(text: str) -> None:
    assert read(TokenCursor, quote_string(text), lambda p: p.string()) == text


def test_one_of_several_words_hints_at_the_nearest() -> None:
    words = ("DROP", "STOP")
    assert cursor("stop").one_of(words, "what to do") == "STOP"
    error = refusal(lambda: cursor("STO").one_of(words, "what to do"))
    assert error.message == "expected what to do, found STO"
    assert error.hint == "did you mean STOP? known here: DROP, STOP"


@pytest.mark.parametrize("text", ["-1", "1.5", "10s", "1e3", "'1'", "123456789012345678901", "x"])
def test_a_whole_number_has_digits_only(text: str) -> None:
    assert refused(lambda: cursor(text).integer())[:3] == ("E_SYNTAX", 1, 1)


def test_a_whole_number_has_up_to_twenty_digits() -> None:
    assert cursor("18446744073709551615").integer() == 2**64 - 1


def test_a_flag_is_0_or_1() -> None:
    assert [cursor(text).flag() for text in ("0", "1")] == [False, True]
    for text in ("2", "01", "1s", "true"):
        assert "expected 0 or 1" in refusal(lambda text=text: cursor(text).flag()).message  # type: ignore[misc]


@pytest.mark.parametrize("unit", UNITS)
def test_a_duration_is_read_in_every_unit_and_in_quotes(unit: str) -> None:
    wanted = Duration(7, unit)  # type: ignore[arg-type]
    for text in (f"7{unit}", f"7{unit.upper()}", f"'7{unit}'", f"'7{unit.upper()}'"):
        assert read(TokenCursor, text, lambda p: p.duration()) == wanted


@FEW
@given(some.integers(0, MAX_YEARS), some.sampled_from(UNITS))
def test_a_duration_reads_its_own_text(value: int, unit: Any) -> None:
    length = Duration(value, unit)
    assert read(TokenCursor, str(length), lambda p: p.duration()) == length


@pytest.mark.parametrize("text", ["10", "10 s", "10x", "1.5s", "'s'", "'10 s'", "s", "''", "'²s'"])
def test_what_is_no_duration_is_refused_with_the_units(text: str) -> None:
    error = refusal(lambda: cursor(text).duration())
    assert error.message.startswith("expected a length of time such as 10s")
    assert "b u a s m h d w n y" in error.hint


def test_a_duration_has_a_limit_that_the_caller_may_raise() -> None:
    assert cursor("290y").duration() == Duration(290, "y")
    assert "may have 290 years" in refusal(lambda: cursor("291y").duration()).message
    assert cursor("291y").duration(years=MAX_KEEP_YEARS) == Duration(291, "y")
    assert "290 years" in refusal(lambda: cursor("1" * 41 + "b").duration()).message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("0.12345678901234567", Decimal("0.12345678901234567")),
        ("9" * 40, int("9" * 40)),
    ],
)
def test_a_number_keeps_all_its_digits(text: str, value: object) -> None:
    found = number(text)
    assert found == value
    assert type(found) is type(value)
    assert read(TokenCursor, text, lambda p: p.number_value()) == value


@pytest.mark.parametrize("text", ["9" * 41, "1e999"])
def test_a_number_out_of_range_is_refused(text: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        number(text)
    assert "out of range" in refusal(lambda: cursor(text).number_value()).message


def test_the_other_sign_keeps_the_digits() -> None:
    long = Decimal("0." + "1" * 36)
    assert str(negate(long)) == f"-{long}"
    assert negate(5) == -5
    assert cursor("1.5").number_value(-1) == -1.5


def test_a_length_is_too_long_beyond_its_years() -> None:
    assert not too_long(Duration(365 * MAX_YEARS, "d"))
    assert too_long(Duration(365 * MAX_YEARS + 1, "d"))
    assert not too_long(Duration(500, "y"), 500)


def test_a_failure_points_at_the_token_and_shows_what_stands_there() -> None:
    at = cursor("a\n  bcd e")
    at.index = 1
    error = refusal(lambda: at.fail("expected x", code="E_OPTION_TWICE", hint="h"))
    assert (error.code, error.line, error.column, error.hint) == ("E_OPTION_TWICE", 2, 3, "h")
    assert error.message == "expected x, found bcd"
    assert error.snippet == "  bcd e\n  ^^^"
    assert refusal(lambda: at.fail("expected x", index=2)).column == 7


def test_a_long_token_is_cut_in_the_message() -> None:
    error = refusal(lambda: cursor("a" * 50).fail("expected x"))
    assert error.message == f"expected x, found {'a' * 30}…"


def test_text_that_goes_on_is_refused_where_it_should_end() -> None:
    at = cursor("a b")
    at.take("A")
    assert refused(at.expect_end) == ("E_SYNTAX", 1, 3, "the statement should end here, found b")
    assert refused(lambda: cursor("").expect("INTO")) == (
        "E_SYNTAX",
        1,
        1,
        "expected INTO, but the statement ends",
    )
