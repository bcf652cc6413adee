"""influxdb, the client of InfluxDB 1.x."""

from __future__ import annotations

import json
from typing import Any

from influxdb import InfluxDBClient
from told import options, serve

_told = options()
_client: InfluxDBClient


def connect() -> str:
    global _client
    _client = InfluxDBClient(
        _told["host"], _told["http"], _told["user"], _told["password"], retries=1
    )
    return str(_client.ping())


def create(database: str) -> list[str]:
    _client.create_database(database)
    _client.switch_database(database)
    return [found["name"] for found in _client.get_list_database()]


def drop(database: str) -> None:
    _client.drop_database(database)


def write(text: str) -> bool:
    return bool(_client.write_points(json.loads(text), time_precision="ms", batch_size=2))


def lines(text: str) -> bool:
    return bool(_client.write_points(text.split("|"), protocol="line", time_precision="ms"))


def query(text: str) -> Any:
    found = _client.query(text, epoch="ms")
    return [[*(tags or {}).values(), list(rows)] for (_, tags), rows in found.items()]


def bound(text: str, values: str) -> Any:
    found = _client.query(text, bind_params=json.loads(values), epoch="ms")
    return list(found.get_points())


def measurements() -> list[str]:
    return [found["name"] for found in _client.get_list_measurements()]


serve(
    connect,
    {
        "create": create,
        "drop": drop,
        "write": write,
        "lines": lines,
        "query": query,
        "bound": bound,
        "measurements": measurements,
    },
    lambda wrong: getattr(wrong, "code", None),
)
