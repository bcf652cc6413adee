"""Topic names, Redis keys, paths and generated table names: built here and nowhere else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

CATALOG = "penstock.catalog"
EVENTS = "penstock.events"
EXCHANGE = "penstock.exchange"
EPOCHS = "penstock.epochs"
DEAD_LETTER = "penstock.deadletter"
#: Faust's id of the notifier, and the topic of its delivery cursors, named by Faust's own rule (id,
#: table, "changelog")
NOTIFIER = "penstock.notifier"
NOTIFIER_CURSORS = f"{NOTIFIER}-cursors-changelog"
#: built-in topics and how many partitions each gets when the mesh is first started
BUILT_IN_TOPICS = {CATALOG: 1, EVENTS: 4, EXCHANGE: 4, EPOCHS: 1, DEAD_LETTER: 1}

#: the mesh itself among Kafka's users, who may do everything there; no user of the catalog has this
#: name
KAFKA_USER = "penstock"

CONTROL_SCHEMA_ID = 1
#: ids of table schemas start here; lower ones are built in
FIRST_TABLE_SCHEMA_ID = 100
MAX_NAME_BYTES = 192
_INGEST = "in."
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: begins of the names of topics of Penstock and of Kafka itself (`__consumer_offsets`), with points
#: for `_`
_OWN_TOPICS = (_INGEST, "penstock.", ".")
#: no name of a database has a hyphen
_GENERATION = "-g"


def ingest_topic(database: str, own: str | None = None, generation: int = 1) -> str:
    """Topic that carries the rows of *database*; *own* is a table WITH (topic='own'), *generation*
    grows when PARTITIONS does.
    """
    name = f"{_INGEST}{database.lower()}"
    if own:
        return f"{name}.{own.lower()}"
    return name if generation == 1 else f"{name}{_GENERATION}{generation}"


def ingest_topics(database: str) -> tuple[str, tuple[str, ...]]:
    """Return the first topic of *database*, and what all its others begin with: those of later
    generations and of single tables.
    """
    name = ingest_topic(database)
    return name, (f"{name}.", f"{name}{_GENERATION}")


def generation(topic: str) -> int:
    """Return the generation of its database's topics that an ingestion topic is of."""
    database, own, _ = topic.removeprefix(_INGEST).partition(".")
    number = database.partition(_GENERATION)[2]
    return int(number) if number and not own else 1


#: time and number of the rows of a stream that was created without a time column: given to each row
#: as it comes
EVENT_TIME = "_tp_time"
EVENT_NUMBER = "_tp_sn"


def mirror(external: str, *, history: bool) -> str:
    """Table that the rows of an external stream are pumped into so that streams can read it;
    *history*: from the very first row.
    """
    return f"_{'history' if history else 'mirror'}_{external}"


def view_producer(
    deployment: str, created: int, view_id: int, shard: int, source_id: int, partition: int
) -> str:
    """Producer id of a view's rows: one per partition of its source, another for a source that was
    made anew.
    """
    return f"f:{deployment}:{created}:{view_id}:{shard}:{source_id}:{partition}"


def foreign_producer(table_id: int, partition: int) -> str:
    """Producer id of the rows that come from one partition of a foreign topic."""
    return f"k:{table_id}:{partition}"


def view_status(view_id: int) -> str:
    """Redis hash: what a materialized view, or the reader of a foreign topic, is doing: state, lag,
    error.
    """
    return f"penstock:view:{view_id}"


def has_own(topic: str) -> bool:
    """Tell whether an ingestion topic is one table's own."""
    return "." in topic.removeprefix(_INGEST)


