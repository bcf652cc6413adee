"""FILL of empty windows."""

from __future__ import annotations

import pytest

from penstock.sql.plan import Fill
from penstock.sql.planning.select.fill import fill_mode, plan_fill
from tests.unit.sql.planning.binding import bound, context, refused_at, select_list, statement
from tests.unit.sql.reading import refusal

HEAD = "_wstart, count(*), last(s) AS name, 7, ta FROM met PARTITION BY ta INTERVAL(1s)"


@pytest.mark.parametrize(
    ("clause", "mode"),
    [
        ("", None),
        ("FILL(NONE)", "none"),
        ("FILL(NULL)", "null"),
        ("FILL(NULL_F)", "null"),
        ("FILL(VALUE, 1)", "value"),
        ("FILL(VALUE_F, 1)", "value"),
        ("FILL(PREV)", "prev"),
    ],
)
def test_a_mode_is_read(clause: str, mode: str | None) -> None:
    assert fill_mode(bound(statement(f"1 FROM met INTERVAL(1s) {clause}"))) == mode


def fill(clause: str, head: str = HEAD) -> Fill:
    made = statement(f"{head} {clause}")
    listed, _ = select_list(made)
    return plan_fill(context(made), bound(made), listed)


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("", Fill("none")),
        ("FILL(LINEAR)", Fill("linear")),
        ("FILL(VALUE, 0, 'x')", Fill("value", (None, "0", "'x'", None, None))),
        ("FILL(VALUE, '5', NULL)", Fill("value", (None, "'5'", "NULL", None, None))),
        ("FILL(VALUE_F, -1, 5)", Fill("value", (None, "-1", "5", None, None))),
    ],
)
def test_values_go_to_the_outputs_that_are_made_of_aggregates(clause: str, wanted: Fill) -> None:
    assert fill(clause) == wanted


@pytest.mark.parametrize(
    ("head", "clause", "code", "at"),
    [
        (HEAD, "FILL(VALUE, 1)", "E_FILL_VALUES", "FILL(VALUE, "),
        (HEAD, "FILL(VALUE, 1, 2, 3)", "E_FILL_VALUES", "FILL(VALUE, "),
        (HEAD, "FILL(VALUE, 'x', 2)", "E_FILL_VALUES", "'x', 2)"),
        (HEAD, "FILL(VALUE, now, 2)", "E_FILL_VALUES", "now, 2)"),
        (HEAD, "FILL(VALUE, amps, 2)", "E_UNKNOWN_COLUMN", "amps, 2)"),
        ("count(*) FROM met SESSION(ts, 1s)", "FILL(PREV)", "E_FILL_WINDOW", "FILL(PREV)"),
        (
            "middle(d) FROM met INTERVAL(1s)",
            "FILL(PREV)",
            "E_UNSUPPORTED_QUERY",
            "FILL(PREV)",
        ),
    ],
)
def test_what_cannot_fill_is_refused_where_it_stands(
    head: str, clause: str, code: str, at: str
) -> None:
    made = statement(f"{head} {clause}")
    listed, _ = select_list(made)
    call = lambda: plan_fill(context(made), bound(made), listed)  # noqa: E731
    assert refused_at(made, call) == (code, at)


def test_a_value_that_does_not_fit_names_its_column() -> None:
    error = refusal(lambda: fill("FILL(VALUE, 'x', 2)"))
    assert error.message == "'x' does not fit column count(*)"
    assert error.detail == "VARCHAR(1) and BIGINT do not fit"
