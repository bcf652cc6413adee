"""Names, strings and hints as SQL."""

from __future__ import annotations

import pytest

from penstock.sql.words import RESERVED, in_backticks, is_plain, meant, quote_name, quote_string


@pytest.mark.parametrize("name", ["a", "_x", "A1", "tbname", "open", "interval_"])
def test_a_plain_name_is_written_bare(name: str) -> None:
    assert is_plain(name)
    assert quote_name(name) == name
    assert in_backticks(name) == f"`{name}`"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("select", "`select`"),
        ("Interval", "`Interval`"),
        ("1a", "`1a`"),
        ("a b", "`a b`"),
        ("a`b", "`a``b`"),
        ("übung", "`übung`"),
        ("a\n", "`a\n`"),
        ("", "``"),
    ],
)
def test_any_other_name_is_put_in_backticks(name: str, wanted: str) -> None:
    assert not is_plain(name)
    assert quote_name(name) == wanted


def test_every_reserved_word_needs_backticks() -> None:
    assert not any(is_plain(word) or is_plain(word.lower()) for word in RESERVED)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("it's", r"'it\'s'"),
        ("a\\b", r"'a\\b'"),
        ("a\nb\rc\td\0", r"'a\nb\rc\td\0'"),
        ('"', "'\"'"),
        ("", "''"),
    ],
)
def test_a_string_is_escaped(text: str, wanted: str) -> None:
    assert quote_string(text) == wanted


def test_a_hint_names_the_nearest_word_if_one_is_near() -> None:
    assert meant("selct", ["SELECT", "USE"]) == "did you mean SELECT? known here: SELECT, USE"
    assert meant("xyz", ["USE", "SELECT"]) == "known here: SELECT, USE"
