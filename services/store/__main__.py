"""`python -m services.store`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from services.store.app import run
from services.store.settings import StoreSettings

if __name__ == "__main__":
    sys.exit(run(StoreSettings.from_command_line()))
