"""Named places where a process can be told to die, so that a race in a test is certain instead of
likely.

`PENSTOCK_SPARK_FAILPOINTS=after_produce:exit:3,mid_state_file:exit:1` = exit without a word the
third time *after_produce* is reached, and so on. A place counts over all processes that share the
counter directory: who takes the place of a dead one doesn't die again. `value:exit:TEXT` dies each
time at a record that holds TEXT: a record that kills.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.errors import ConfigError

PLACES = (
    "after_produce",
    "mid_state_file",
    "after_state",
    "before_commit",
    "mid_replay",
    "mid_settle",
    "before_publish",
)
EXIT_STATUS = 71


class Failpoints:
    """Parsed failpoints; empty in production, where `reach` costs one dictionary look-up."""

    def __init__(self, text: str = "", directory: str = "") -> None:
        self._at: dict[str, int] = {}
        self._deadly = b""
        self._directory = Path(directory)
        for item in filter(None, text.split(",")):
            place, _, rest = item.partition(":")
            action, _, count = rest.partition(":")
            if place == "value" and action == "exit" and count:
                self._deadly = count.encode()
                continue
            if place not in PLACES or action != "exit" or not (count or "1").isdigit():
                raise ConfigError(
                    f'failpoint "{item}" is not PLACE:exit:COUNT',
                    hint=f"places: {', '.join(PLACES)}",
                )
            self._at[place] = int(count or "1")

    def __bool__(self) -> bool:
        return bool(self._at)

    def scan(self, values: Sequence[bytes | None]) -> None:
        """Die when one of the records at work is deadly."""
        if self._deadly and any(self._deadly in v for v in values if v is not None):
            os._exit(EXIT_STATUS)

    def reach(self, place: str, before: Callable[[], None] = lambda: None) -> None:
        """Die here when it is time, and do what belongs *before* the death first."""
        if place in self._at and self._count(place) == self._at[place]:
            before()
            os._exit(EXIT_STATUS)

    def _count(self, place: str) -> int:
        """How often *place* was reached, in all processes: the size of a file that each visit makes
        one byte longer.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        with open(self._directory / f"failpoint-{place}", "ab") as counter:
            counter.write(b".")
            counter.flush()
            return counter.tell()
