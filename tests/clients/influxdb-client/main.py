"""influxdb-client, the client of InfluxDB 2.x."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from influxdb_client import InfluxDBClient, Point, WriteOptions, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from told import options, serve

_told = options()
_client: InfluxDBClient


def connect() -> str:
    global _client
    _client = InfluxDBClient(
        f"http://{_told['host']}:{_told['http']}",
        token=f"{_told['user']}:{_told['password']}",
        org="plant",
    )
    return f"{_client.ready().status} {_client.ping()}"


def create(bucket: str) -> list[str]:
    _client.buckets_api().create_bucket(bucket_name=bucket, org="plant")
    return buckets()


def buckets() -> list[str]:
    return [found.name for found in _client.buckets_api().find_buckets().buckets]


def find(bucket: str) -> Any:
    found = _client.buckets_api().find_bucket_by_name(bucket)
    return found and found.name


def organizations() -> list[str]:
    return [found.name for found in _client.organizations_api().find_organizations()]


def write(bucket: str) -> None:
    """Write a point of each type at once."""
    point = (
        Point("doors")
        .tag("hall", "east wing, 1")
        .field("opened", 3)
        .field("share", 0.25)
        .field("wide", True)
        .field("note", 'it\'s "so" \\ ä')
        .time(datetime(2024, 1, 1, tzinfo=UTC), WritePrecision.MS)
    )
    with _client.write_api(write_options=SYNCHRONOUS) as writer:
        writer.write(bucket=bucket, record=point)


def batches(bucket: str, number: str) -> None:
    """Write in batches in the background, as programs that measure do."""
    failures: list[str] = []
    with _client.write_api(
        write_options=WriteOptions(batch_size=100, flush_interval=500),
        error_callback=lambda _, data, error: failures.append(str(error)),
    ) as writer:
        for n in range(int(number)):
            writer.write(
                bucket=bucket,
                record={"measurement": "beats", "fields": {"n": n}, "time": 1_704_067_200_000 + n},
                write_precision=WritePrecision.MS,
            )
    if failures:
        raise RuntimeError(failures[0])


def line(bucket: str, text: str) -> None:
    with _client.write_api(write_options=SYNCHRONOUS) as writer:
        writer.write(bucket=bucket, record=text, write_precision=WritePrecision.MS)


def flux(bucket: str) -> None:
    _client.query_api().query(f'from(bucket: "{bucket}") |> range(start: 0)')


serve(
    connect,
    {
        "create": create,
        "buckets": buckets,
        "find": find,
        "organizations": organizations,
        "write": write,
        "batches": batches,
        "line": line,
        "flux": flux,
    },
    lambda wrong: getattr(wrong, "status", None),
)