def is_topic_name(name: str) -> bool:
    """Tell whether Kafka can have a topic called *name*."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


def is_own_topic(topic: str) -> bool:
    """Tell whether *topic* is, or could be one day, a topic of Penstock or of Kafka itself, or
    would keep one from being made: for Kafka, names that differ in `.` and `_` alone collide.
    """
    name = topic.lower().replace("_", ".")
    return name.startswith(_OWN_TOPICS)


def is_ingest_topic(topic: str) -> bool:
    return topic.startswith(_INGEST)


def database_of(topic: str) -> str:
    """The database whose rows an ingestion topic carries."""
    return topic[len(_INGEST) :].partition(".")[0].partition(_GENERATION)[0]


def lease(name: str) -> str:
    return f"penstock:lease:{name}"


def stream_status(stream_id: int) -> str:
    """Redis hash: field `topic:partition` → offset at which the stream went live there; and
    progress fields.
    """
    return f"penstock:stream:{stream_id}"


#: in front of `topic:partition` in the hash of `stream_status`: a processor's counters as JSON
STATS = "stats:"
#: the same, in front of why a stream has stopped in a partition
FAILED = "failed:"
#: fields of the same hash that say why a stream is paused for now: a target of NOTIFY is behind, or
#: it is over its quota
HELD = "notifier"
QUOTA = "quota"
#: begin of the fields of the same hash in which notifiers say that targets of NOTIFY are down or
#: behind (`targets_field`)
TARGETS = "targets-"


def targets_field(instance: str) -> str:
    """Field of `stream_status` of one notifier: JSON with why targets are `down`, the number of
    events `waiting` and the time `at`.
    """
    return TARGETS + instance.replace(":", "-")


def open_windows(request: str) -> str:
    """Redis hash: field `topic:partition` → Arrow stream (base64) of the windows that are open
    there, or nothing.
    """
    return f"penstock:open:{request}"


#: in front of `topic:partition` in the hash of `stream_status`: how much of its history a stream
#: has filled there, in percent
FILLING = "history:"


def filling(topic: str, partition: int) -> str:
    return f"{FILLING}{topic}:{partition}"


def barrier(barrier_id: str) -> str:
    """Redis hash: field `reader:topic:partition` → offset that the reader has finished."""
    return f"penstock:barrier:{barrier_id}"


def last_row(database: str, table: str) -> str:
    """Redis hash: field child table → latest row as JSON."""
    return f"penstock:last:{database.lower()}.{table.lower()}"


def children(table_id: int) -> str:
    """Redis hash: field child table → tags as JSON, for child tables first seen in rows."""
    return f"penstock:children:{table_id}"


def table_sizes() -> str:
    """Redis hash: field table id → JSON of what the store keeps of the table (`TableSize`). It goes
    when the store tells nothing more.
    """
    return "penstock:sizes"


def query_heartbeat(topic: str) -> str:
    """Redis key that lives while a query reads *topic*, or would with its next record; set by
    spark_jobs, asked by CREATE DATABASE.
    """
    return f"penstock:query:{topic}"


#: field of `query_progress`: the id of whom the topic was made for; another one of the same name
#: has another
TOPIC_ID = "id"


def query_progress(topic: str) -> str:
    """Redis hash: field partition → next source offset that the query reading *topic* has saved."""
    return f"penstock:progress:{topic}"


def gateway_heartbeat(gateway: str) -> str:
    """Redis key that lives while the gateway process called *gateway* does."""
    return f"penstock:gateway:{gateway}"


def notifier_heartbeat() -> str:
    """Redis key that lives while a notifier delivers NOTIFY messages."""
    return "penstock:notifier"


def nodes() -> str:
    """Redis hash: field `node:service` → JSON of who that is and when it was last seen."""
    return "penstock:nodes"


def logs() -> str:
    """Redis sorted set: `node:service` → when it last logged something, in epoch seconds."""
    return "penstock:logs"


def log(node: int, service: str) -> str:
    """Redis stream: the newest entries of a service's log on a node; field `entry` is JSON,
    `left_out` how many before it are missing.
    """
    return f"penstock:log:{node}:{service}"


def standby() -> str:
    """Redis key that lives while somebody waits to take over the stream jobs; its value is that
    node.
    """
    return "penstock:standby"


def snode_report(node: int) -> str:
    """Redis key: what the snode on *node* says of its backups, as JSON."""
    return f"penstock:snode:{node}"


def move(database_id: int, generation: int) -> str:
    """Redis hash: who has done their part of a database's move to a topic of this generation:
    `writer:name`, `scan:partition`, …
    """
    return f"penstock:move:{database_id}:{generation}"


def safe_mode() -> str:
    """Redis key that lives while the stream jobs are kept from starting streams."""
    return "penstock:safe"


def safe_mode_drops() -> str:
    """Redis set: ids of streams that were dropped while nothing ran, so that they are not run up to
    their `stream_off`.
    """
    return "penstock:safe:dropped"


def topics_dropped() -> str:
    """Redis set: topics of databases and tables that were dropped. Not all of them: it may be
    lost.
    """
    return "penstock:dropped"


def span_counts() -> str:
    """Redis hash: what became of spans of the stream jobs' workers, by kind."""
    return "penstock:spans"


