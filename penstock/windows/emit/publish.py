"""When a window is published and when its row is taken back: the trigger modes as expressions over
the windows known.

A window carries `_pub` (0 not published, 1 while open, 2 after it closed) and `_dirty` (changed
since, waits for the clock). For a decision it also has `_touched` (rows of it changed just now),
`_loud` (by something that may not wait, see CONTINUOUS), `_was_open` (before this write) and
`_closed`. The decision adds `_put` (publish now), `_drop` (delete the published row) and the new
`_dirty`. Vanished windows are no lines any more; `vanish` says which of them lose their row.
"""

from __future__ import annotations

import polars as pl

from penstock.sql.plan import Trigger

OPEN = 1
CLOSED = 2


class PublishPolicy:
    """The decisions of one trigger."""

    def __init__(self, trigger: Trigger) -> None:
        self.kind = trigger.kind

    def decide(self, windows: pl.DataFrame, at_once: bool = False) -> pl.DataFrame:
        """Add `_put`, `_drop` and `_dirty`; *at_once*: history, which is published as AT_ONCE
        whatever the trigger.
        """
        visible = pl.col("_done")
        closed = pl.col("_closed")
        touched = pl.col("_touched")
        pub = pl.col("_pub")
        due = pl.col("_done") & pl.col("_closed")
        dirty = pl.lit(False)
        if at_once or self.kind == "at_once":
            put = visible & touched
            drop = (pub > 0) & ~visible
        else:
            put = due & (touched | (pub != CLOSED))
            # a row published at its close must not stay while the window is open again
            drop = ((pub == CLOSED) & ~due) | ((pub == OPEN) & ~visible)
            if self.kind == "max_delay":
                dirty = visible & ~closed & (pl.col("_dirty") | touched)
            elif self.kind == "continuous_window_close":
                waits = ~pl.col("_was_open") & ~pl.col("_loud")
                put = (
                    due
                    & ((touched & ~waits) | (pub != CLOSED))
                    & ~(waits & (touched | pl.col("_dirty")))
                )
                drop = pl.lit(False)
                dirty = pl.col("_dirty") | (touched & waits)
        return windows.with_columns(put.alias("_put"), drop.alias("_drop"), dirty.alias("_dirty"))

    def settled(self, decided: pl.DataFrame, at_once: bool = False) -> pl.DataFrame:
        """Windows after the decision: `_pub` is what was done, the columns of the decision are
        gone; *at_once* as in `decide`.
        """
        pub = (
            pl.when("_put")
            .then(pl.when("_closed").then(CLOSED).otherwise(OPEN))
            .when("_drop")
            .then(0)
            .otherwise(pl.col("_pub"))
        )
        if at_once:
            # what an earlier stretch of history showed is as it was when its window closed
            pub = pl.when((pub == OPEN) & pl.col("_closed")).then(CLOSED).otherwise(pub)
        return decided.with_columns(
            pub.cast(pl.Int8).alias("_pub"),
            pl.lit(False).alias("_touched"),
            pl.lit(False).alias("_loud"),
        ).drop("_put", "_drop", "_closed", "_was_open", strict=False)

    @property
    def keeps_vanished(self) -> bool:
        """Whether the row of a vanished window waits for the clock too."""
        return self.kind == "continuous_window_close"
