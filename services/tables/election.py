"""Who leads which group, as this node sees it, and leading when it is this node's turn.

One thread takes turns: says that the node lives, counts the members, renews what it holds, and
takes a lease that nobody holds, or whose holder is known to be dead. Taking a lease too early does
no harm to rows: the log decides. Below a majority nobody takes a lease and a leader refuses writes.
Without Redis a leader stops when its lease ends.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import redis

from penstock import names
from penstock.bus import Publisher
from penstock.config.raft import Group
from penstock.coordination.lease import Lease
from penstock.coordination.presence import Registry
from penstock.errors import LeaseLost, PenstockError, RemoteError
from penstock.runtime import vital
from penstock.runtime.clock import Clock
from penstock.runtime.log import get
from services.tables.direct import Direct
from services.tables.leadership_term import LeadershipTerm
from services.tables.living_nodes import LivingNodes
from services.tables.replica import Replica
from services.tables.session import LeaderSession
from services.tables.session_maker import SessionMaker
from services.tables.settings import TablesSettings

log = get(__name__)
_TURN_SECONDS = 0.1


@dataclass
class GroupStanding:
    """What is known of a group. `leader` is an alias, "" for nobody."""

    group: Group
    leader: str = ""
    url: str = ""
    epoch: int = 0
    alive: tuple[str, ...] = ()
    lease: Lease | None = None
    term: LeadershipTerm | None = None
    sessions: dict[int, LeaderSession] = field(default_factory=dict)
    #: those whose leader is known to be dead
    dead_epochs: set[int] = field(default_factory=set)
    renewed: float = 0.0
    #: set by other threads: why this node should not lead any more
    ended: str = ""

    @property
    def quorum(self) -> bool:
        return sum(m in self.alive for m in self.group.members) >= self.group.majority

    def missing(self) -> str:
        """Why there is no majority; "" when there is one."""
        if self.quorum:
            return ""
        there = [m for m in self.group.members if m in self.alive]
        shown = ", ".join(there) or "none"
        return (
            f"no quorum: of group {self.group.id}'s {len(self.group.members)} members {shown} is"
            f" there, {self.group.majority} are needed"
        )


class Election(threading.Thread):
    """Runs until `stop`."""

    def __init__(
        self,
        settings: TablesSettings,
        groups: tuple[Group, ...],
        client: redis.Redis,
        registry: Registry,
        bus: Publisher,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        replicas: Callable[[int], list[Replica]],
        direct: Direct | None = None,
    ) -> None:
        """
        Args:
            direct: for sessions.
            replicas: of a group, as they are now.
        """
        super().__init__(name="election", daemon=True)
        self._settings = settings
        self._redis = client
        self._clock = clock
        self._replicas = replicas
        self.session_maker = SessionMaker(bus, clock, loop, settings.max_pending_bytes, direct)
        #: called when somebody else leads a group, or nobody; set before the start
        self.on_change: Callable[[], None] = _nothing
        self.standings = {g.id: GroupStanding(g) for g in groups}
        nodes = tuple(dict.fromkeys(n for g in groups for n in g.nodes))
        self._living = LivingNodes(registry, settings, nodes)
        self._halt = threading.Event()
        self._turn = threading.Event()
        #: a turn has been taken: what is said about leaders means something
        self.looked = threading.Event()
        self.redis_down = ""

    def stop(self) -> None:
        """Stop leading, so that others may at once."""
        self._halt.set()
        self._turn.set()
        self.join(timeout=10)

    def hurry(self) -> None:
        """Take the next turn now."""
        self._turn.set()

    def is_dead(self, group: int, epoch: int) -> None:
        """The leader of that epoch does not run any more: its address refuses connections."""
        standing = self.standings[group]
        standing.dead_epochs.add(epoch)
        # it must not count for a majority
        self._living.note_death(standing.leader)
        self._turn.set()

    @vital.run
    def run(self) -> None:
        while not self._halt.is_set():
            self.take_turn()
            self._turn.wait(_TURN_SECONDS)
            self._turn.clear()
        for standing in self.standings.values():
            self._step_down(standing, "the node stops")
        self._living.leave()

    def session(self, group: int, table_id: int) -> LeaderSession | None:
        """The session for a table, if this node leads."""
        standing = self.standings.get(group)
        return (
            standing.sessions.get(table_id)
            if standing is not None and standing.term is not None
            else None
        )

    # ---------------------------------------------------------------- a turn

    def take_turn(self) -> None:
        """Look at who is there, and lead on, follow or begin to lead; called by the thread."""
        try:
            self._look_around()
            self.redis_down = ""
        except RemoteError as down:
            self._without_redis(down)
        except vital.FAULTS:
            log.exception("a turn of the election failed")
        self.looked.set()

    def _look_around(self) -> None:
        leads = {
            g: s.term.epoch
            for g, s in self.standings.items()
            if s.term is not None and s.term.opened
        }
        tables = tuple(r.table.id for g in self.standings for r in self._replicas(g))
        self._living.beat(tables, leads)
        alive = self._living.find()
        for standing in self.standings.values():
            standing.alive = tuple(n for n in standing.group.nodes if n in alive)
            if standing.term is not None:
                self._lead_on(standing)
            if standing.term is None:
                self._follow(standing)

    def _without_redis(self, down: RemoteError) -> None:
        self.redis_down = down.detail or down.message
        for standing in self.standings.values():
            if standing.term is not None and (
                standing.lease is None or not standing.lease.held or standing.ended
            ):
                self._step_down(
                    standing, standing.ended or "the lease ended while Redis does not answer"
                )
                self._set_leader(standing, "", "", standing.epoch)

    def _lead_on(self, standing: GroupStanding) -> None:
        assert standing.lease is not None
        now = self._clock.monotonic()
        if standing.ended:
            self._step_down(standing, standing.ended)
            return
        if now - standing.renewed >= self._settings.lease_seconds / 3:
            try:
                standing.lease.renew()
                standing.renewed = now
            except LeaseLost as lost:
                self._step_down(standing, lost.message)
                return
        missing = standing.missing()
        for replica in self._replicas(standing.group.id):
            if replica.table.id not in standing.sessions:
                self._begin(standing, [replica])
        for table_id, session in list(standing.sessions.items()):
            session.leadership.refuses = missing
            if session.replica.dropped:
                del standing.sessions[table_id]
                session.replica.session = None

    def _follow(self, standing: GroupStanding) -> None:
        group = standing.group
        me = self._settings.alias
        lease = standing.lease = standing.lease or self._new_lease(group)
        holder = lease.holder()
        if holder is not None:
            leader, _, url = holder.address.partition(" ")
            self._set_leader(standing, leader, url, holder.epoch)
            # an earlier process of this node cannot be there any more: its port is this one's now
            if leader != me and holder.epoch not in standing.dead_epochs:
                return
        elif standing.leader:
            self._set_leader(standing, "", "", standing.epoch)
        if me not in group.members or not standing.quorum:
            return
        replicas = self._replicas(group.id)
        seen = max((r.copy.fence.epoch for r in replicas), default=0)
        if holder is not None and not lease.revoke(holder):
            return
        if not lease.acquire(seen):
            return
        standing.renewed = self._clock.monotonic()
        standing.term = LeadershipTerm(lease.epoch, f"{me}.{secrets.token_hex(4)}")
        standing.ended = ""
        log.info(
            "leading a group",
            group=group.id,
            epoch=lease.epoch,
            before=holder.address if holder else "",
        )
        self._set_leader(standing, me, self._settings.url, lease.epoch)
        self._begin(standing, replicas)
        if not replicas:
            standing.term.opened = True

    def _new_lease(self, group: Group) -> Lease:
        settings = self._settings
        return Lease(
            self._redis,
            names.group_lease(group.id),
            ttl=settings.lease_seconds,
            address=f"{settings.alias} {settings.url}",
            clock=self._clock,
        )

    def _begin(self, standing: GroupStanding, replicas: list[Replica]) -> None:
        term = standing.term
        assert term is not None
        made = []
        for replica in replicas:
            session = self.session_maker.make(
                replica, term, lambda why: self._ask_to_end(standing, term, why)
            )
            session.leadership.refuses = standing.missing()
            standing.sessions[replica.table.id] = session
            made.append(session)
        for session in made:
            try:
                session.start()
            except PenstockError as error:
                session.end(str(error))

    def _ask_to_end(self, standing: GroupStanding, term: LeadershipTerm, why: str) -> None:
        if standing.term is term:
            standing.ended = why
            self._turn.set()

    def _step_down(self, standing: GroupStanding, why: str) -> None:
        if standing.term is None:
            return
        log.info(
            "leading a group no longer",
            group=standing.group.id,
            epoch=standing.term.epoch,
            reason=why,
        )
        standing.term = None
        sessions = standing.sessions
        standing.sessions = {}
        for session in sessions.values():
            session.end(why)
            session.replica.session = None
        if standing.lease is not None:
            try:
                standing.lease.release()
            except PenstockError as error:
                log.warning(
                    "a lease could not be given back; it runs out by itself", error=str(error)
                )
            standing.lease = None
        standing.ended = ""

    def _set_leader(self, standing: GroupStanding, leader: str, url: str, epoch: int) -> None:
        if (standing.leader, standing.epoch) == (leader, epoch):
            return
        standing.leader = leader
        standing.url = url
        standing.epoch = epoch
        self.on_change()


def _nothing() -> None:
    """Until there is something to call."""
