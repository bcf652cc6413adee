"""The command `penstock` of an installation that may be the client alone."""

from __future__ import annotations

import sys

from penstock import installed
from penstock.errors import EXIT_CONFIG, PenstockError


def main() -> None:
    """Run one command line. The exit status is 78 when the commands are not installed."""
    if sys.argv[1:] == ["--version"]:
        print(f"penstock {installed.version()}")
        return
    try:
        installed.require(installed.CLI, "cli")
    except PenstockError as missing:
        print(missing, file=sys.stderr)
        sys.exit(EXIT_CONFIG)
    from penstock.cli import main as run

    run()
