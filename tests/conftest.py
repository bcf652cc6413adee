"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# how long an example takes says more about the machine's other work than about the code
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
