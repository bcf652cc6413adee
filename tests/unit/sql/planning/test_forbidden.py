"""Functions that no stream may use."""

from __future__ import annotations

import pytest

from penstock.sql.planning.forbidden import check_functions
from tests.unit.sql.planning.binding import select_of, statement
from tests.unit.sql.reading import refusal


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1 + twa(amps)", "instead: avg(x) over a window with equal steps"),
        ("1 + rand()", "instead: crc32(…)"),
    ],
)
def test_a_function_that_no_stream_may_use_is_refused_where_it_stands(text: str, hint: str) -> None:
    made = statement(f"{text} FROM met")
    error = refusal(lambda: check_functions(made, select_of(made)))
    column = len("CREATE STREAM s  INTO o AS SELECT 1 + ") + 1
    assert (error.code, error.column) == ("E_FORBIDDEN_FUNC", column)
    assert error.hint.startswith(hint)


def test_others_may_be_used() -> None:
    made = statement("abs(amps), sum(b) FROM met INTERVAL(1s)")
    check_functions(made, select_of(made))
