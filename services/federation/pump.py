"""One shard of a materialized view: rows from the source's link to the target's, in order, each
exactly once, for as long as it lives.

Both ends are links, the deployment's own tables included, so every pairing of local and remote is
one piece of code. What the target has is known from the target's own log: every row goes with its
place in the source's log. The note of how far the pump has come is only a lower bound for what it
reads again. A link that breaks is made anew after a pause that doubles; meanwhile rows wait where
they are, in the source's log. With ON_ERROR a frame that the target refuses is sent again with all
that are under way, one at a time and in halves, until the row that does not fit is alone
(`misfits.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from penstock import names
from penstock.bus import Publisher
from penstock.errors import PenstockError, RemoteError
from penstock.feeds.cursor import TokenError
from penstock.link.address import Address, LinkLost
from penstock.link.channel import Channel, LinkMessage
from penstock.link.client import Link
from penstock.link.description import Description
from penstock.link.pool import connect_any
from penstock.runtime.log import get
from services.federation.misfits import CODES, Misfits, Unfit, deliver
from services.federation.persistent import Persistent
from services.federation.settings import FederationSettings
from services.federation.targets import Piece, TablePlace, Targets

log = get(__name__)


@dataclass(frozen=True)
class PumpSource:
    """What a pump reads: a SELECT over one shard of the source, in the source's own names."""

    addresses: tuple[Address, ...]
    sql: str
    database: str
    timezone: str
    #: where it begins to read
    begin: str
    #: the source has one shard only
    alone: bool = True
    #: what a place in the source's log is of, for people: a topic, or an external stream
    origin: str = ""


@dataclass(frozen=True)
class Job:
    """What one pump does."""

    view: str
    view_id: int
    created: int
    shard: int
    source: PumpSource
    target: TablePlace
    #: id of this deployment
    deployment: str
    on_error: Literal["retry", "stop", "drop"] = "retry"
    #: how often RESUME had been said
    resumed: int = 0


@dataclass
class _Sent:
    """A piece without an ack; `token` holds once it and all before it are acked. `piece`: None when
    it is not sent again here.
    """

    channel: Channel
    piece: Piece | None
    token: str | None


