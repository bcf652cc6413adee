"""What counts as changed: against the last commit, or the one before when nothing differs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.affected.changes import Changes, changes


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path, "kept.py", "old.py", "gone.py")
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True)


def commit(root: Path, *names: str) -> None:
    for name in names:
        (root / name).write_text(f"# {name}\n" * 9)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=more")


def test_changed_staged_new_renamed_and_deleted_files(checkout: Path) -> None:
    commit(checkout, "staged.py")
    (checkout / "kept.py").write_text("1\n")
    (checkout / "staged.py").write_text("2\n")
    git(checkout, "add", "staged.py")
    (checkout / "gone.py").unlink()
    git(checkout, "mv", "old.py", "new.py")
    (checkout / "nämlich so.md").write_text("\n")
    assert changes(checkout) == Changes(
        "HEAD", ("gone.py", "kept.py", "new.py", "nämlich so.md", "old.py", "staged.py")
    )


def test_ignored_files_do_not_count(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("*.log\n")
    (checkout / "x.log").write_text("\n")
    assert changes(checkout).paths == (".gitignore",)


def test_after_a_commit_its_files_count(checkout: Path) -> None:
    commit(checkout, "later.py")
    assert changes(checkout) == Changes("HEAD^", ("later.py",))


def test_the_first_commit_has_none_before_it(checkout: Path) -> None:
    assert changes(checkout) == Changes("HEAD", ())


def test_all_since_a_commit_that_is_named(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "branch")
    commit(checkout, "a.py")
    commit(checkout, "b.py")
    (checkout / "c.py").write_text("\n")
    assert changes(checkout, "main") == Changes("main", ("a.py", "b.py", "c.py"))


def test_a_commit_that_is_not_there_is_an_error(checkout: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        changes(checkout, "nowhere")