def store_followed() -> str:
    """Redis key: catalog revision up to which the store has left the topics of what was dropped."""
    return "penstock:store:followed"


def node_heartbeat(alias: str) -> str:
    """Redis key that lives while the node *alias* of stream tables does: where it is, which tables
    it has, what it leads, as JSON.
    """
    return f"penstock:node:{alias}"


def group_lease(group: int) -> str:
    """Name of the lease under which a raft group is led."""
    return f"tables:{group}"


def producer_of_replicas(table_id: int) -> str:
    """Producer id in the records of a stream table's log, whoever leads."""
    return f"h:{table_id}"


def session(digest: str) -> str:
    """Redis key: a session of the console, by the digest of its cookie."""
    return f"penstock:session:{digest}"


def sessions_of(user: str) -> str:
    """Redis hash: the console's sessions of a user, digest of the cookie → when it ends."""
    return f"penstock:sessions:{user}"


def link_in_use(link: str) -> str:
    """Redis key that lives while a login link that was opened could be opened again."""
    return f"penstock:link:{link}"


def idempotency(key: str) -> str:
    """Redis key: what became of the write under a client's idempotency key, as JSON."""
    return f"penstock:idempotency:{key}"


def stream_producer(stream_id: int, topic: str, partition: int) -> str:
    """Producer id in the results of a stream: one per source partition."""
    return f"s:{stream_id}:{topic}:{partition}"


def exchange_producer(stream_id: int, topic: str, partition: int) -> str:
    return f"x:{stream_id}:{topic}:{partition}"


def state_directory(root: str, query: str, topic: str, partition: int) -> str:
    # no path: it may be a URL, whose slashes count
    return f"{root.rstrip('/')}/{query}/{topic}-{partition}"


def segment_directory(root: str, table_id: int, partition: int, generation: int = 1) -> str:
    table = PurePosixPath(root) / f"table={table_id}"
    return str(
        (table if generation == 1 else table / f"generation={generation}")
        / f"partition={partition}"
    )


def group_id(stable: str, values: Sequence[object]) -> int:
    """63-bit id of a stream's partition: a hash of its values; 0 without PARTITION BY. Opaque, but
    stable for ever.
    """
    if not values:
        return 0
    text = "\x1f".join("\x00" if v is None else f"{type(v).__name__}:{v}" for v in values)
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"penstock-group").digest()
    return (int.from_bytes(digest, "big") & 0x7FFF_FFFF_FFFF_FFFF) or 1


def automatic_child(stable: str, group: int) -> str:
    """`t_` and 32 hex digits (TDengine's rule: MD5 over supertable name and group id), before
    `partition.beside` chooses the last two.
    """
    return "t_" + hashlib.md5(f"{stable}\x00{group}".encode(), usedforsecurity=False).hexdigest()


def line_child(measurement: str, tags: Sequence[tuple[str, str]]) -> str:
    """Child table of a point of line protocol: `t_` and 32 hex digits over measurement and sorted
    tags.
    """
    text = ",".join([measurement, *(f"{k}={v}" for k, v in sorted(tags))])
    return "t_" + hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _is_automatic(name: str) -> bool:
    return (
        len(name) == 34 and name.startswith("t_") and all(c in "0123456789abcdef" for c in name[2:])
    )


def child_name(name: str, stable: str, group: int) -> str:
    """SUBTABLE's name made unique: `_<stable>_<group id>` behind it, whole name at most 192 bytes
    (stream-semantics 7).
    """
    if group == 0 or _is_automatic(name) or name.endswith(str(group)):
        return name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    suffix = f"_{stable}_{group}".replace(".", "_")
    room = max(MAX_NAME_BYTES - len(suffix.encode()), 0)
    return name.encode()[:room].decode(errors="ignore") + suffix
