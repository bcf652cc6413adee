"""One trace id from a write to whoever is notified, over a stream, a stream over its results, and
the exchange; and the spans that services send on this way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.otlp_collector import collecting
from tests.stack import metrics_kit
from tests.stack.conftest import CONTAINERS, MeshFactory, eventually
from tests.stack.names import unique
from tests.stack.notifier_kit import Receiver, receiving
from tests.stack.webhook_kit import Webhook

T0 = 1_700_000_000_000
WRITE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    made.up()
    yield made
    made.down()


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


def test_a_refused_row_is_found_in_the_logs_over_http(mesh: RunningMesh) -> None:
    database, trace = unique("rf"), unique("refused")
    auth = (mesh.user, mesh.password)
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {database} PARTITIONS 1")
        client.execute(f"CREATE TABLE {database}.t (ts TIMESTAMP, v INT)")
        client.execute(f"CREATE USER {trace} PASS 'Works-0nly!'")
    answer = httpx.post(
        f"{mesh.gateway_url}/v1/tables/{database}/t/rows",
        json=[{"ts": T0, "v": "no number"}],
        auth=auth,
        headers={"X-Trace-Id": trace},
        timeout=60,
    )
    assert answer.status_code == 400

    def logged(**asked: str) -> list[dict[str, Any]]:
        told = httpx.get(f"{mesh.gateway_url}/v1/logs", params=asked, auth=auth, timeout=60)
        return list(told.raise_for_status().json()["entries"])

    eventually(
        lambda: (
            ("gateway", "rows were not written")
            in {(entry["service"], entry["text"]) for entry in logged(trace=trace)}
        )
    )
    assert logged(trace=trace, service="store") == []
    assert logged(trace=trace, level="error") == []
    # the definition of the user is there, and the password is not
    eventually(lambda: "ddl" in {entry["text"] for entry in logged(text=trace)})
    assert logged(text="Works-0nly!") == []


@pytest.mark.skipif(CONTAINERS, reason="containers: the collector is on this machine")
def test_a_written_row_is_one_trace_of_spans(own_mesh: MeshFactory, webhook: Webhook) -> None:
    """A request, its write, what a stream computed of it and the delivery: each below the one
    before, and the target goes on from the last.
    """
    with collecting() as collector:
        mesh = own_mesh(
            services=("kafka", "redis", "gateway", "store", "spark", "notifier"),
            environment={
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hunter2",
                "OTEL_BSP_SCHEDULE_DELAY": "100",
                # of what nobody asks for, nothing
                "OTEL_TRACES_SAMPLER": "parentbased_always_off",
            },
        )
        database = unique("sp")
        auth = (mesh.user, mesh.password)
        with penstock.connect(
            mesh.gateway_url, user=mesh.user, password=mesh.password, database=database
        ) as client:
            client.execute(f"CREATE DATABASE {database} PARTITIONS 1")
            client.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
            client.execute(
                f"CREATE STREAM s INTO r AS SELECT _wstart, count(*) c FROM m PARTITION BY tbname INTERVAL(1s) NOTIFY ('{webhook.url}') ON ('WINDOW_CLOSE')"
            )
            for second, headers in ((0, {}), (1, {"traceparent": f"00-{WRITE}-{SPAN}-01"})):
                row = [{"tbname": "t1", "ts": T0 + 1000 * second, "v": 1, "g": 1}]
                url = f"{mesh.gateway_url}/v1/tables/{database}/m/rows"
                httpx.post(url, json=row, auth=auth, headers=headers, timeout=60).raise_for_status()
                client.drain()  # so that the traced row is computed alone
        eventually(lambda: len(collector.of_trace(WRITE)) == 4)
        request, write, chunk, delivery = collector.of_trace(WRITE)
        assert [s.parent for s in (request, write, chunk, delivery)] == [
            SPAN,
            request.span,
            write.span,
            chunk.span,
        ]
        assert [s.resource["service.name"] for s in (request, write, chunk, delivery)] == [
            "penstock-gateway",
            "penstock-gateway",
            "penstock-spark",
            "penstock-notifier",
        ]
        assert request.name == "POST /v1/tables/{db}/{table}/rows"
        assert request.attributes["http.response.status_code"] == 200
        assert request.attributes["db.namespace"] == database
        assert (write.attributes["penstock.rows"], chunk.attributes["penstock.rows"]) == (1, 1)
        # the chunk is the record of the write, at its place
        place = write.attributes["messaging.kafka.offset"]
        assert chunk.attributes["penstock.offset.first"] <= place
        assert place <= chunk.attributes["penstock.offset.last"]
        assert delivery.attributes["penstock.events"] == 1
        told = [post.headers["traceparent"] for post in webhook.posts]
        assert told == [f"00-{WRITE}-{delivery.span}-01"]
        assert {s.trace for s in collector.spans} == {WRITE}
        assert {headers["api-key"] for _, headers in collector.requests} == {"hunter2"}
        lines = metrics_kit.lines(mesh, "gateway")
        assert 'penstock_trace_spans_total{kind="sent"} 2.0' in lines
        for service in ("gateway", "spark", "notifier"):
            assert "hunter2" not in mesh.layout.log(service).read_text(encoding="utf-8")
