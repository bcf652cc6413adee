"""`make fuzz-select [SEED=TEXT] [CASES=N] [OUT=FILE]`: random SELECTs over random rows.

Each case is asked of a store, of the kernels where windows of it are DuckDB's, and of the
expressions of streams; plain Python says what is right. One that fails is shrunk and written as a
file of the corpus. A seed names a run for good.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from tests.fuzz_select.engines import RandomStore
from tests.fuzz_select.report import corpus_text
from tests.fuzz_select.shrink import shrink
from tests.fuzz_select.trial import BATCH, Fault, Trial, draw_trial, judge

_PROCESSES = 2


def _judge_or_nothing(trial: Trial) -> Fault | None:
    """Judge a smaller case; one whose tree makes no sense has no fault."""
    try:
        return judge(trial)
    except (KeyError, IndexError, AssertionError, TypeError, ValueError):
        return None


def _try(seed: str, numbers: range) -> list[str]:
    """Return texts of the cases that fail, shrunk."""
    trials = [draw_trial(seed, number) for number in numbers]
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        store = RandomStore(trials[0].world, Path(directory))
        for trial in trials:
            fault = judge(trial, store)
            if fault is not None:
                failed.append(corpus_text(*shrink(trial, fault, _judge_or_nothing)))
    return failed


def main() -> int:
    """Run the cases; 1 when one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz-select")
    parser.add_argument(
        "--seed", default=f"{datetime.now(UTC):%Y%m%d}", help="names the run; the date if not given"
    )
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument(
        "--out", type=Path, default=Path("fuzz-select.test"), help="where failing cases go"
    )
    given = parser.parse_args()
    batches = [range(i, min(i + BATCH, given.cases)) for i in range(0, given.cases, BATCH)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        tried = pool.map(_try, [given.seed] * len(batches), batches)
        failed = [text for texts in tried for text in texts]
    if failed:
        given.out.write_text("\n".join(failed))
        print("\n".join(failed))
        print(f"written to {given.out}; a paragraph of it belongs into a file of tests/sql")
    print(f"seed {given.seed}: {given.cases - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
