"""LIKE and MATCH over text, CONTAINS and -> over JSON."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.compile import arithmetic, comparison, leaves, patterns
from penstock.sql.compile.patterns import check_regex
from tests.unit.sql.compiling import compiler, evaluate
from tests.unit.sql.reading import refusal, refused

T = True
F = False
N = None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n LIKE 'x%'", [F, N, T]),
        ("n LIKE '_'", [T, N, F]),
        ("n LIKE 'X%'", [F, N, F]),
        ("n LIKE 'xy'", [F, N, F]),
        ("n LIKE NULL", [N, N, N]),
        ("NULL LIKE 'x'", [N, N, N]),
        ("n MATCH 'y'", [F, N, T]),
        ("n MATCH '^y'", [F, N, F]),
        ("n MATCH NULL", [N, N, N]),
        ("n NMATCH 'y'", [T, N, F]),
        ("j LIKE '%true%'", [T, N, F]),
        ("j CONTAINS 'k'", [T, N, T]),
        ("j CONTAINS 't'", [T, N, F]),
        ("j -> 'k' = 1", [T, N, N]),
        ("j -> 't' = TRUE", [T, N, N]),
    ],
)
def test_a_pattern_is_found_in_each_row(text: str, values: list[Any]) -> None:
    modules = (leaves, arithmetic, comparison, patterns)
    assert evaluate(text, *modules) == ("BOOL", values)


def test_a_value_of_json_is_json_again() -> None:
    assert evaluate("j -> 'k'", leaves, patterns) == ("JSON", ["1", N, N])


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        ("a LIKE 'x'", "E_TYPE", 1, "LIKE needs text, not INT"),
        ("ts MATCH 'x'", "E_TYPE", 1, "MATCH needs text, not TIMESTAMP"),
        ("s LIKE n", "E_PATTERN", 8, "the pattern of LIKE must be a text constant"),
        ("s LIKE 1", "E_PATTERN", 8, "the pattern of LIKE must be a text constant"),
        ("s MATCH '('", "E_PATTERN", 9, "the regular expression cannot be read"),
        (
            f"s LIKE '{'x' * 1025}'",
            "E_PATTERN",
            8,
            "the pattern of LIKE is longer than 1024 characters",
        ),
        ("s CONTAINS 'k'", "E_TYPE", 1, "CONTAINS needs a JSON tag, not VARCHAR(10)"),
        ("s -> 'k'", "E_TYPE", 1, "-> needs a JSON tag, not VARCHAR(10)"),
        (r"j -> 'a\\b'", "E_PATTERN", 1, "this key cannot be looked up"),
        ("j -> 'a\"\\'b'", "E_PATTERN", 1, "this key cannot be looked up"),
    ],
)
def test_what_cannot_be_a_pattern_is_refused(
    text: str, code: str, column: int, message: str
) -> None:
    assert refused(lambda: evaluate(text, leaves, patterns)) == (code, 1, column, message)


def test_a_key_may_have_one_kind_of_quotes() -> None:
    for key in ('a"b', "a\\'b", "a b", "a.b", "$"):
        assert evaluate(f"j -> '{key}'", leaves, patterns)[1] == [N, N, N]


def test_a_regular_expression_tells_its_fault() -> None:
    node = compiler(leaves)
    check_regex(node, "^a+$", None)  # type: ignore[arg-type]
    error = refusal(lambda: check_regex(node, "a{2", None))  # type: ignore[arg-type]
    assert error.code == "E_PATTERN" and error.detail
