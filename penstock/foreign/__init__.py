"""Topics of a Kafka that is not the mesh's: SETTINGS of `type='kafka'` and the messages in such topics."""

from penstock.foreign.messages import Messages, Registry
from penstock.foreign.topic import MESSAGE_ID, Topic, at, message_id, of, read_settings, shown

__all__ = ["MESSAGE_ID", "Messages", "Registry", "Topic", "at", "message_id", "of", "read_settings", "shown"]
