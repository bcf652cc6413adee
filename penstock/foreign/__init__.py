"""Topics of a Kafka that is not the mesh's: SETTINGS of `type='kafka'` and the messages in such
topics.
"""

from penstock.foreign.brokers import Brokers, Home, quiet, reach_brokers
from penstock.foreign.messages import Messages
from penstock.foreign.registry import SchemaRegistry
from penstock.foreign.rows import MessageDecoder, rows_of
from penstock.foreign.topic import (
    MESSAGE_ID,
    Topic,
    at,
    definition_sql,
    message_id,
    of,
    read_settings,
)

__all__ = [
    "MESSAGE_ID",
    "Brokers",
    "Home",
    "Messages",
    "MessageDecoder",
    "SchemaRegistry",
    "Topic",
    "at",
    "message_id",
    "of",
    "quiet",
    "reach_brokers",
    "read_settings",
    "definition_sql",
    "rows_of",
]
