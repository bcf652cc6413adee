"""Tests run in a copy, where a file may change for a while; the checkout stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants.tree import Tree, in_order
from tests.mutants.verdict import Outcome

LARGER = "def larger(a, b):\n    return a if a > b else b\n"
TESTS = """\
from larger import larger

def test_larger():
    assert larger(1, 2) == larger(2, 1) == 2

def test_wrong_already():
    assert larger(1, 2) == 1
"""
FAILING = "test_larger.py::test_wrong_already"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "larger.py").write_text(LARGER)
    (root / "test_larger.py").write_text(TESTS)
    (root / ".gitignore").write_text("/ignored\n")
    (root / "ignored").write_text("large")
    # registers what tests/conftest.py of this repository does
    (root / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('mutants')\n"
    )
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


@pytest.fixture
def tree(checkout: Path, tmp_path: Path) -> Tree:
    return Tree(checkout, tmp_path / "copy")


def test_a_copy_has_all_but_what_git_ignores(tree: Tree) -> None:
    assert (tree.root / "larger.py").read_text() == LARGER
    assert not (tree.root / "ignored").exists()


def test_the_baseline_names_what_fails_without_a_mutant(tree: Tree) -> None:
    baseline = tree.baseline(["test_larger.py"])
    assert baseline.failing == (FAILING,)
    assert set(baseline.file_seconds) == {"test_larger.py"}
    assert baseline.seconds > 0


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (LARGER.replace(">", "<"), Outcome.KILLED),
        (LARGER.replace(">", ">="), Outcome.SURVIVED),
        ("while True: pass\n", Outcome.TIMED_OUT),
        ("import os\nos.abort()\n", Outcome.KILLED),
        ("import nowhere\n", Outcome.KILLED),
    ],
)
def test_outcomes(tree: Tree, checkout: Path, code: str, outcome: Outcome) -> None:
    limit = 5 if outcome is Outcome.TIMED_OUT else 120
    with tree.mutated("larger.py", code):
        assert tree.outcome(["test_larger.py"], [FAILING], limit) is outcome
    assert (tree.root / "larger.py").read_text() == LARGER
    assert (checkout / "larger.py").read_text() == LARGER


def test_no_tests_at_all_are_an_error_and_no_death(tree: Tree) -> None:
    with pytest.raises(RuntimeError, match="pytest ended with 4"):
        tree.outcome(["test_gone.py"], [], 120)


def test_tests_called_after_the_file_come_first_then_quick_ones() -> None:
    tests = ["t/test_a.py", "t/test_b.py", "t/test_cut.py"]
    seconds = {"t/test_a.py": 9.0, "t/test_b.py": 1.0, "t/test_cut.py": 20.0}
    assert in_order(tests, "penstock/windows/assign/cut.py", seconds) == [
        "t/test_cut.py",
        "t/test_b.py",
        "t/test_a.py",
    ]
