"""The Faust app of the notifier: the group protocol by which notifiers share the partitions of the
events, a live reader of them, and the table of cursors with its changelog.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import faust

from penstock import names
from penstock.runtime import tls
from services.notifier.kafka_log import accept_loopback
from services.notifier.message import NotifyTarget
from services.notifier.settings import NotifierSettings

#: of the topic of events, and of the cursors
PARTITIONS = names.BUILT_IN_TOPICS[names.EVENTS]


class _Cursors(faust.Table[str, Any]):
    """A table that may be written at any time: its key says the partition."""

    def partition_for_key(self, key: Any) -> int:
        return NotifyTarget.of_key(str(key))[0]


# else it would talk under this module's name
_Cursors.logger = logging.getLogger("faust.cursors")


def make_app(
    settings: NotifierSettings,
    *,
    on_event: Callable[[int, int, bytes | None], Awaitable[None]],
    on_recovered: Callable[[], Awaitable[None]],
    on_revoked: Callable[..., Awaitable[None]],
) -> tuple[Any, Any]:
    """Return an app that is not started yet, and its table of cursors.

    Args:
        on_event: gets partition, offset and value of each record of events.
        on_recovered: called when the table is complete for the partitions that are ours.
        on_revoked: gets the sender and the partitions that are ours no more.
    """
    accept_loopback(settings.kafka_bootstrap)
    app = faust.App(
        names.NOTIFIER,
        broker=f"kafka://{settings.kafka_bootstrap}",
        store="memory://",
        Table=_Cursors,
        autodiscover=False,
        broker_credentials=_credentials(settings),
        web_enabled=False,
        datadir=str(settings.data_dir / "notifier"),
        loghandlers=[],
        # every topic is made by us: the broker makes none
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=PARTITIONS,
        # a static member is back at once after a crash, without waiting for its old session to
        # run out
        consumer_group_instance_id=settings.instance,
        broker_session_timeout=10.0,
        broker_heartbeat_interval=2.0,
        broker_rebalance_timeout=10.0,
        broker_request_timeout=15.0,
        broker_commit_interval=1.0,
        stream_recovery_delay=0.0,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=32,
    )
    events = app.topic(names.EVENTS, key_serializer="raw", value_serializer="raw", value_type=bytes)
    cursors = app.Table("cursors", partitions=PARTITIONS)
    cursors.on_recover(on_recovered)
    app.on_partitions_revoked.connect(on_revoked)

    @app.agent(events)
    async def route(stream: Any) -> None:
        async for event in stream.events():
            await on_event(event.message.partition, event.message.offset, event.value)

    return app, cursors


def _credentials(settings: NotifierSettings) -> Any:
    """Return the credentials with which everybody else here speaks to brokers."""
    options = settings.kafka_options
    if not options:
        return None
    protocol = options["security.protocol"]
    context = tls.client(settings.kafka_ca) if protocol.endswith("SSL") else None
    if protocol == "SSL":
        return faust.SSLCredentials(context=context)
    return faust.SASLCredentials(
        username=options["sasl.username"],
        password=options["sasl.password"],
        mechanism=options["sasl.mechanism"],
        ssl_context=context,
    )
