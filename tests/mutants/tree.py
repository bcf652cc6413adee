"""A copy of the checkout that mutants are tried in; the checkout itself is never changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import psutil

from tests.mutants.verdict import Outcome

#: bytes that the tests of a mutant may take: one that never stops growing must not take the machine
_MEMORY = 8 << 30
#: what pytest ends with when all passed, and when it was asked for tests that are not there; with
#: anything else they failed, could not be imported, or the process died
_PASSED = 0
_NOTHING_TESTED = (4, 5)
_REPORT = "mutants-baseline.xml"


@dataclass(frozen=True)
class Baseline:
    """What the tests do without a mutant."""

    seconds: float
    #: of each file of tests
    file_seconds: dict[str, float]
    #: tests that fail already; they say nothing about a mutant
    failing: tuple[str, ...]


class Tree:
    """One copy; one mutant at a time."""

    def __init__(self, checkout: Path, root: Path) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=checkout,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (checkout / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, root / name)

    def baseline(self, tests: Sequence[str]) -> Baseline:
        """Run the tests as they are. This also leaves byte code behind that later runs load."""
        started = time.monotonic()
        # this family of reports names the file of each test
        self._pytest([*tests, f"--junitxml={_REPORT}", "-ojunit_family=xunit1"], None, {})
        seconds = time.monotonic() - started
        spent: dict[str, float] = defaultdict(float)
        failing = []
        for case in ElementTree.parse(self.root / _REPORT).iter("testcase"):
            file = case.attrib["file"]
            spent[file] += float(case.attrib["time"])
            if case.find("failure") is not None or case.find("error") is not None:
                failing.append(f"{file}::{case.attrib['name']}")
        return Baseline(seconds, spent, tuple(failing))

    def outcome(self, tests: Sequence[str], left_out: Sequence[str], limit: float) -> Outcome:
        """Run the tests, but for those *left_out*, until one fails or *limit* seconds are over."""
        # one failure is enough, and nobody needs a small example of it
        options = ["-x", "--hypothesis-profile=mutants", *(f"--deselect={t}" for t in left_out)]
        # the byte code of the tree is that of the files as they were
        status = self._pytest([*tests, *options], limit, {"PYTHONDONTWRITEBYTECODE": "1"})
        if status is None:
            return Outcome.TIMED_OUT
        return Outcome.SURVIVED if status == _PASSED else Outcome.KILLED

    def _pytest(
        self, arguments: Sequence[str], limit: float | None, more: dict[str, str]
    ) -> int | None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "POLARS_MAX_THREADS": "1",
            "PENSTOCK_EXAMPLES": "few",
            **more,
        }
        environment.pop("PENSTOCK_NIGHTLY", None)  # the same examples for every mutant
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
        with (self.root / "mutants.log").open("w+") as log:
            process = psutil.Popen(
                [*command, *arguments],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            process.rlimit(psutil.RLIMIT_DATA, (_MEMORY, _MEMORY))
            try:
                status = int(process.wait(limit))
            except psutil.TimeoutExpired:
                _kill(process)
                return None
            if status in _NOTHING_TESTED:
                log.seek(0)
                raise RuntimeError(f"pytest ended with {status}:\n{log.read()}")
        return status

    @contextmanager
    def mutated(self, path: str, code: str) -> Iterator[None]:
        """Have *code* in a file, and what was there before, with its old time, afterwards."""
        file = self.root / path
        kept = file.with_suffix(".before-the-mutant")
        shutil.copy2(file, kept)
        file.write_text(code)
        try:
            yield
        finally:
            kept.replace(file)


def _kill(process: psutil.Process) -> None:
    for one in [*process.children(recursive=True), process]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def in_order(tests: Sequence[str], path: str, seconds: dict[str, float]) -> list[str]:
    """Return *tests* as they are likely to notice a mutant of *path* soonest: those called after
    the file, then quick ones.
    """
    called = f"test_{Path(path).stem}.py"
    return sorted(tests, key=lambda test: (Path(test).name != called, seconds.get(test, 0.0), test))
