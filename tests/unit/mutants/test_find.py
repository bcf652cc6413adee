"""Mutants are found, drawn fairly and by seed, and made; what no test can notice is no mutant."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.equivalent import same_behaviour
from tests.mutants.find import Mutant, drawn, mutants_of

SOURCE = dedent(
    '''
    def first(rows: list[int] | None, limit: int = 3) -> int | None:
        """Return the first row, if there are fewer than `limit`."""
        log.info("asked", rows=len(rows) + 1)
        for row in rows or []:
            if not row < limit:
                raise ValueError(row)
            return row
        return None
    '''
)


def made(text: str) -> set[str]:
    """All that can become of a text, without what no test can notice."""
    codes = (mutant.code(text) for mutant in mutants_of("a.py", text))
    return {code for code in codes if code is not None}


def test_each_likely_mistake_is_a_mutant() -> None:
    changes = [
        ("= 3", "= 2"),
        ("= 3", "= 4"),
        ("rows or", "rows and"),
        ("rows or []", "[]"),
        ("if not", "if not not"),
        ("if not row", "if  row"),
        ("row < limit", "row <= limit"),
        ("row < limit", "row >= limit"),
        ("raise ValueError(row)", "pass"),
    ]
    assert made(SOURCE) == {SOURCE.replace(old, new) for old, new in changes}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rows.clear()\n", "pass\n"),
        ("self.rows = [1]\n", "pass\n"),
        ("def f(a):\n    a[0] += b\n", "def f(a):\n    pass\n"),
        ("if a:\n    del b[a]\n", "if a:\n    pass\n"),
    ],
)
def test_what_is_there_for_its_effect_is_dropped(before: str, after: str) -> None:
    assert after in made(before)


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def __init__(self):\n        self.rows = []\n",
        "rows = found\n",
        "def f(a, *, b): ...\n",
        "a: int | None = b\n",
        "@dataclass(frozen=True)\nclass A: ...\n",
        "if TYPE_CHECKING:\n    from a import b\n",
        "pairs = zip(a, b, strict=True)\n",
        "self._log.warning('%d rows', 5)\n",
    ],
)
def test_what_no_test_can_notice_is_no_mutant(text: str) -> None:
    assert made(text) <= {"pass\n"}


def test_what_does_not_compile_is_no_mutant() -> None:
    assert same_behaviour("a = 1\n", "a = = 1\n")
    assert same_behaviour("def f(): return 1\n", "return 1\n")
    assert not same_behaviour("a = 1\n", "a = 2\n")


def test_a_diff_shows_the_change_alone() -> None:
    mutant = Mutant("a/b.py", "ReplaceComparisonOperator_Lt_LtE", 0, (6, 19))
    lines = mutant.diff(SOURCE).splitlines()
    assert lines[:2] == ["--- a/a/b.py", "+++ b/a/b.py"]
    assert [line for line in lines[2:] if line[0] in "-+"] == [
        "-        if not row < limit:",
        "+        if not row <= limit:",
    ]


def test_a_seed_names_the_order_for_good() -> None:
    found = mutants_of("a.py", SOURCE)
    assert drawn(found, "x") == drawn(found, "x")
    assert drawn(found, "x") != drawn(found, "y")


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), unique=True), st.text())
def test_each_place_has_its_turn_before_any_has_a_second(
    places: list[tuple[int, int]], seed: str
) -> None:
    found = [Mutant("a.py", "NumberReplacer", number, (line, 0)) for line, number in places]
    order = drawn(found, seed)
    assert len(order) == len(found) and set(order) == set(found)
    different = len({mutant.start for mutant in found})
    assert len({mutant.start for mutant in order[:different]}) == different
