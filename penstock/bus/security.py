"""Security options of this process's Kafka clients: for its own mesh's Kafka and for others."""

from __future__ import annotations

from collections.abc import Mapping

#: options of clients by the addresses of their brokers; "": of all other clients. See `secure`
_security: dict[str, Mapping[str, str]] = {}


def secure(options: Mapping[str, str], bootstrap: str = "") -> None:
    """Have every client that this process makes from now on use *options*
    (`Settings.kafka_options`): one mesh has one Kafka.

    Args:
        bootstrap: only clients of these brokers: for a process that speaks to several meshes.
    """
    _security[bootstrap] = dict(options)


def login(bootstrap: str, options: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return how to speak to the brokers at *bootstrap*: *options* of a client of another Kafka,
    else those that `secure` set.
    """
    return options if options is not None else _security.get(bootstrap, _security.get("", {}))
