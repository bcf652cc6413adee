"""NOTIFY from rows to targets over HTTP and in Kafka: nothing lost, order kept, only what passes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

import penstock
from penstock import names
from penstock.client.connection import Connection
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import CONTAINERS, eventually
from tests.stack.names import unique
from tests.stack.webhook_kit import Webhook

T0 = 1_700_000_000_000
KEY = "a key of the shop's, long enough"
WINDOWS = 40

pytestmark = pytest.mark.skipif(CONTAINERS, reason="containers: targets are on this machine")


@pytest.fixture
def client(mesh: RunningMesh) -> Iterator[Connection]:
    """A database with a supertable `m`."""
    database = unique("wh")
    with penstock.connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        database=database,
        options=ConnectionOptions(timeout=150),
    ) as made:
        made.execute(f"CREATE DATABASE {database} PARTITIONS 1")
        made.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        yield made


def test_a_webhook_that_was_away_gets_everything_in_order(
    mesh: RunningMesh, client: Connection
) -> None:
    """Refused connections first, then 503 with Retry-After, then answers."""
    hook = Webhook()
    directory = mesh.layout.secrets / "notify" / str(client.database)
    directory.mkdir(mode=0o700, parents=True)
    key = directory / "shop"
    key.touch(mode=0o600)
    key.write_text(KEY)
    client.execute(
        "CREATE STREAM s INTO r AS SELECT _wstart, count(*) c FROM m PARTITION BY tbname"
        f" INTERVAL(1s) NOTIFY ('{hook.url}') ON ('WINDOW_CLOSE') SIGNED_BY 'shop'"
    )

    def write(first: int, last: int) -> None:
        for second in range(first, last):
            client.execute(f"INSERT INTO t USING m TAGS (1) VALUES ({T0 + 1000 * second}, 1)")

    write(0, WINDOWS // 2)
    down = f"NOTIFY target {hook.url.removesuffix('/hook')} is down: Connection refused"
    # before, it says that the stream is not live yet
    eventually(lambda: down in _message(client))
    hook.busy = 1
    hook.up()
    write(WINDOWS // 2, WINDOWS + 1)
    eventually(lambda: len(hook.taken()) == WINDOWS)
    client.drain()
    hook.down()

    assert [post.status for post in hook.posts[:2]] == [503, 204]
    assert hook.posts[1].at - hook.posts[0].at >= 1.0, "it waits for as long as it was asked to"
    starts = [data["windowStart"] for data in hook.taken().values()]
    assert starts == [T0 + 1000 * second for second in range(WINDOWS)]
    by_id = {(e["id"], e["data"]["windowStart"]) for post in hook.posts for e in post.events}
    assert len(by_id) == WINDOWS, "what came again has the id that it had"
    assert all(post.is_signed(KEY.encode()) for post in hook.posts)


def test_windows_that_pass_come_into_a_topic(mesh: RunningMesh, client: Connection) -> None:
    topic = unique("Alerts")
    stream = (
        "CREATE STREAM s INTO r AS SELECT _wstart, avg(v) FROM m PARTITION BY tbname INTERVAL(1s)"
        " NOTIFY ('kafka://{}') ON ('WINDOW_CLOSE') WHERE avg(v) >= 3"
    )
    with pytest.raises(PenstockError, match="one of Penstock's or Kafka's own"):
        client.execute(stream.format(names.EVENTS))
    client.execute(stream.format(topic))
    assert f"kafka://{topic}" in str(client.query("SHOW CREATE STREAM s").rows[0])
    for second in range(6):
        client.execute(
            f"INSERT INTO t USING m TAGS (1) VALUES ({T0 + 1000 * second}, {second})"
            f" u USING m TAGS (2) VALUES ({T0 + 1000 * second}, {10 - second})"
        )
    client.drain()
    records = _records(mesh, topic)
    events = [json.loads(record.value() or b"") for record in records]
    found = {(e["data"]["tags"]["tbname"], e["data"]["result"]["avg(v)"]) for e in events}
    assert found == {("t", 3), ("t", 4), *(("u", value) for value in (10, 9, 8, 7, 6))}
    for record, event in zip(records, events, strict=True):
        assert record.key() == event["partitionkey"].encode()
        assert dict(record.headers() or [])["ce_id"] == event["id"].encode()
    assert len({event["id"] for event in events}) == len(found)


def _records(mesh: RunningMesh, topic: str) -> list[Message]:
    """All that a topic of one partition has."""
    reader = Consumer({**mesh.kafka_client, "group.id": "test"})
    try:
        _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        reader.assign([TopicPartition(topic, 0, 0)])
        return reader.consume(end, 30)
    finally:
        reader.close()


def _message(client: Connection) -> str:
    """What SHOW STREAMS says of the only stream's targets."""
    answer = client.query("SHOW STREAMS")
    return str(answer.rows[0][answer.columns.index("message")] or "")
