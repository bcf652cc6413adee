"""What holds for every test."""

from __future__ import annotations

from hypothesis import Phase, settings

from tests.nightly import NIGHTLY, drawn

# how long an example takes says more about the machine's other work than about the code; what CI
# runs is the same every time, so that it tells what a change did, and `make nightly` looks for new
# examples
settings.register_profile(
    "penstock", max_examples=drawn(100), deadline=None, derandomize=not NIGHTLY
)
# a mutant is dead by any failure, however small its example might be made
settings.register_profile(
    "mutants", settings.get_profile("penstock"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("penstock")
