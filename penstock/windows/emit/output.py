"""What one call of a kernel has made so far, in order, and how it becomes an emission.

The last station of every kernel's results: it knows nothing of windows. Results come from
`Results`, and of several lines for one target row the last stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from penstock.windows.assign.events import Order
from penstock.windows.emit.result import Made
from penstock.windows.kernel import Emission


@dataclass
class EmissionBuffer:
    """Collects what a call makes."""

    #: not empty, each of them
    made: list[Made] = field(default_factory=list)
    #: whether one of them may name a target row twice
    repeats: bool = False
    events: list[tuple[Order, dict[str, object]]] = field(default_factory=list)
    late: list[pl.DataFrame] = field(default_factory=list)
    failed: list[pl.DataFrame] = field(default_factory=list)

    def put(self, made: Made) -> None:
        """Take result rows, and what could not be made."""
        if made.rows.height:
            self.made.append(made)
        self.fail(made.failed)

    def fail(self, rows: pl.DataFrame | None) -> None:
        """Take rows on which an expression failed; None: there are none."""
        if rows is not None:
            self.failed.append(rows)

    def emission(self, identity: Sequence[str]) -> Emission:
        """Return all of it; *identity*: the columns that tell target rows from each other."""
        rows: pl.DataFrame | None = None
        hashes: pl.Series | None = None
        if len(self.made) == 1 and not self.repeats:
            rows = self.made[0].rows
            hashes = self.made[0].hashes
        elif self.made:
            rows = _last_of_each([m.rows for m in self.made], identity)
        return Emission(
            rows=rows,
            events=[event for _, event in sorted(self.events, key=lambda e: e[0])],
            late=pl.concat(self.late) if self.late else None,
            failed=pl.concat(self.failed, how="diagonal") if self.failed else None,
            hashes=hashes,
        )


def joined(emissions: Sequence[Emission], identity: Sequence[str]) -> Emission:
    """Return the emissions of several calls as one."""

    def given(frames: list[pl.DataFrame | None]) -> list[pl.DataFrame]:
        return [frame for frame in frames if frame is not None]

    rows = given([e.rows for e in emissions])
    # a table may have got columns between two calls
    late = given([e.late for e in emissions])
    failed = given([e.failed for e in emissions])
    return Emission(
        rows=_last_of_each(rows, identity) if rows else None,
        events=[event for e in emissions for event in e.events],
        late=pl.concat(late, how="diagonal") if late else None,
        failed=pl.concat(failed, how="diagonal") if failed else None,
    )


def _last_of_each(rows: Sequence[pl.DataFrame], identity: Sequence[str]) -> pl.DataFrame:
    return pl.concat(rows).unique(subset=identity, keep="last", maintain_order=True)
