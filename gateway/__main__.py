"""`python -m gateway`."""

from __future__ import annotations

import sys

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from gateway.app import run
from gateway.settings import GatewaySettings

if __name__ == "__main__":
    sys.exit(run(GatewaySettings.from_command_line()))
