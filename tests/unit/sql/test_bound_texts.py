"""A text with parameters is cut as if their values were written in it, and never taken for one
that has them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.rows.parameters import Moment, Parameters
from penstock.sql.bound_texts import cut_bound_text, has_placeholders
from penstock.sql.parser import read
from penstock.sql.query_texts import cut_text


@pytest.mark.parametrize(
    ("value", "literal", "kind"),
    [
        (5, "5", "w"),
        (10**15, f"int {10**15}", "-"),
        (-5, "int -5", "-"),
        (True, "bool True", "-"),
        (None, "NoneType None", "-"),
        (1.5, "1.5", "r"),
        (1e-7, "float 1e-07", "-"),
        (-1.5, "float -1.5", "-"),
        (Decimal("1.5"), "Decimal Decimal('1.5')", "-"),
        ("a", "'a'", "t"),
        ("it's", "'it's'", "-"),
        ("a\\", "'a\\'", "-"),
        (b"a", "bytes b'a'", "-"),
        (Moment("2026-03-01T09:00:00.5"), "'2026-03-01 08:00:00.5+00:00'", "m"),
    ],
)
def test_a_value_is_a_literal_of_its_kind(value: Any, literal: str, kind: str) -> None:
    made = cut_bound_text("v = ? AND w = 7", [value], "Europe/Berlin")
    assert made is not None
    assert (made.literals, made.kinds) == ((literal, "7"), kind + "w")
    assert (made.holders, made.spans) == ((0,), ((4, 5), (14, 15)))
    assert made.between == ("v = ?", " AND w = ", "")


def test_values_of_two_types_are_written_in_two_ways() -> None:
    values = [5, 5.0, "5", True, None, Decimal(5), b"5", -5, "int -5", Moment("1970-01-05"), -5.0]
    made = [cut_bound_text("v = ?", [value], "UTC") for value in values]
    assert len({(m.literals, m.kinds) for m in made if m is not None}) == len(values)


def test_names_stand_for_their_values_wherever_they_are() -> None:
    made = cut_bound_text("v = :a OR w = ':a' OR :a < :b1 -- :a", {"a": 1, "b1": "x"}, "UTC")
    assert made is not None
    assert made.literals == ("1", "':a'", "1", "'x'", "-- :a")
    assert made.holders == (0, 2, 3)


def test_no_text_is_taken_for_one_with_parameters() -> None:
    made = cut_bound_text("v = ?", [5], "UTC")
    assert made is not None
    assert made.literals == cut_text("v = ? 5").literals
    assert made.holders != cut_text("v = ?5").holders


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("v = 5", [5]),
        ("v = '?' /* ? */", [5]),
        ("v = ?", [1, 2]),
        ("v = ? AND w = ?", [1]),
        ("v = :a", {"b": 1}),
        ("v = :a", [1]),
        ("v = ? AND w = :a", [1, 2]),
        ("v = ?", [[1]]),
        ("v = ?", [Moment("no time")]),
    ],
)
def test_what_does_not_fit_is_for_the_reader_to_say(text: str, parameters: Parameters) -> None:
    assert cut_bound_text(text, parameters, "UTC") is None


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT v FROM p WHERE v = ? AND w IN (?, '?')", [1, 2]),
        ("SELECT v FROM p WHERE v = :a OR :a < w -- :a", {"a": 1}),
        ("SELECT v FROM p WHERE v = :a OR (v < :a)", {"a": 1}),
    ],
)
def test_placeholders_are_those_of_the_statement(text: str, parameters: Parameters) -> None:
    made = cut_bound_text(text, parameters, "UTC")
    assert made is not None
    assert has_placeholders(made, read(text)[0].placeholders)
    assert not has_placeholders(made, read(text)[0].placeholders[1:])
