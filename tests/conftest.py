"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# how long an example takes says more about the machine's other work than about the code; what CI runs is the same every time,
# so that it tells what a change did, and `make nightly` looks for new examples
settings.register_profile("penstock", deadline=None, derandomize=not os.environ.get("PENSTOCK_NIGHTLY"))
settings.load_profile("penstock")
