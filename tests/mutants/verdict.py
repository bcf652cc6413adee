"""Counts what became of mutants, and says whether a target's tests hold its floor."""

from __future__ import annotations

import math
from collections import Counter
from enum import Enum

#: standard deviations below the floor that happen by chance in one run of twenty
_CHANCE = 1.645


class Outcome(Enum):
    """What the tests said to a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class Tally:
    """Outcomes of a sample of a target's mutants."""

    def __init__(self, name: str, floor: int, mutants: int) -> None:
        """
        Arguments that need a word:
            floor: percent.
            mutants: how many the target has; the sample may be smaller.
        """
        self.name = name
        self.floor = floor
        self.mutants = mutants
        self._seen: Counter[Outcome] = Counter()

    def add(self, outcome: Outcome) -> None:
        self._seen[outcome] += 1

    @property
    def tried(self) -> int:
        return self._seen.total()

    @property
    def rate(self) -> float:
        """Percent of the tried mutants that a test noticed: one that makes tests hang, too."""
        return 100 * (self.tried - self._seen[Outcome.SURVIVED]) / max(self.tried, 1)

    @property
    def needed(self) -> float:
        """The rate that this sample must show.

        It is the floor less what chance does to a sample: tests that just hold the floor pass 19
        times of 20. The more mutants are tried, the closer it is to the floor, and when all of
        them are, it is the floor.
        """
        if self.tried >= self.mutants:
            return float(self.floor)
        share = self.floor / 100
        left = (self.mutants - self.tried) / (self.mutants - 1)
        return self.floor - 100 * _CHANCE * math.sqrt(share * (1 - share) * left / self.tried)

    @property
    def holds(self) -> bool:
        """Whether there is nothing to object to. A target without a single mutant is no success."""
        return self.tried > 0 and self.rate >= self.needed

    def __str__(self) -> str:
        counts = ", ".join(f"{self._seen[outcome]} {outcome.value}" for outcome in Outcome)
        if not self.tried:
            return f"{self.name}: no mutant was tried"
        verdict = "holds" if self.holds else "UNDER"
        return (
            f"{self.name}: {self.tried} of {self.mutants} mutants: {counts}: {self.rate:.0f} %, "
            f"{verdict} its floor of {self.floor} % (a sample of this size needs {self.needed:.0f} %)"
        )
