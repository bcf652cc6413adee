"""`python -m tests.conformance CASES [--backend kernel|stack] [--out FILE] [--split SEED] [--kill
N] [--every N] [--without TEXT]`.
"""

from __future__ import annotations

import argparse
import json
import sys
from decimal import Decimal
from pathlib import Path

from tests.conformance.backends import open_backend
from tests.conformance.case import load
from tests.conformance.compare import judge


def plain(value: object) -> float | str:
    """Write a DECIMAL as a number as the cases do; all else that JSON does not know as text."""
    return float(value) if isinstance(value, Decimal) else str(value)


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print each failure and the closing count."""
    parser = argparse.ArgumentParser(prog="tests.conformance")
    parser.add_argument("file", type=Path, nargs="?", metavar="CASES")
    parser.add_argument("--cases", type=Path, help="the same")
    parser.add_argument("--backend", choices=("kernel", "stack"), default="kernel")
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--split", type=int, help="kernel: cut the input into batches at random, with this seed"
    )
    parser.add_argument(
        "--kill",
        type=int,
        default=0,
        help="stack: kill the driver so often while 24 cases are half fed, group by group",
    )
    parser.add_argument("--every", type=int, default=1, help="run only every so-manyth case")
    parser.add_argument("--without", help="leave out cases whose id has this text in it")
    parser.add_argument("--only", action="append", help="run just these cases")
    options = parser.parse_args(arguments)
    path = options.file or options.cases
    if path is None:
        parser.error("which CASES?")
    cases = [c for c in load(path) if not options.only or c.id in options.only]
    cases = [c for c in cases if not options.without or options.without not in c.id][
        :: options.every
    ]
    outcomes = []
    failed = 0
    backend = open_backend(options.backend, split=options.split, kill=options.kill, cases=cases)
    try:
        for case in cases:
            outcome = backend.run(case)
            outcomes.append(outcome)
            faults = judge(case, outcome)
            failed += bool(faults)
            for fault in faults:
                print(f"FAILED {case.id}: {fault}")
    finally:
        backend.close()
    if options.out:
        options.out.write_text(json.dumps([o.to_json() for o in outcomes], indent=1, default=plain))
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
