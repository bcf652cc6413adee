"""Each target has sources and tests, whatever they are called by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.targets import TARGETS, Target

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_there_are_sources_and_tests(target: Target) -> None:
    for path in (*target.source_files(CHECKOUT), *target.test_files(CHECKOUT)):
        assert (CHECKOUT / path).is_file()
    assert 0 <= target.floor <= 100


def test_a_target_whose_files_are_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"penstock/lease\*\.py"):
        Target("t", ("penstock/lease*.py",), (), 0).source_files(tmp_path)
