"""The parts that change the catalog, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.backends import PATIENCE_S, Backends
from gateway.children import Children
from gateway.ddl.child_tables import ChildTables
from gateway.ddl.database_definitions import DatabaseDefinitions
from gateway.ddl.definer import Definer
from gateway.ddl.definitions import Definitions
from gateway.ddl.drops import Drops
from gateway.ddl.mesh_watch import MeshWatch
from gateway.ddl.principals import Principals
from gateway.ddl.removal import Removal
from gateway.ddl.stream_planning import StreamPlanner
from gateway.ddl.stream_replies import StreamReplies
from gateway.ddl.streams import StreamDefinitions
from gateway.ddl.table_definitions import TableDefinitions
from gateway.ddl.topics import Topics
from gateway.drain import Drain
from gateway.federation.external_streams import ExternalStreams
from gateway.federation.foreign_topics import ForeignTopics
from gateway.federation.mirrors import Mirrors
from gateway.federation.remote_insert import RemoteInsert
from gateway.federation.view_start import ViewStart
from gateway.federation.views import MaterializedViews
from gateway.kafka_rights import KafkaRights, NoPasswords
from gateway.repartition.coordinator import RepartitionCoordinator
from gateway.settings import GatewaySettings
from gateway.stream_tables import StreamTableGroups
from penstock.auth.access import Access
from penstock.auth.kafka_users import KafkaUsers
from penstock.bus import Offsets
from penstock.outbound.reach import Outbound
from penstock.runtime import tls
from penstock.runtime.clock import Clock


class DdlParts:
    """One per process; the attributes are what other parts of the gateway use."""

    def __init__(
        self,
        settings: GatewaySettings,
        backends: Backends,
        access: Access,
        children: Children,
        note_own: Callable[[Offsets], None],
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
    ) -> None:
        """
        Args:
            children: what is remembered of child tables, for the DDL thread.
            note_own: told of records that reads which follow have to wait for.
        """
        outbound = Outbound(settings, access)
        self.definer = _definer(settings, backends)
        self.definer.noted = note_own
        child_tables = ChildTables(self.definer, children)
        self.removal = Removal(self.definer, child_tables, backends.redis)
        start = ViewStart(backends.admin, settings.data_dir, outbound)
        mirrors = Mirrors(self.definer, start, clock)
        self.streams = StreamDefinitions(
            self.definer,
            StreamPlanner(self.definer, child_tables, mirrors),
            StreamReplies(self.definer, backends.redis),
            clock,
            Outbound(settings, access, settings.notify_allow),
        )
        self.stream_tables = StreamTableGroups(
            settings.raft_groups,
            backends.redis,
            backends.catalog,
            clock,
            loop,
            access=access,
            user=settings.user,
            password=settings.root_password,
            timeout=settings.live_timeout,
            context=tls.client(settings.tls_ca),
        )
        self.kafka_rights = _kafka_rights(settings, backends, access)
        if self.kafka_rights is not None:
            self.definer.committed = self.kafka_rights.follow
        self.drain = Drain(self.definer, backends.redis, access)
        self.repartition = RepartitionCoordinator(
            self.definer, self.drain, backends.admin, backends.redis, backends.bootstrap
        )
        self.definer.settle = self.repartition.finish
        self.foreign_topics = ForeignTopics(
            self.definer,
            backends.admin,
            clock,
            settings.data_dir,
            outbound,
            settings.ack_timeout,
        )
        self.remote_insert = RemoteInsert(settings.data_dir, outbound)
        externals = ExternalStreams(
            self.definer,
            self.removal,
            mirrors,
            self.foreign_topics,
            clock,
            settings.data_dir,
            outbound,
        )
        views = MaterializedViews(self.definer, start, clock)
        principals = Principals(
            self.definer,
            child_tables,
            clock,
            settings.user,
            self.kafka_rights or NoPasswords(),
        )
        self.definitions = Definitions(
            self.definer,
            DatabaseDefinitions(self.definer, self.repartition, settings.partitions),
            TableDefinitions(self.definer, child_tables, self.stream_tables, clock),
            self.streams,
            externals,
            views,
            mirrors,
            principals,
            Drops(
                self.definer,
                self.removal,
                self.streams,
                externals,
                views,
                mirrors,
                principals,
                self.stream_tables,
            ),
            allow_functions=settings.allow_functions,
        )

    def close(self) -> None:
        """End the DDL thread, and what only it has used."""
        self.definer.close()
        if self.kafka_rights is not None:
            self.kafka_rights.close()
        self.remote_insert.close()
        self.foreign_topics.close()


def _definer(settings: GatewaySettings, backends: Backends) -> Definer:
    watch = MeshWatch(
        backends.redis, live_timeout=settings.live_timeout, wait_for_jobs=settings.wait_for_jobs
    )
    topics = Topics(lambda: backends.reader.catalog, backends.admin, backends.redis, watch)
    return Definer(backends.reader, backends.writer, backends.controls, topics, watch)


def _kafka_rights(
    settings: GatewaySettings, backends: Backends, access: Access
) -> KafkaRights | None:
    if not settings.kafka_users:
        return None
    users = KafkaUsers(
        backends.bootstrap, client_id=backends.client_id("users"), timeout=PATIENCE_S
    )
    return KafkaRights(users, backends.catalog, access, settings.root_password)
