"""Finds the mutants of a file, draws a sample of them, and makes one."""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.equivalent import same_behaviour
from tests.mutants.operators import Position, operators


@dataclass(frozen=True)
class Mutant:
    """The *occurrence*-th place in a file where an operator can change something."""

    path: str
    operator: str
    occurrence: int
    start: Position

    def code(self, original: str) -> str | None:
        """Return the file's text with the change made.

        None when the change says nothing about tests: the result does not compile, or differs only
        in what nothing depends on.
        """
        mutated = mutate_code(original, operators()[self.operator], self.occurrence)
        if mutated is None or same_behaviour(original, mutated):
            return None
        return str(mutated)

    def diff(self, original: str) -> str:
        """Return the change in the unified format."""
        lines = difflib.unified_diff(
            original.splitlines(),
            (self.code(original) or original).splitlines(),
            f"a/{self.path}",
            f"b/{self.path}",
            lineterm="",
        )
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return f"{self.path}:{self.start[0]}:{self.start[1] + 1} {self.operator}"


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Return all mutants of a file."""
    nodes = list(ast_nodes(get_ast(text)))
    return [
        Mutant(path, name, occurrence, start)
        for name, operator in operators().items()
        for occurrence, (start, _) in enumerate(
            position for node in nodes for position in operator.mutation_positions(node)
        )
    ]


def drawn(mutants: Iterable[Mutant], seed: str) -> list[Mutant]:
    """Return all mutants in an order that *seed* names.

    However few are taken from the front, they are a fair sample of the places: one mutant of each
    place comes before the second of any.
    """
    shuffled = list(mutants)
    random.Random(seed).shuffle(shuffled)
    seen: Counter[tuple[str, Position]] = Counter()
    turns = []
    for mutant in shuffled:
        place = (mutant.path, mutant.start)
        turns.append((seen[place], mutant))
        seen[place] += 1
    return [mutant for _, mutant in sorted(turns, key=lambda turn: turn[0])]
