"""Rows that a view's target refuses because they do not fit it (`E_ROW`): found one by one, so that
all others go on.

A target refuses a frame whole, and knows by their places which rows it has. So a refused frame is
halved, the first half first, until the bad row is alone: order and exactly-once positions stay what
they were. What becomes of that row ON_ERROR says: it is the end of the view, or a dead letter.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock import names
from penstock.bus import Publisher
from penstock.errors import BusError, PenstockError, SchemaError
from penstock.link.selection import SYSTEM
from penstock.records import DeadLetter, encode
from penstock.runtime.log import get
from services.federation.targets import Piece

log = get(__name__)
CODES = ("E_ROW", "E_ROW_TOO_LARGE")
#: characters of a row that an error shows
_SHOWN = 300


class Unfit(SchemaError):
    """A view with ON_ERROR STOP has come to a row that does not fit its target."""

    code = "E_ROW"


def deliver(
    piece: Piece, send: Callable[[Piece], int], unfit: Callable[[Piece, PenstockError], None]
) -> int:
    """Send *piece*, less the rows that do not fit; how many came about.

    Args:
        send: sends a piece by itself, and returns when it is acked. Raises PenstockError.
        unfit: takes a piece of one row that *send* refused. What it raises ends the delivery behind
            the row before.
    """
    try:
        return send(piece)
    except PenstockError as refused:
        if refused.code not in CODES or piece.rows is None:
            raise
        if piece.rows.num_rows < 2:
            if piece.rows.num_rows:
                unfit(piece, refused)
            return 0
    first, second = piece.halves()
    return deliver(first, send, unfit) + deliver(second, send, unfit)


class Misfits:
    """What becomes of the misfits of one shard of a view."""

    def __init__(
        self, view: str, view_id: int, origin: str, *, stop: bool, dead: Publisher, patience: float
    ) -> None:
        """
        Args:
            view: its name.
            view_id: its id.
            origin: what the places are of, in dead letters: a topic, or an external stream.
            stop: a misfit ends the view.
            dead: takes dead letters.
            patience: seconds that one of them may take.
        """
        self._view = view
        self._id = view_id
        self._origin = origin
        self._stop = stop
        self._dead = dead
        self._patience = patience
        #: by shard and producer the place of the last dead letter: what comes again up to there is
        #: known
        self.known: dict[str, tuple[int, int]] = {}
        self.count = 0

    def take(self, piece: Piece, refused: PenstockError) -> None:
        """*piece* is one row, which *refused* is about. Raises Unfit; BusError when our own Kafka
        does not take the dead letter.
        """
        assert piece.rows is not None
        place = (
            int(piece.rows.column("_offset")[0].as_py()),
            int(piece.rows.column("_row")[0].as_py()),
        )
        reason = refused.message + (f": {refused.detail}" if refused.detail else "")
        shown = describe_row(piece.rows)
        if self._stop:
            where = (
                f"partition {piece.partition}, offset {place[0]}, row {place[1]} of {self._origin}"
            )
            raise Unfit(
                reason,
                code=refused.code,
                detail=f"{where}: {shown[:_SHOWN]}",
                hint="mend the target, then RESUME the view",
            )
        key = f"{piece.shard} {piece.producer}"
        if place <= self.known.get(key, (-1, -1)):
            return
        letter = DeadLetter(
            self._origin,
            piece.partition,
            place[0],
            "view",
            refused.code,
            f"row {place[1]}: {reason}",
            time.time_ns() // 10**6,
            self._id,
            shown.encode(),
        )
        log.warning(
            "dead letter",
            view=self._view,
            partition=piece.partition,
            offset=place[0],
            row=place[1],
            reason=reason,
        )
        self._bury(letter)
        self.known[key] = place
        self.count += 1

    def _bury(self, letter: DeadLetter) -> None:
        """Return when the letter is on all replicas."""
        try:
            self._dead.publish(names.DEAD_LETTER, encode(letter), partition=0).result(
                self._patience
            )
        except TimeoutError:
            raise BusError(
                "our own log does not confirm a dead letter", code="E_TIMEOUT", retryable=True
            ) from None


def describe_row(rows: pa.Table) -> str:
    """The first of *rows* as JSON: its child table, its time and the columns that were selected;
    times as ticks, bytes as hex.
    """
    kept = [name for name in rows.column_names if name in ("tbname", "_time") or name not in SYSTEM]
    return json.dumps(
        {name: _plain(rows.column(name)) for name in kept}, ensure_ascii=False, default=str
    )


def _plain(column: pa.ChunkedArray) -> Any:
    kind = column.type
    value = (column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column)[0].as_py()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
