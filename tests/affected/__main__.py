"""`make check [SINCE=COMMIT]`: run the unit tests that a change can break, nearest first.

Hundreds of files of tests reach a module that everything imports. Then only the nearest run, and
the last line says how many did not: `make unit` runs all, and so does CI.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.affected.changes import Changes, changes
from tests.affected.choice import Choice, choose
from tests.affected.reach import read

_ROOT = Path(__file__).parents[2]
#: files of tests that fit into a minute beside lint and types, on two slow cores
_MOST = 40
#: fewer files are done before a second process has started
_FEW = 4
_WORKERS = 2
#: what pytest ends with when no test is left after `-m`
_NO_TESTS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.affected", description=__doc__)
    parser.add_argument("--since", help="commit to compare with, for example main")
    parser.add_argument("--most", type=int, default=_MOST, help="files of tests to run at most")
    parser.add_argument("--list", action="store_true", help="print the files and run nothing")
    given = parser.parse_args()
    changed = changes(_ROOT, given.since)
    reach = read(_ROOT)
    choice = choose(reach.steps_to(changed.paths), changed.paths, given.most)
    if given.list:
        print("\n".join(choice.files))
        return 0
    print(_sentence(changed, choice, len(reach.test_files)), flush=True)
    status = _run(choice.files) if choice.files else 0
    if choice.left_out:
        print(f"{choice.left_out} files of tests further away did not run; `make unit` runs all")
    return status


def _sentence(changed: Changes, choice: Choice, total: int) -> str:
    reached = len(choice.files) + choice.left_out
    files = "file" if len(changed.paths) == 1 else "files"
    return (
        f"unit tests: {len(changed.paths)} {files} changed since {changed.since}; "
        f"{reached} of {total} files of tests reach them, the nearest {len(choice.files)} run"
    )


def _run(files: tuple[str, ...]) -> int:
    workers = ["-n", str(_WORKERS)] if len(files) > _FEW else []
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *workers, *files]
    status = subprocess.run(command, cwd=_ROOT).returncode
    return 0 if status == _NO_TESTS else status


if __name__ == "__main__":
    sys.exit(main())
