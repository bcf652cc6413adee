"""`make test-faults [ONLY=federation]`: what must hold while things break."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.faults import federation

SUITES: dict[str, Callable[[int, Path], bool]] = {"federation": federation.run}


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.faults", description=__doc__)
    parser.add_argument("--only", choices=sorted(SUITES), help="one suite; default: all")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(".penstock/faults"), help="where logs are left")
    given = parser.parse_args()
    good = [suite(given.rounds, given.out / name) for name, suite in SUITES.items() if given.only in (None, name)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
