"""What one call of a kernel has made so far, in order, and how it becomes an emission."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from penstock.windows.events import Order
from penstock.windows.kernel import Emission


@dataclass
class EmissionBuffer:
    """What a call has made so far, in order."""

    rows: list[pl.DataFrame] = field(default_factory=list)
    #: whether one of them may name a target row twice
    repeats: bool = False
    events: list[tuple[Order, dict[str, object]]] = field(default_factory=list)
    late: list[pl.DataFrame] = field(default_factory=list)
    failed: list[pl.DataFrame] = field(default_factory=list)

    def emission(self, identity: list[str]) -> Emission:
        """The call's emission: of several lines for one target row the last."""
        rows = self.rows[0] if self.rows else None
        if len(self.rows) > 1 or self.repeats:
            rows = pl.concat(self.rows).unique(subset=identity, keep="last", maintain_order=True)
        return Emission(
            rows=rows if rows is not None and rows.height else None,
            events=[event for _, event in sorted(self.events, key=lambda e: e[0])],
            late=pl.concat(self.late) if self.late else None,
            failed=pl.concat(self.failed, how="diagonal") if self.failed else None,
        )
