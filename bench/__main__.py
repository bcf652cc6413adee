"""`python -m bench [--only spine|windows] [--profile full|short|quick]`."""

from __future__ import annotations

import argparse
import signal
import sys

from bench.profile import PROFILES
from bench.suite import SUITES, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="measure Penstock beside plain Spark"
    )
    parser.add_argument("--only", choices=sorted(SUITES), default="")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="full")
    parser.add_argument(
        "--quick",
        action="store_const",
        dest="profile",
        const="quick",
        help="short runs, for work on the bench itself",
    )
    parser.add_argument(
        "--part", default="", help="only parts of a suite whose name starts so; several with commas"
    )
    given = parser.parse_args()
    if given.part and not given.only:
        parser.error(f"--part names parts of one suite: add --only, one of {', '.join(SUITES)}")
    # asked to stop: take the mesh down and keep the lines so far
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    raise SystemExit(run(given.only, PROFILES[given.profile], given.part))
