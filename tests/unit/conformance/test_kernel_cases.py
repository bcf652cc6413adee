"""The conformance cases on the windows package alone; also cut into batches at random, saved and
restored on the way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.case import Case, load
from tests.conformance.compare import judge
from tests.conformance.kernel_backend import KernelBackend
from tests.nightly import drawn

FILES = sorted((Path(__file__).parents[2] / "conformance").glob("*.json"))
CASES = [case for path in FILES for case in load(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_case(case: Case) -> None:
    assert judge(case, KernelBackend().run(case)) == []


@pytest.mark.parametrize("seed", range(drawn(2)))
def test_cut_at_random(seed: int) -> None:
    backend = KernelBackend(split=seed)
    every = max(len(CASES) // drawn(len(CASES)), 1)
    faults = {case.id: judge(case, backend.run(case)) for case in CASES[::every]}
    assert {name: fault for name, fault in faults.items() if fault} == {}
