"""Kafka topics: rows of databases, for any client, and those of the mesh itself."""

from __future__ import annotations

from gateway.api.channel import ChannelSpec, MessageSpec, RecordKey, ServerSpec
from gateway.api.shapes import Shape
from penstock import names
from penstock.catalog.model import TableVersion
from penstock.codec import avro_schema
from penstock.codec.subjects import built_in_schemas
from penstock.sql.plan import Column
from penstock.types import ColumnType

SHAPES: dict[str, Shape] = {}

_AVRO = "application/vnd.apache.avro"
_FIRST = names.ingest_topic("{database}")
_OWN, _LATER = names.ingest_topics("{database}")[1]
_DATABASE = {"database": "Name of the database, in lower case."}
_BUILT_IN = built_in_schemas()
#: a table for the form of rows; each table and each of its versions has a schema of its own
_EXAMPLE = TableVersion(
    names.FIRST_TABLE_SCHEMA_ID,
    (Column("ts", ColumnType("TIMESTAMP")), Column("current", ColumnType("DOUBLE"))),
    (Column("location", ColumnType("VARCHAR", 16)),),
)

_ROWS = MessageSpec(
    "RowBatch",
    "Rows of one table in one partition. The schema is that of an example, `power.meters (ts "
    "TIMESTAMP, current DOUBLE) TAGS (location VARCHAR(16))`; the Schema Registry paths of the "
    "gateway have that of each table, by the id in the record",
    avro=avro_schema(_EXAMPLE, "ms", "power.meters"),
    content_type=_AVRO,
    key=RecordKey("Name of the child table; the partition is murmur2 of it."),
)


def _built_in(name: str, schema: str, summary: str, key: str = "None.") -> MessageSpec:
    return MessageSpec(
        name, summary, avro=_BUILT_IN[schema], content_type=_AVRO, key=RecordKey(key)
    )


_CONTROL = _built_in("Control", "control", "A control record; takes effect at its offset")


def _ingestion(name: str, address: str, summary: str, **more: str) -> ChannelSpec:
    return ChannelSpec(
        name,
        address,
        ServerSpec.KAFKA,
        summary,
        "READ on the database lets a user read, WRITE lets them write. A record that cannot be "
        "used becomes a dead letter.",
        received=(_ROWS,),
        sent=(_ROWS, _CONTROL),
        parameters={**_DATABASE, **more},
    )


def _own(name: str, topic: str, summary: str, *messages: MessageSpec) -> ChannelSpec:
    return ChannelSpec(
        name,
        topic,
        ServerSpec.KAFKA,
        summary,
        "Of the mesh itself: others may not read it where the mesh makes Kafka's rules.",
        sent=messages,
        internal=True,
    )


CHANNELS = (
    _ingestion("rows", _FIRST, "Rows of all tables of a database, results included"),
    _ingestion(
        "rowsOfGeneration",
        f"{_LATER}{{generation}}",
        "The same after ALTER DATABASE … PARTITIONS",
        generation="From 2.",
    ),
    _ingestion(
        "rowsOfTable",
        f"{_OWN}{{table}}",
        "The same for a table WITH (topic='own')",
        table="Name of the table, in lower case.",
    ),
    _own(
        "events",
        names.EVENTS,
        "Window events, for the notifier",
        _built_in("StreamEvents", "events", "Events of one stream"),
        _CONTROL,
    ),
    _own(
        "deadLetters",
        names.DEAD_LETTER,
        "What could not be used, with its place and the reason",
        _built_in("DeadLetter", "dead_letter", "One record, or rows of one"),
    ),
    _own(
        "catalog",
        names.CATALOG,
        "Databases, tables with all versions, child tables, streams; compacted",
        _built_in("CatalogEntry", "catalog_entry", "One entry; null removes it", "`kind/id`"),
    ),
    _own(
        "exchange",
        names.EXCHANGE,
        "Rows of streams on their way to the partition that computes their group",
        _built_in("Exchange", "exchange", "Rows of one stream"),
        _CONTROL,
    ),
    _own(
        "epochs",
        names.EPOCHS,
        "What is committed, after each epoch of a query",
        _built_in("Manifest", "manifest", "One epoch"),
    ),
)
