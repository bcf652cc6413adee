"""What aiokafka logs of the brokers, without what is so by design.

It warns at each connection that a password goes in the clear. To brokers on loopback it does: the
embedded mesh is made so.
"""

from __future__ import annotations

import ipaddress
import logging

#: aiokafka's logger and its words
_LOGGER = "aiokafka.conn"
_IN_THE_CLEAR = "Sending username and password in the clear"


def accept_loopback(bootstrap: str) -> None:
    """Leave that warning out when all brokers at *bootstrap* are on loopback."""
    if all(map(_is_loopback, bootstrap.split(","))):
        logging.getLogger(_LOGGER).addFilter(_is_other)


def _is_loopback(broker: str) -> bool:
    host = broker.strip().rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_other(record: logging.LogRecord) -> bool:
    return record.msg != _IN_THE_CLEAR
