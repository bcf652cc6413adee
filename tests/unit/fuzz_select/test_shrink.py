"""A failing case is made as small as it can be, and written as a file of the corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fuzz_select import operations
from tests.fuzz_select.report import corpus_text
from tests.fuzz_select.shrink import shrink, smaller_expressions
from tests.fuzz_select.tree import Apply, Ordered, Select, TableSource, Value
from tests.fuzz_select.trial import Fault, Trial, draw_trial
from tests.sql.script import Rows, read
from tests.unit.fuzz_select.kit import column, compared, number, row, world

S = column("s", "VARCHAR")
INT = column("i")
ROWS = [row("a", i, i=i, s=None if i == 3 else "it's  \t", x=0.1) for i in range(10)]
QUERY = Select(
    (INT, Apply(operations.choices("VARCHAR")[0], (S, Value("VARCHAR", "b", "'b'")))),
    TableSource("m", "m"),
    compared("<", INT, number(8)),
    order=(Ordered(0, descending=True, nulls_first=None),),
    limit=9,
)
TRIAL = Trial("unit/1", QUERY, "Europe/Berlin", world(*ROWS))


def _broken(trial: Trial) -> Fault | None:
    """Stand for an engine that does not know `coalesce` of a NULL."""
    lacks = any(r["s"] is None for r in trial.world.rows("m"))
    return Fault("query", "no") if lacks and "coalesce" in trial.sql else None


def test_what_the_fault_does_not_need_goes() -> None:
    small, fault = shrink(TRIAL, Fault("query", "no"), _broken)
    assert small.sql == "SELECT coalesce(s, 'b') AS c0 FROM m"
    assert [r["i"] for r in small.world.rows("m")] == [3]
    assert fault.words == "no"


def test_another_fault_is_not_the_same() -> None:
    small, _ = shrink(TRIAL, Fault("kernels", "no"), _broken)
    assert small == TRIAL


def test_expressions_shrink_to_what_is_below_them() -> None:
    sum_of = operations.arithmetic("+", "DOUBLE", "INT")
    node = Apply(sum_of, (Apply(sum_of, (column("d", "DOUBLE"), INT)), number(1)))
    texts = [type(n).__name__ for n in smaller_expressions(node)]
    assert texts == ["Apply", "Apply"]


def test_every_drawn_case_can_be_made_smaller() -> None:
    for index in range(60):
        trial = draw_trial("shrink", index)
        seen: list[str] = []

        def anything(smaller: Trial, seen: list[str] = seen) -> Fault | None:
            seen.append(smaller.sql)
            return Fault("query", "no")

        shrink(replace(trial, world=world()), Fault("query", "no"), anything)
        assert not seen or len(seen[-1]) <= len(trial.sql)


def test_the_report_is_a_file_of_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "found.test"
    path.write_text(corpus_text(TRIAL, Fault("query", "two\nlines")), encoding="utf-8")
    *_, record = read(path)
    assert record.sql == TRIAL.sql
    assert record.context.timezone == "Europe/Berlin"
    assert isinstance(record.expected, Rows)
    assert record.expected.types == "IT"
    assert record.expected.rows[4] == ("3", "b")
    assert len(record.expected.rows) == 8
