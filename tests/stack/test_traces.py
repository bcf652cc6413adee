"""One trace id from a write to whoever is notified, over a stream, a stream over its results, and
the exchange.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import CONTAINERS, eventually
from tests.stack.names import unique
from tests.stack.notifier_kit import Receiver, receiving

T0 = 1_700_000_000_000
WRITE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.mark.skipif(CONTAINERS, reason="containers: targets and logs are those of this machine")
def test_a_write_is_found_again_in_results_notifications_and_logs(
    mesh: RunningMesh, receiver: Receiver
) -> None:
    database = unique("tr")
    notify = f"NOTIFY ('{receiver.url}') ON ('WINDOW_CLOSE')"
    with penstock.connect(
        mesh.gateway_url, user=mesh.user, password=mesh.password, database=database
    ) as client:
        client.execute(f"CREATE DATABASE {database} PARTITIONS 2")
        client.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        client.execute(
            f"CREATE STREAM direct INTO r AS SELECT _wstart, count(*) c FROM m PARTITION BY tbname INTERVAL(1s) {notify}"
        )
        client.execute(
            f"CREATE STREAM chained INTO o AS SELECT _wstart, sum(c) c FROM r PARTITION BY tbname INTERVAL(1s) {notify}"
        )
        client.execute(
            f"CREATE STREAM whole INTO x AS SELECT _wstart, count(*) c FROM m INTERVAL(1s) {notify}"
        )

        def write(second: int, **headers: str) -> None:
            row = [{"tbname": "t1", "ts": T0 + 1000 * second, "v": 1, "g": 1}]
            url = f"{mesh.gateway_url}/v1/tables/{database}/m/rows"
            httpx.post(
                url, json=row, auth=(mesh.user, mesh.password), headers=headers, timeout=60
            ).raise_for_status()
            client.drain()

        def told() -> dict[str, list[str | None]]:
            """Stream → trace ids of its events, as the target got them."""
            found: dict[str, list[str | None]] = {"direct": [], "chained": [], "whole": []}
            for stream in (s for message in receiver.messages for s in message["streams"]):
                found[stream["streamName"]] += [event.get("traceId") for event in stream["events"]]
            return found

        write(0)
        write(1)  # closes the first window, and nobody follows it
        write(2, traceparent=f"00-{WRITE}-00f067aa0ba902b7-01")
        write(3, **{"X-Trace-Id": "order-17", "Idempotency-Key": unique("key")})
        # a window over results closes one result later
        eventually(
            lambda: (
                told()
                == {
                    "direct": [None, WRITE, "order-17"],
                    "chained": [WRITE, "order-17"],
                    "whole": [None, WRITE, "order-17"],
                }
            )
        )

    def logged(trace: str) -> set[tuple[str, str]]:
        command = [
            sys.executable,
            "-m",
            "penstock.cli",
            "logs",
            "--raw",
            "--trace",
            trace,
            "--data-dir",
            str(mesh.layout.root),
        ]
        lines = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True
        ).stdout.splitlines()
        return {(about["service"], about["event"]) for about in map(json.loads, lines)}

    wanted = {
        ("gateway", "rows are in the log"),
        ("spark", "rows were computed"),
        ("notifier", "a target was told"),
    }
    for trace in (WRITE, "order-17"):
        eventually(lambda t=trace: logged(t) >= wanted)  # type: ignore[misc]
