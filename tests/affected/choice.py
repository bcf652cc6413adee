"""Which of the affected tests fit into a check that takes a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """Files of tests to run, nearest first, and how many there are besides."""

    files: tuple[str, ...]
    left_out: int


def choose(steps: Mapping[str, int], changed: Iterable[str], most: int) -> Choice:
    """Return at most *most* files: those that changed themselves, then the nearest by *steps*.

    Of the files at the last distance, an even part of the list is taken. So all folders have their
    tests in it, and the same change always runs the same tests.
    """
    own = [path for path in sorted(changed) if path in steps]
    others = steps.keys() - set(own)
    chosen = list(own)
    for distance in sorted({steps[path] for path in others}):
        here = sorted(path for path in others if steps[path] == distance)
        chosen += _evenly(here, most - len(chosen))
    return Choice(tuple(chosen), len(steps) - len(chosen))


def _evenly(paths: list[str], count: int) -> list[str]:
    if count >= len(paths):
        return paths
    return [paths[place * len(paths) // count] for place in range(max(count, 0))]
