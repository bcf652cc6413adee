"""`python -m services.tables`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from services.tables.app import run
from services.tables.settings import TablesSettings

if __name__ == "__main__":
    sys.exit(run(TablesSettings.from_command_line()))
