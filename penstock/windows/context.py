"""What the kernels of one process have in common: numbers of tables, and answers about the rows of
a call.

Whoever runs several kernels makes one context and gives it to all of them; a kernel that is made
without gets one of its own. Nothing of it is saved.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from penstock.windows.groups.table_names import TableNames

T = TypeVar("T")


class SharedAnswers:
    """What streams find out about the rows that they are all given, by what was asked; for each
    thread its own.
    """

    def __init__(self) -> None:
        self._mine = threading.local()

    @contextlib.contextmanager
    def among(self, rows: pl.DataFrame, streams: int = 1) -> Iterator[None]:
        """Inside, what one of so many *streams* finds out about *rows* is there for the next."""
        self._mine.rows = rows
        self._mine.answers = {}
        self._mine.streams = streams
        try:
            yield
        finally:
            self._mine.rows = None
            self._mine.answers = {}

    def streams(self, rows: pl.DataFrame) -> int:
        """How many streams are given these *rows*; 1 where nothing is shared."""
        return self._mine.streams if getattr(self._mine, "rows", None) is rows else 1

    def get(self, rows: pl.DataFrame, question: Hashable, make: Callable[[], T]) -> T:
        """The answer of who asked first the same *question* of the same *rows*."""
        if getattr(self._mine, "rows", None) is not rows:
            return make()
        answers: dict[Hashable, T] = self._mine.answers
        if question not in answers:
            answers[question] = make()
        return answers[question]


@dataclass(frozen=True)
class KernelContext:
    """What kernels share."""

    tables: TableNames = field(default_factory=TableNames)
    answers: SharedAnswers = field(default_factory=SharedAnswers)
