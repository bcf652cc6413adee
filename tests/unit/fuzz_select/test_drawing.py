"""What is drawn: the same for the same seed, everything that the fuzzer promises, and text that the
dialect's parser takes.
"""

from __future__ import annotations

import re

from penstock.sql.functions import REGISTRY
from penstock.sql.parser import parse_one
from tests.fuzz_select.operations import BY_RESULT
from tests.fuzz_select.printing import duration
from tests.fuzz_select.trial import draw_trial

TRIALS = [draw_trial("unit", number) for number in range(400)]
_CLAUSES = (
    "WHERE GROUP BY|PARTITION BY|HAVING|DISTINCT|UNION ALL|LIMIT|OFFSET|INNER JOIN|LEFT JOIN|"
    "RIGHT JOIN|FULL JOIN|CROSS JOIN|FROM (SELECT|IN (SELECT|EXISTS (SELECT|INTERVAL(|SLIDING(|"
    "SESSION(|STATE_WINDOW(|EVENT_WINDOW|COUNT_WINDOW(|TRUE_FOR(|CASE WHEN|BETWEEN|LIKE|IS NULL|"
    "NULLS FIRST|count(DISTINCT|percentile("
).removeprefix("WHERE ")


def test_a_seed_names_a_case_for_good() -> None:
    again = draw_trial("unit", 7)
    known = TRIALS[7]
    # NaN is not equal to itself
    assert (again.sql, again.zone, repr(again.world)) == (known.sql, known.zone, repr(known.world))
    assert draw_trial("other", 7).sql != again.sql


def test_every_clause_is_drawn() -> None:
    text = "\n".join(t.sql for t in TRIALS)
    assert [c for c in _CLAUSES.split("|") if c not in text] == []


def test_every_case_is_a_statement() -> None:
    for trial in TRIALS:
        parse_one(trial.sql)


def test_every_function_of_the_registry_can_be_drawn() -> None:
    text = "\n".join(o.text for made in BY_RESULT.values() for o in made)
    missing = REGISTRY.keys() - set(re.findall(r"(\w+)\(", text))
    # they are about the moment of the statement, or give JSON
    assert missing == {"now", "today", "to_json"}


def test_what_is_limited_is_ordered_by_every_column() -> None:
    for trial in TRIALS:
        if trial.query.limit is not None and not trial.refused:
            select = getattr(trial.query, "left", trial.query)
            assert len(trial.query.order) == len(select.items), trial.sql


def test_durations() -> None:
    assert [duration(n) for n in (250, 2000, 120_000, 7_200_000, 86_400_000)] == [
        "250a",
        "2s",
        "2m",
        "2h",
        "1d",
    ]
