"""Rows to Kafka record values and back: the Avro `RowBatch` of a table version, in Confluent
framing.

`TableCodec` is the only place that knows how a table's columns look on the wire. pyruhvro (Rust,
straight to and from Arrow) does the work; tables with VARBINARY or DECIMAL columns, which it cannot
do, go through fastavro, the reference. The 5-byte frame costs nothing: to pyruhvro it is a boolean
(the zero byte) and a float (the id's four bytes) in front.

A record is used whole or not at all: malformed Avro, a value outside its column's type or an
unknown `op` makes it bad, with a reason, and never raises. Encoding raises `SchemaError` for a row
that is larger than a record may be.
"""

from penstock.codec.decoder import Decoded
from penstock.codec.framing import frame_of, schema_ids
from penstock.codec.outgoing import Outgoing, encode_together
from penstock.codec.schema import RESERVED, avro_schema, wire_name
from penstock.codec.table import TableCodec

__all__ = [
    "RESERVED",
    "Decoded",
    "Outgoing",
    "TableCodec",
    "avro_schema",
    "encode_together",
    "frame_of",
    "schema_ids",
    "wire_name",
]
