"""Mistakes that are put into SELECTs."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz_select.engines import RandomStore
from tests.fuzz_select.mistakes import spoil
from tests.fuzz_select.tree import Select, TableSource
from tests.fuzz_select.trial import Trial, judge
from tests.unit.fuzz_select.kit import column, row, world

QUERY = Select((column("s", "VARCHAR"),), TableSource("m", "m"))
WORLD = world(row("a", 0, i=1))


def test_each_is_refused_with_its_code(tmp_path: Path) -> None:
    store = RandomStore(WORLD, tmp_path)
    codes = set()
    for number in range(60):
        query, code = spoil(random.Random(number), QUERY)
        assert judge(Trial("unit", query, "UTC", WORLD, code), store) is None
        codes.add(code)
    assert len(codes) == 7


def test_an_answer_and_another_code_are_faults(tmp_path: Path) -> None:
    store = RandomStore(WORLD, tmp_path)
    answered = judge(Trial("unit", QUERY, "UTC", WORLD, "E_TYPE"), store)
    assert answered is not None and answered.engine == "answered"
    wrong = Select((column("nowhere"),), QUERY.source)
    refused = judge(Trial("unit", wrong, "UTC", WORLD, "E_TYPE"), store)
    assert refused is not None and refused.engine == "error E_UNKNOWN_COLUMN"
