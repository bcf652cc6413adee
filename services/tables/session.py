"""What the leader of a group does for one table: orders writes, sends their records, answers
producers.

What is in a record is `records.py`'s. A small write that has the table to itself goes from the
event loop to Kafka and back (`direct.py`); everything else by way of the writer thread and
librdkafka, and never both at a time.

Begins with a record that opens the epoch and serves once this node has read that record back from
the log and found it good: from then on it knows every row before its own. A write is answered when
its record is in the log with no higher epoch before it. Mostly the place that Kafka reports says
so: if all records before it have been read, nothing else is in between, and the copy takes the rows
as they were sent. Otherwise (a control record, or another leader) the record has to be read back.
Whatever goes wrong ends the session; nothing is answered after that.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import polars as pl

from penstock.bus import Delivery, Publisher
from penstock.errors import BusError, PenstockError
from penstock.runtime import vital
from penstock.runtime.clock import Clock
from penstock.runtime.log import get
from services.tables.answers import Answers
from services.tables.direct import Direct
from services.tables.leadership_term import LeadershipTerm
from services.tables.record_sender import MAX_DIRECT, RecordSender
from services.tables.records import RecordBuilder, Sent, Short
from services.tables.replica import Content, Replica
from services.tables.sent_records import SentRecords
from services.tables.stamp import WritePart
from services.tables.table_leadership import TableLeadership
from services.tables.waiting_writes import WaitingWrites
from services.tables.write_ledger import WriteLedger
from services.tables.writes import Cut, Entry, Offset, ProducerWrite

log = get(__name__)


class LeaderSession:
    """`submit` from the event loop, `work` from the writer thread, `note_applied` from the log
    thread, deliveries from Kafka's.
    """

    def __init__(
        self,
        replica: Replica,
        term: LeadershipTerm,
        bus: Publisher,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        max_bytes: int,
        wake: Callable[[], None],
        on_over: Callable[[str], None],
        direct: Direct | None = None,
    ) -> None:
        """
        Args:
            term: what this node leads under.
            max_bytes: of writes that may wait.
            wake: has the writer thread call `work`.
            on_over: called once when the session cannot go on.
            direct: the short way to Kafka, for a small write that comes alone.
        """
        table = replica.table
        self.replica = replica
        self.leadership = TableLeadership(table.id, replica.name, term, clock)
        #: held by who publishes: the writer thread, or the loop for as long as its record is under
        #: way
        self._publishing = threading.Lock()
        self._lock = threading.RLock()
        self._waiting = WaitingWrites(wake)
        self._records = RecordBuilder(replica, term, clock)
        self._sender = RecordSender(table, bus, direct)
        self._sent = SentRecords()
        self._ledger = WriteLedger(replica.copy.shape.max_producers)
        self._answers = Answers(loop, max_bytes)
        self._on_over = on_over
        self.acked_rows = 0

    def start(self) -> None:
        """Open the epoch in the log."""
        self._send(self._records.opening())

    @property
    def over(self) -> str:
        """Why the session has ended; "" while it has not."""
        return self.leadership.over

    @property
    def serving(self) -> bool:
        """Tell if writes are taken."""
        return self.leadership.serving

    @property
    def straight(self) -> int:
        """Records that went the short way."""
        return self._sender.straight

    # ---------------------------------------------------------------- the event loop

    def submit(self, entry: Entry) -> None:
        """Take a write in; its future gets the number of its rows, or the error.

        Raises:
            RemoteError: this node does not lead (`E_NOT_LEADER`), or the group has no majority
                (`E_NO_QUORUM`).
            OverloadError: too much waits already.
        """
        with self._lock:
            self.leadership.require(entry)
            self._answers.expect(entry)
            if self._waiting or self._sent or not self._directly(entry):
                self._waiting.put(entry)

    def _directly(self, entry: Entry) -> bool:
        """Send a small write that has the table to itself from here, or leave it to the writer
        thread.
        """
        if not isinstance(entry, ProducerWrite) or not self._sender.has_short_way:
            return False
        if not self._publishing.acquire(blocking=False):
            return False
        short = self._make_short(entry)
        if short is None or len(short.value) > MAX_DIRECT or self._waiting:
            self._publishing.release()
            return False
        self._sender.send_straight(short.value, lambda result: self._finish_direct(sent, result))
        # the broker is at work: what follows takes none of the time that the producer waits
        sent = self._records.count(short)
        self._ledger.send(entry)
        self._ledger.note(WritePart(entry.producer, entry.sequence, entry.rows, entry.rows))
        self._keep(sent)
        return True

    def _make_short(self, write: ProducerWrite) -> Short | None:
        """Make the record of a small write, unless it has to go the long way."""
        try:
            return self._records.short(write) if self._ledger.judge(write) == "new" else None
        except Exception:
            return None  # the writer thread tells

    def _finish_direct(self, sent: Sent, result: Delivery | BusError | None) -> None:
        if result is None:
            self._hand_to_bus(sent)
        else:
            self._take_delivery(sent, result)
        self._publishing.release()
        self._waiting.remind()

    # ---------------------------------------------------------------- the writer thread

    def work(self) -> bool:
        """Send what waits; return False when there was nothing. While the loop has a record under
        way it comes later.
        """
        if not self._publishing.acquire(blocking=False):
            return False
        taken: list[Entry] = []
        try:
            with self._lock:
                if not self._waiting or self.over:
                    return False
                taken = self._waiting.take()
            self._publish(taken)
        except PenstockError as error:
            self.end(f"{error.message} {error.detail}".strip())
        except vital.FAULTS as bug:
            self.end(f"a bug: {type(bug).__name__}")
            raise
        finally:
            self._publishing.release()
            if self.over:
                # it ended before these were sent: nobody else knows of them
                self._answers.give(taken, self.leadership.error())
        return True

    def _publish(self, entries: Sequence[Entry]) -> None:
        writes: list[ProducerWrite] = []
        offsets: list[Offset] = []
        for entry in entries:
            if isinstance(entry, Offset):
                offsets.append(entry)
            elif self._admit(entry):
                # as if it were sent: the next one of this producer follows it
                self._ledger.note(WritePart(entry.producer, entry.sequence, entry.rows, entry.rows))
                writes.append(entry)
        if len(writes) == 1 and not offsets:
            short = self._records.short(writes[0])
            if short is not None:
                self._send(self._records.count(short))
                return
        accepted, found = self._records.cut(*self._frame(writes))
        self._add_offsets(found, offsets)
        for cut in found:
            self._send(self._records.make(cut, accepted))

    def _add_offsets(self, cuts: list[Cut], offsets: Sequence[Offset]) -> None:
        """Let the last record carry the offsets of subscriptions; make one if there is none."""
        if not offsets:
            return
        if not cuts:
            cuts.append(Cut(0, 0))
        for offset in offsets:
            last = self._ledger.last(offset.part.producer)
            if last is None or offset.row < 0 or offset.row > last.sequence:
                self._ledger.note(offset.part)
                cuts[-1].parts.append(offset.part)
            cuts[-1].complete.append(offset)

    def _send(self, sent: Sent) -> None:
        self._keep(sent)
        self._hand_to_bus(sent)

    def _admit(self, write: ProducerWrite) -> bool:
        """Tell if the write has to be sent; answer it, or let it wait for its first copy, when
        not.
        """
        try:
            kind = self._ledger.judge(write)
        except PenstockError as error:
            self._answers.give([write], error)
            return False
        with self._lock:
            if kind == "new" or kind == "rest":
                self._ledger.send(write)
                return True
            if self._ledger.hold_repeat(write):
                return False
            refused = self._ledger.refusal(write)
        self._answers.give([write], refused)
        return False

    def _frame(self, writes: list[ProducerWrite]) -> tuple[pl.DataFrame, list[ProducerWrite]]:
        """The rows of all good writes; the others are answered."""
        try:
            return self._records.to_frame(writes), writes
        except PenstockError as error:
            if len(writes) == 1:
                self._refuse(writes[0], error)
                return self._records.to_frame([]), []
        good: list[ProducerWrite] = []
        frames: list[pl.DataFrame] = []
        for write in writes:
            try:
                frames.append(self._records.to_frame([write]))
                good.append(write)
            except PenstockError as error:
                self._refuse(write, error)
        return (pl.concat(frames) if frames else self._records.to_frame([])), good

    def _refuse(self, write: ProducerWrite, error: PenstockError) -> None:
        with self._lock:
            waiting = self._ledger.refuse(write, error)
        self._answers.give([write, *waiting], error)

    def _keep(self, sent: Sent) -> None:
        """Whoever waits for a record is answered when it is in the log, or when the session
        ends.
        """
        with self._lock:
            if self.over:
                return
            self._sent.add(sent)

    def _hand_to_bus(self, sent: Sent) -> None:
        if not self.over:
            self._sender.send(sent.value, lambda result: self._take_delivery(sent, result))

    # ------------------------------------------------------------ Kafka's thread and the log thread

    def _take_delivery(self, sent: Sent, result: Delivery | BusError) -> None:
        if isinstance(result, BusError):
            self.end(f"Kafka did not take a record: {result.detail or result.message}")
            return
        # everything before it has been read: nobody can have begun a higher epoch in between
        if (
            not self.over
            and sent.content is not None
            and self.replica.take(result.offset, result.timestamp, sent.content)
        ):
            with self._lock:
                self._settle(sent.number)
        else:
            self.replica.hurry()

    def content(self, value: bytes | None) -> Content | None:
        """What a record of the log says, if it is one that this session has sent."""
        with self._lock:
            return self._sent.content(value)

    def note_applied(
        self, offset: int, epoch: int, number: int, leader: str, accepted: bool
    ) -> None:
        """A record was read from the log, and counted or not."""
        leading = self.leadership
        mine = epoch == leading.epoch and leader == leading.leader
        if not mine:
            if accepted and epoch > leading.epoch:
                self.end(f"{leader.partition('.')[0]} leads since epoch {epoch}")
            return
        if not accepted:
            self.end(f"a record of epoch {epoch} came too late")
            return
        with self._lock:
            if self.over:
                return
            if number == 0:
                copy = self.replica.copy
                self._ledger.begin(copy.producers.copy())
                self._records.begin(copy.next)
                leading.begin()
            self._settle(number)

    def _settle(self, number: int) -> None:
        """Records up to *number* are in the log for good, and in this node's copy."""
        self._records.settle(number)
        self._confirm(number)

    def _confirm(self, number: int) -> None:
        """All records up to *number* are certain."""
        done: list[Entry] = []
        for entry in self._sent.take_until(number):
            done.append(entry)
            if isinstance(entry, ProducerWrite):
                done += self._ledger.confirm(entry)
                self.acked_rows += entry.rows
        if done:
            self._answers.give(done, None)

    def end(self, why: str) -> None:
        """Stop: whoever waits is told to go to the next leader; what is under way may have happened
        or not.
        """
        with self._lock:
            if self.over:
                return
            self.leadership.over = why
            left = [*self._waiting.take_all(), *self._sent.clear(), *self._ledger.waiting()]
        log.info(
            "leadership of a table ends",
            table=self.replica.name,
            epoch=self.leadership.epoch,
            reason=why,
        )
        self._answers.give(left, self.leadership.error())
        self._on_over(why)
