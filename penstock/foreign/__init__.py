"""Topics of a Kafka that is not the mesh's: SETTINGS of `type='kafka'` and the messages in such
topics.
"""

from penstock.foreign.brokers import Brokers, Home, quiet, reached
from penstock.foreign.messages import Messages, Registry
from penstock.foreign.topic import MESSAGE_ID, Topic, at, message_id, of, read_settings, shown

__all__ = [
    "MESSAGE_ID",
    "Brokers",
    "Home",
    "Messages",
    "Registry",
    "Topic",
    "at",
    "message_id",
    "of",
    "quiet",
    "reached",
    "read_settings",
    "shown",
]
