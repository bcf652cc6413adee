"""A test is reached by what it imports, names and opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.affected.reach import Reach, read, read_tests

SOURCES = {
    "engine": set[str](),
    "engine.errors": set[str](),
    "engine.parser": {"engine.errors"},
    "engine.planner": {"engine.parser"},
    "engine.sub": {"engine.sub.part"},
    "engine.sub.part": set[str](),
    "service": set[str](),
    "service.app": {"engine.planner"},
}


def add(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def steps(root: Path, *paths: str) -> dict[str, int]:
    found = Reach(SOURCES, read_tests(root, set(SOURCES))).steps_to(paths)
    return {path.removeprefix("tests/unit/"): count for path, count in found.items()}


def test_over_imports_with_the_steps_between(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_errors.py", "from engine import errors, other\n")
    add(tmp_path, "tests/unit/test_planner.py", "import engine.planner\n")
    add(
        tmp_path, "tests/unit/test_app.py", "def test() -> None:\n    from service.app import run\n"
    )
    add(tmp_path, "tests/unit/test_sub.py", "from engine.sub.part import x\n")
    assert steps(tmp_path, "engine/errors.py") == {
        "test_errors.py": 1,
        "test_planner.py": 3,
        "test_app.py": 4,
    }
    assert steps(tmp_path, "service/app.py") == {"test_app.py": 1}
    assert steps(tmp_path, "service/app.py", "engine/sub/part.py").keys() == {
        "test_app.py",
        "test_sub.py",
    }


def test_a_package_is_imported_with_each_of_its_modules(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_sub.py", "from engine.sub.part import x\n")
    add(tmp_path, "tests/unit/test_app.py", "import service.app\n")
    assert steps(tmp_path, "engine/sub/__init__.py") == {"test_sub.py": 1}
    # service.app imports engine.planner, and with it engine
    assert steps(tmp_path, "engine/__init__.py") == {"test_sub.py": 1, "test_app.py": 2}


@pytest.mark.parametrize(
    "text",
    [
        "from engine import (\n    planner,\n    parser as p,\n)\n",
        "def test(monkeypatch):\n    monkeypatch.setattr('engine.parser.parse', None)\n",
        "COMMAND = [python, '-m', 'engine.parser']\n",
        'CODE = "import sys; from engine import parser; parser.parse(1)"\n',
    ],
)
def test_imports_over_lines_and_names_in_strings(tmp_path: Path, text: str) -> None:
    add(tmp_path, "tests/unit/test_it.py", text)
    assert steps(tmp_path, "engine/parser.py") == {"test_it.py": 1}


def test_what_tests_share(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/sql/kit.py", "from engine import parser\n")
    add(tmp_path, "tests/unit/sql/deep/more.py", "from ..kit import parse\n")
    add(tmp_path, "tests/unit/sql/test_a.py", "from .kit import parse\n")
    add(tmp_path, "tests/unit/sql/test_b.py", "from . import kit\n")
    add(tmp_path, "tests/unit/test_c.py", "from tests.unit.sql.deep.more import parse\n")
    add(tmp_path, "tests/stack/test_d.py", "from tests.unit.sql.kit import parse\n")
    found = {"sql/test_a.py": 1, "sql/test_b.py": 1, "test_c.py": 2}
    assert steps(tmp_path, "tests/unit/sql/kit.py") == found
    assert steps(tmp_path, "engine/parser.py") == {path: n + 1 for path, n in found.items()}


def test_a_test_reaches_itself(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_a.py")
    add(tmp_path, "tests/unit/test_b.py")
    assert steps(tmp_path, "tests/unit/test_a.py") == {"test_a.py": 0}


def test_fixtures_reach_all_tests_below(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/sql/conftest.py")
    add(tmp_path, "tests/unit/sql/test_a.py")
    add(tmp_path, "tests/unit/sql/deep/test_b.py")
    add(tmp_path, "tests/unit/test_c.py")
    assert steps(tmp_path, "tests/unit/sql/conftest.py").keys() == {
        "sql/test_a.py",
        "sql/deep/test_b.py",
    }


def test_data_belong_to_the_nearest_modules(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/sql/test_a.py")
    add(tmp_path, "tests/unit/sql/deep/test_b.py")
    add(tmp_path, "tests/unit/test_c.py", "from engine.sub.part import x\n")
    assert steps(tmp_path, "tests/unit/sql/corpus/select.txt") == {"sql/test_a.py": 0}
    assert steps(tmp_path, "engine/sub/schemas/row.avsc") == {"test_c.py": 1}


@pytest.mark.parametrize(
    "named",
    ["docs", "docs/", "docs/sql.md", "docs/*.md", "*.md", "sql.md"],
)
def test_files_that_a_test_opens(tmp_path: Path, named: str) -> None:
    add(
        tmp_path,
        "tests/unit/test_pages.py",
        f"ROOT = Path(__file__).parents[2]\nPAGE = '{named}'\n",
    )
    add(tmp_path, "tests/unit/test_words.py", f"WORD = '{named}'\n")
    assert steps(tmp_path, "docs/sql.md") == {"test_pages.py": 0}


@pytest.mark.parametrize("named", ["*", "*.txt", "do", "sql", "d", "docs/sq"])
def test_files_that_a_test_does_not_open(tmp_path: Path, named: str) -> None:
    add(
        tmp_path,
        "tests/unit/test_pages.py",
        f"ROOT = Path(__file__).parents[2]\nPAGE = '{named}'\n",
    )
    assert steps(tmp_path, "docs/sql.md") == {}


def test_a_page_inside_a_package_is_only_read_by_name(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_a.py", "import service.app\n")
    assert steps(tmp_path, "service/README.md") == {}


def test_the_environment_reaches_everything(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_a.py")
    assert steps(tmp_path, "requirements.lock") == {"test_a.py": 0}


def test_a_file_that_is_gone_and_a_file_that_nothing_knows(tmp_path: Path) -> None:
    add(tmp_path, "tests/unit/test_a.py", "from engine import parser\n")
    assert steps(tmp_path, "engine/removed.py", ".ci/run") == {}


def test_of_this_checkout() -> None:
    checkout = Path(__file__).parents[3]
    reach = read(checkout)
    assert "tests/unit/affected/test_reach.py" in reach.test_files
    pages = {"tests/unit/docs/test_links.py", "tests/unit/docs/test_reference.py"}
    assert reach.steps_to(["docs/operations.md"]).keys() >= pages
    assert "tests/unit/gateway/test_rights.py" in reach.steps_to(["gateway/rights.py"])
    # everything reports its errors with it
    assert len(reach.steps_to(["penstock/errors.py"])) > len(reach.test_files) / 2
