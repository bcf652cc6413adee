"""`python -m services.federation`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from services.federation.app import run
from services.federation.settings import FederationSettings

if __name__ == "__main__":
    sys.exit(run(FederationSettings.from_command_line()))
