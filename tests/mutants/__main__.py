"""`make mutants [ONLY=TARGET] [MINUTES=N] [SEED=TEXT] [OUT=FILE]`: do the tests notice small faults?

Each target of `tests/mutants/targets.py` gets its part of the time. As many mutants as fit into it
are drawn at random and tried one by one in copies of the checkout, one copy for each core. A seed
names the order of the mutants for good. Survivors are written as diffs: most of them are tests that
somebody forgot. The command fails when a target's tests kill fewer than its floor.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tests.mutants.find import Mutant, drawn, mutants_of
from tests.mutants.targets import TARGETS, Target
from tests.mutants.tree import Baseline, Tree, in_order
from tests.mutants.verdict import Outcome, Tally

_CHECKOUT = Path(__file__).parents[2]
#: times as long as the tests take without a mutant, and seconds more, before they count as hanging
_PATIENCE = 3
_PATIENCE_SECONDS = 60


class Trial:
    """The mutants of one target, tried until the time is over."""

    def __init__(self, target: Target, seed: str) -> None:
        self.tests = target.test_files(_CHECKOUT)
        self.texts = {
            path: (_CHECKOUT / path).read_text() for path in target.source_files(_CHECKOUT)
        }
        found = [mutant for path, text in self.texts.items() for mutant in mutants_of(path, text)]
        self.tally = Tally(target.name, target.floor, len(found))
        self.survivors: list[Mutant] = []
        #: tests that fail without a mutant
        self.failing: tuple[str, ...] = ()
        self._order = iter(drawn(found, f"{seed}/{target.name}"))
        self._lock = Lock()

    def run(self, trees: list[Tree], until: float) -> None:
        """Try mutants, one in each tree at a time, until the monotonic clock shows *until*."""
        with ThreadPoolExecutor(len(trees)) as pool:
            # all at once: the machine is then as busy as it will be with mutants
            baselines = list(pool.map(lambda tree: tree.baseline(self.tests), trees))
            slowest = max(baselines, key=lambda one: one.seconds)
            self.failing = tuple(sorted({test for one in baselines for test in one.failing}))
            self._say(f"{slowest.seconds:.0f} s without a mutant")
            for test in self.failing:
                self._say(f"left out, as it fails without a mutant: {test}")
            list(pool.map(lambda tree: self._work(tree, slowest, until), trees))

    def _work(self, tree: Tree, baseline: Baseline, until: float) -> None:
        limit = _PATIENCE * baseline.seconds + _PATIENCE_SECONDS
        while time.monotonic() < until and (found := self._next()) is not None:
            mutant, code = found
            tests = in_order(self.tests, mutant.path, baseline.file_seconds)
            started = time.monotonic()
            with tree.mutated(mutant.path, code):
                outcome = tree.outcome(tests, self.failing, limit)
            self._add(mutant, outcome, time.monotonic() - started)

    def _next(self) -> tuple[Mutant, str] | None:
        with self._lock:
            for mutant in self._order:
                if (code := mutant.code(self.texts[mutant.path])) is not None:
                    return mutant, code
                self.tally.mutants -= 1
        return None

    def _add(self, mutant: Mutant, outcome: Outcome, seconds: float) -> None:
        with self._lock:
            self.tally.add(outcome)
            if outcome is Outcome.SURVIVED:
                self.survivors.append(mutant)
            self._say(f"{self.tally.tried}: {outcome.value} after {seconds:.0f} s: {mutant}")

    def _say(self, text: str) -> None:
        print(f"{self.tally.name} {text}", flush=True)


def main() -> int:
    """The command; 1 when a target is under its floor or tests fail without a mutant."""
    given = _arguments()
    targets = [target for target in TARGETS if given.only in (None, target.name)]
    ends = time.monotonic() + 60 * given.minutes
    trials = []
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-mutants-") as scratch:
        trees = [Tree(_CHECKOUT, Path(scratch, str(i))) for i in range(os.cpu_count() or 1)]
        for i, target in enumerate(targets):
            trial = Trial(target, given.seed)
            now = time.monotonic()
            # what one leaves of its part, the others get
            trial.run(trees, now + (ends - now) / (len(targets) - i))
            trials.append(trial)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text("".join(m.diff(t.texts[m.path]) for t in trials for m in t.survivors))
    for trial in trials:
        print(trial.tally)
    print(f"survivors are in {given.out}")
    return int(any(trial.failing or not trial.tally.holds for trial in trials))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--only", choices=[target.name for target in TARGETS])
    parser.add_argument("--minutes", type=float, default=60, help="for all targets together")
    parser.add_argument(
        "--seed",
        default=f"{datetime.now(UTC):%Y%m%d}",
        help="names the order; the date if left out",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/mutants.diff"), help="where survivors go, as diffs"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