class Pump(Persistent):
    """Runs until `stop`, or until a row does not fit and ON_ERROR is STOP."""

    def __init__(
        self, job: Job, settings: FederationSettings, directory: Path, dead: Publisher
    ) -> None:
        """*dead* takes dead letters."""
        super().__init__(f"pump-{job.view}-{job.shard}", settings, view=job.view, shard=job.shard)
        self.job = job
        self._note = directory / f"{job.view_id}-{job.created}-{job.shard}.json"
        self._noted_at = 0.0
        self._misfits = Misfits(
            job.view,
            job.view_id,
            job.source.origin,
            stop=job.on_error == "stop",
            dead=dead,
            patience=settings.ack_seconds,
        )
        #: of one connection: pieces without an ack, oldest first; where the source goes on behind
        #: what is acked
        self._under_way: deque[_Sent] = deque()
        self._token = ""
        #: so many more frames are sent one at a time: where one row did not fit the next may be
        #: near
        self._careful = 0

    def forget(self) -> None:
        """The view is gone: so is the note of how far it had come."""
        self._note.unlink(missing_ok=True)

    def passes(self, error: PenstockError) -> bool:
        return isinstance(error, LinkLost) or error.code in (
            "E_TIMEOUT",
            "E_BUS",
            "E_FENCED",
            "E_KAFKA_DOWN",
            "E_OVERLOAD",
        )

    def ends(self, error: PenstockError) -> bool:
        return isinstance(error, Unfit)

    # ---------------------------------------------------------------- one connection

    def work(self) -> None:
        job = self.job
        wait = self._settings.connect_seconds
        with connect_any(
            job.source.addresses, timeout=wait, ping_seconds=self._settings.ping_seconds
        ) as source:
            targets = Targets(job.target, job.source.alone, wait, self._settings.ping_seconds)
            try:
                self._carry(source, targets)
            finally:
                targets.close()

    def _carry(self, source: Link, targets: Targets) -> None:
        channel, opened = self._subscribe(source)
        description = Description.from_json(opened["table"])
        self._token = str(opened["token"])
        self._careful = 0
        self._under_way.clear()
        targets.check()
        self.report.state = "running"
        self.report.error = ""
        while not self._halt.is_set():
            message = channel.get(0.0 if self._under_way else 0.2)
            self._take_acks(targets, idle=message is None)
            if message is not None:
                if message.kind == "schema":
                    description = Description.from_json(message.header["table"])
                self._pass(
                    targets,
                    self._pieces(targets, description, message),
                    message.header.get("token"),
                )
                self.report.lag = message.header.get("behind", self.report.lag)
            if not self._under_way and not self.report.lag:
                self.report.level_at = time.time()
            self._keep()
        while self._under_way:
            self._take_ack(targets, self._settings.ack_seconds)
        self._keep(now=True)

    def _take_acks(self, targets: Targets, *, idle: bool) -> None:
        """Take the acks that are there, and wait for some when too many pieces are under way.

        *idle*: look a moment for one in any case.
        """
        if idle and self._under_way:
            self._take_ack(targets, 0.05)
        while self._under_way and (
            len(self._under_way) >= self._settings.window or self._under_way[0].channel.waiting
        ):
            self._take_ack(targets, self._settings.ack_seconds)

    def _pieces(
        self, targets: Targets, description: Description, message: LinkMessage
    ) -> list[Piece]:
        """What of a message goes where."""
        if message.rows is None and message.kind != "delete":
            return []
        job = self.job
        partition = int(message.header["partition"])
        producer = names.view_producer(
            job.deployment, job.created, job.view_id, job.shard, description.id, partition
        )
        if message.rows is not None:
            return targets.rows(producer, partition, message.rows, stable=description.is_stable)
        return targets.deletion(producer, description, message.header)

    def _pass(self, targets: Targets, pieces: list[Piece], token: str | None) -> None:
        """Send the pieces of one message; *token* holds once they are acked."""
        if self._careful and pieces:
            self._careful -= 1
            for piece in pieces:
                self._deliver(targets, piece)
            self._token = token or self._token
            return
        for piece in pieces:
            kept = None if self.job.on_error == "retry" else piece
            self._under_way.append(_Sent(targets.send(piece), kept, None))
        if pieces:
            self._under_way[-1].token = token
        if not pieces and not self._under_way:
            self._token = token or self._token

    def _subscribe(self, source: Link) -> tuple[Channel, dict[str, object]]:
        """From where the note says; a source that was made anew is read from its beginning."""
        wanted = self.job.source
        start = self._read_note() or wanted.begin
        for start_at in (start, "earliest"):
            channel = source.subscribe(
                wanted.sql,
                wanted.database,
                start=start_at,
                positions=True,
                timezone=wanted.timezone,
            )
            try:
                return channel, channel.expect("subscribed", self._settings.ack_seconds).header
            except PenstockError as error:
                if error.code != TokenError.code or start_at == "earliest":
                    raise
                log.warning(
                    "the source was made anew; the view begins at its beginning",
                    view=self.job.view,
                )
        raise AssertionError("unreachable")

    def _take_ack(self, targets: Targets, timeout: float) -> None:
        """Take the ack of the oldest piece, if it comes in time; with ON_ERROR see to those that do
        not fit.
        """
        oldest = self._under_way[0]
        try:
            message = oldest.channel.get(timeout)
        except PenstockError as refused:
            if refused.code not in CODES or oldest.piece is None:
                raise
            self._carefully(targets)
            return
        if message is not None:
            self._count(message)
            self._token = self._under_way.popleft().token or self._token
        elif timeout >= self._settings.ack_seconds:
            raise self._silent()

    def _carefully(self, targets: Targets) -> None:
        """Send all that is under way again, one piece at a time: which of them did not fit is not
        known, nor which are there.

        Those that are there the target knows by their places, so they cost a message and nothing
        else.
        """
        self._careful = self._settings.window
        targets.leave([sent.piece for sent in self._under_way if sent.piece is not None])
        while self._under_way:
            oldest = self._under_way[0]
            assert oldest.piece is not None
            self._deliver(targets, oldest.piece)
            self._under_way.popleft()
            self._token = oldest.token or self._token

    def _deliver(self, targets: Targets, piece: Piece) -> None:
        """Send *piece* less what does not fit, and wait until it is there. Raises Unfit when
        ON_ERROR is STOP.
        """
        deliver(piece, partial(self._alone, targets), self._unfit)

    def _alone(self, targets: Targets, piece: Piece) -> int:
        """Send *piece* and wait for its ack."""
        if self._halt.is_set():
            raise RemoteError("the view was stopped while rows were sent one by one")
        try:
            message = targets.send(piece).get(self._settings.ack_seconds)
        except PenstockError:
            targets.leave([piece])  # a channel ends with what it refused
            raise
        if message is None:
            raise self._silent()
        return self._count(message)

    def _unfit(self, piece: Piece, refused: PenstockError) -> None:
        self._careful = self._settings.window
        self._misfits.take(piece, refused)
        self.report.dropped = self._misfits.count
        self._keep(now=True)

    def _count(self, ack: LinkMessage) -> int:
        rows = int(ack.header["rows"])
        self.report.rows += rows
        return rows

    def _silent(self) -> RemoteError:
        return RemoteError(
            "the target does not confirm rows",
            code="E_TIMEOUT",
            detail=f"within {self._settings.ack_seconds:g} s",
        )

    # ---------------------------------------------------------------- how far it has come

    def _read_note(self) -> str | None:
        try:
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            self.report.rows = max(self.report.rows, int(noted["rows"]))
            self._misfits.count = max(self._misfits.count, int(noted.get("dropped", 0)))
            self._misfits.known = {
                k: (int(o), int(r)) for k, (o, r) in noted.get("misfits", {}).items()
            } | self._misfits.known
            self.report.dropped = self._misfits.count
            return str(noted["token"])
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def _keep(self, now: bool = False) -> None:
        if not now and time.monotonic() - self._noted_at < self._settings.checkpoint_seconds:
            return
        self._noted_at = time.monotonic()
        body = {"token": self._token, "rows": self.report.rows}
        if self._misfits.count:
            body |= {"dropped": self._misfits.count, "misfits": self._misfits.known}
        self._note.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._note.with_suffix(".new")
        fresh.write_text(json.dumps(body), encoding="utf-8")
        os.replace(fresh, self._note)
