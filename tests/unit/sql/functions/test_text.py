"""Text functions, each over a column with NULL and text beyond ASCII."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql.functions import text
from penstock.sql.functions.base import MAX_TEXT, REGISTRY
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.calling import Table, apply, call_of
from tests.unit.sql.reading import refusal

N = None
CASES: list[tuple[Any, tuple[Any, ...], list[Any]]] = [
    (text.ascii_, (["A", "", "é", N],), [65, 0, 0xC3, N]),
    (text.char, ([65, 0x4142, 0xE4B8AD, N],), ["A", "AB", "中", ""]),
    (text.char, ([0x80, 0xC3, 0xED, 66],), [N, N, N, "B"]),
    (text.char, ([77, N], [78, 79]), ["MN", "O"]),
    (text.char_length, (["héé", "", N],), [3, 0, N]),
    (text.length, (["héé", "", N],), [5, 0, N]),
    (text.length, ([b"abc", N],), [3, N]),
    (text.concat, (["a", "b", N], ["x", N, "y"]), ["ax", N, N]),
    (text.concat_ws, ("-", ["a", N], ["b", "c"], ["c", "d"]), ["a-b-c", N]),
    (text.lower, (["HÉ1", N],), ["hé1", N]),
    (text.upper, (["hé1", N],), ["HÉ1", N]),
    (text.ltrim, (["  a ", "\ta", N],), ["a ", "\ta", N]),
    (text.rtrim, (["  a ", "a\t", N],), ["  a", "a\t", N]),
    (text.trim, (["  a b  ", "   ", N],), ["a b", "", N]),
    (text.trim, (["xyxyaxy", "xy", "ax", N], "BOTH", "xy"), ["a", "", "ax", N]),
    (text.trim, (["xaxx", N], "leading", "x"), ["axx", N]),
    (text.trim, (["xaxx", N], "TRAILING", "x"), ["xa", N]),
    (text.trim, (["a.b.", "\n\na\n"], "BOTH", "."), ["a.b", "\n\na\n"]),
    (text.trim, (["\n\na\n"], "BOTH", "\n"), ["a"]),
    (text.trim, ([" a "], "BOTH", ""), [" a "]),
    (text.substr, (["héllo", "", N], 2), ["éllo", "", N]),
    (text.substr, (["héllo"] * 5, [1, 0, -2, -9, 9]), ["héllo", "", "lo", "", ""]),
    (text.substr, (["héllo"] * 4, 2, [2, 0, -1, 99]), ["él", "", "", "éllo"]),
    (text.substr, (["abc", "abc"], [N, 1], [1, N]), [N, N]),
    (text.substring_index, (["a.b.c"] * 5, ".", [1, 2, -1, 0, 9]), "a a.b c - a.b.c"),
    (text.substring_index, (["a.b", N, "x"], ".", 1), ["a", N, "x"]),
    (text.substring_index, (["a.b", N], "", 1), ["", N]),
    (text.position, ("l", ["héllo", "x", "", N]), [3, 0, 0, N]),
    (text.position, ("", ["ab", N]), [1, N]),
    (text.position, (["b", N], ["ab", "ab"]), [2, N]),
    (text.replace, (["aXbX", "", N], "X", "--"), ["a--b--", "", N]),
    (text.replace, (["a.b", N], ".", ""), ["ab", N]),
    (text.replace, (["ab", N], "", "x"), ["ab", N]),
    (text.replace, (["aXb", "ab", "a"], ["X", "", N], ["1", "2", "3"]), ["a1b", "ab", N]),
    (text.replace, ("a-b", ["-", "x"], ["+", "y"]), ["a+b", "a-b"]),
    (text.repeat, (["ab", "", N], 2), ["abab", "", N]),
    (text.repeat, (["ab"] * 4, [3, 0, -1, N]), ["ababab", "", "", N]),
    (text.repeat, (["$0x", "x"], 2), ["$0x$0x", "xx"]),
    (text.repeat, ("ab", [1, 2, N]), ["ab", "abab", N]),
    (text.repeat, (N, [1, 2]), [N, N]),
    (text.find_in_set, ("b", ["a,b", "b,b", "ab", "", N]), [2, 1, 0, 0, N]),
    (text.find_in_set, (["a", "c", N], ["a;c", "a;c", "a"], ";"), [1, 2, N]),
    (text.find_in_set, ("é", ["ä,é"]), [2]),
    (text.like_in_set, ("b%", ["a,bx", "b", "x", N]), [2, 1, 0, N]),
    (text.like_in_set, (N, ["a"]), [N]),
    (text.regexp_in_set, ("^b.$", ["a,bx", "b", N], ","), [2, 0, N]),
    (text.regexp_in_set, (N, ["a"]), [N]),
]


@pytest.mark.parametrize(
    ("build", "arguments", "wanted"),
    CASES,
    ids=[f"{c[0].__name__}{i}" for i, c in enumerate(CASES)],
)
def test_a_function_has_its_value_in_each_row(
    build: Any, arguments: tuple[Any, ...], wanted: Any
) -> None:
    found = apply(build, *arguments)
    if isinstance(wanted, str):
        wanted = [w.replace("-", "") for w in wanted.split(" ")]
    if len(found) == 1:
        found = found * len(wanted)
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("lower", (["a"],), "VARCHAR(20)"),
        ("lower", ((["a"], ColumnType("NCHAR", length=7)),), "NCHAR(7)"),
        ("lower", ((["a"], ColumnType("JSON")),), "VARCHAR(4096)"),
        ("concat", (["a"], ["b"]), "VARCHAR(40)"),
        ("concat", (["a"], (["b"], ColumnType("NCHAR", length=7))), "NCHAR(27)"),
        ("concat", ((["a"], ColumnType("VARCHAR", length=60000)), ["b"]), "VARCHAR(60020)"),
        (
            "concat",
            ((["a"], ColumnType("VARCHAR", length=MAX_TEXT)), ["b"]),
            f"VARCHAR({MAX_TEXT})",
        ),
        ("concat_ws", (["-"], ["b"], ["c"], ["d"]), "VARCHAR(100)"),
        ("replace", (["a"], ["b"], ["c"]), "VARCHAR(40)"),
        ("repeat", (["a"], 3), "VARCHAR(60)"),
        ("repeat", (["a"], [3]), "VARCHAR(4096)"),
        ("char", ([65], [66]), "VARCHAR(8)"),
    ],
)
def test_the_length_of_a_result_follows_its_arguments(
    name: str, arguments: tuple[Any, ...], kind: str
) -> None:
    call = call_of(Table(), *arguments, name=name)
    returns = REGISTRY[name].returns
    assert not isinstance(returns, ColumnType)
    assert str(returns([a.type for a in call.args], call)) == kind


def test_a_text_grows_no_longer_than_a_varchar() -> None:
    long = (["a" * MAX_TEXT], ColumnType("VARCHAR", length=MAX_TEXT))
    assert [len(v) for v in apply(text.concat, long, ["bb"])] == [MAX_TEXT]
    assert [len(v) for v in apply(text.concat_ws, "-", long, long, long)] == [MAX_TEXT]
    assert [len(v) for v in apply(text.repeat, ["ab"], 10**9)] == [MAX_TEXT - 1]
    assert apply(text.replace, (["a" * 40_000], ColumnType("VARCHAR", 40_000)), "a", "bb") == [N]
    assert apply(text.replace, long, ["a"], ["bb"]) == [N]


@pytest.mark.parametrize(
    ("build", "arguments", "message"),
    [
        (text.length, ([1],), "length() takes text or VARBINARY, not BIGINT"),
        (text.find_in_set, ("a", ["a"], ""), "the separator of find_in_set() must not be empty"),
        (text.like_in_set, ("a", ["a"], ""), "the separator of f() must not be empty or NULL"),
        (text.regexp_in_set, ("a", ["a"], None), "the separator of f() must not be empty or NULL"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(
    build: Any, arguments: tuple[Any, ...], message: str
) -> None:
    error = refusal(lambda: apply(build, *arguments))
    assert error.code == "E_FUNCTION_ARGUMENT"
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("a%", "abc", True),
        ("a_c", "abc", True),
        ("a_c", "ac", False),
        ("%", "", True),
        ("", "", True),
        ("", "a", False),
        (r"a\%", "a%", True),
        (r"a\%", "ab", False),
        (r"a\_b", "axb", False),
        (r"a\\b", r"a\b", True),
        (r"a\b", r"a\b", True),
        ("a\\", "a\\", True),
        ("a.c", "abc", False),
        ("a%c", "a\nc", True),
    ],
)
def test_a_like_pattern_is_anchored_and_escaped(pattern: str, value: str, found: bool) -> None:
    assert bool(re.search(text.like_pattern(pattern), value)) is found


@settings(max_examples=drawn(100), deadline=None)
@given(some.text("ab%_", max_size=6), some.text("ab", max_size=6))
def test_like_finds_what_a_shell_pattern_would(pattern: str, value: str) -> None:
    shell = pattern.replace("%", "*").replace("_", "?")
    found = re.search(text.like_pattern(pattern), value) is not None
    assert found == fnmatch.fnmatchcase(value, shell)


@settings(max_examples=drawn(60), deadline=None)
@given(some.text("aé中,", max_size=8), some.text("aé中", min_size=1, max_size=2))
def test_positions_count_characters(value: str, what: str) -> None:
    assert apply(text.position, what, [value]) == [value.find(what) + 1]
    assert apply(text.char_length, [value]) == [len(value)]
    assert apply(text.length, [value]) == [len(value.encode())]
    assert apply(text.substr, [value], 2, 3) == [value[1:4]]
