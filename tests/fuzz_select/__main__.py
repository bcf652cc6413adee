"""`make fuzz-select [SEED=TEXT] [CASES=N] [OUT=FILE]`: random SELECTs over random rows.

Each case is asked of a store, of the kernels where windows of it are DuckDB's, and of the
expressions of streams; plain Python says what is right. One that fails is shrunk and written as a
file of the corpus. A seed names a run for good.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz_select.batch import try_batch
from tests.fuzz_select.trial import BATCH

_PROCESSES = 2


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
    # polars has begun threads here, and forked ones would never run
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as pool:
        tried = pool.map(try_batch, [given.seed] * len(batches), batches)
        failed = [text for texts in tried for text in texts]
    if failed:
        given.out.write_text("\n".join(failed))
        print("\n".join(failed))
        print(f"written to {given.out}; a paragraph of it belongs into a file of tests/sql")
    print(f"seed {given.seed}: {given.cases - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
