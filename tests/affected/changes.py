"""Which files of a checkout differ from a commit, as git says it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Changes:
    """Files that changed, by their paths from the root, and the commit that they are compared to."""

    since: str
    paths: tuple[str, ...]


def changes(root: Path, since: str | None = None) -> Changes:
    """Return what changed since a commit: *since*, or the last one, or the one before it.

    The commit before the last one is taken when nothing differs from the last one. So the check
    says the same before and after `git commit`.
    """
    if since is not None:
        return Changes(since, _differing(root, since))
    return _since_last(root, "HEAD") or _since_last(root, "HEAD^") or Changes("HEAD", ())


def _since_last(root: Path, since: str) -> Changes | None:
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", since], cwd=root, capture_output=True
    )
    paths = _differing(root, since) if known.returncode == 0 else ()
    return Changes(since, paths) if paths else None


def _differing(root: Path, since: str) -> tuple[str, ...]:
    # a file that was renamed is one that is gone and one that is new: importers of both may break
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", since, "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return tuple(sorted({*differing, *new}))


def _git(root: Path, *arguments: str) -> list[str]:
    made = subprocess.run(
        ["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True
    )
    return [name for name in made.stdout.split("\0") if name]
