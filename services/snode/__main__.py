"""`python -m services.snode`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from services.snode.app import run
from services.snode.settings import SnodeSettings

if __name__ == "__main__":
    sys.exit(run(SnodeSettings.from_command_line()))
