"""`python -m services.notifier`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from services.notifier.app import run
from services.notifier.settings import NotifierSettings

if __name__ == "__main__":
    sys.exit(run(NotifierSettings.from_command_line()))
