"""Each service tells in Prometheus' form how much it has done, how long that took, what waits and what
it leads.
"""

from __future__ import annotations

import time

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import clause, settings_of
from tests.stack.metrics_kit import above_0, lines
from tests.stack.names import unique

#: what has to be above 0 once rows have gone all the way, and what has to be known at all
COUNTED = {
    "gateway": (
        "penstock_gateway_rows ",
        "penstock_gateway_ack_seconds_count ",
        'penstock_lease_held{lease="catalog"} ',
    ),
    "spark": (
        'penstock_stream_rows_in{stream="',
        'penstock_stream_state_bytes{stream="',
        'penstock_lease_held{lease="jobs"} ',
    ),
    "store": ("penstock_store_rows_total ", "penstock_store_query_seconds_count "),
    "notifier": (
        'penstock_notifier_messages_total{kind="rows"} ',
        "penstock_notifier_delay_seconds_count ",
    ),
}
NAMED = {
    "gateway": ("penstock_gateway_waiting_bytes",),
    "spark": (
        "penstock_lag_records",
        "penstock_epochs_total",
        "penstock_dead_letters",
        "penstock_query_failures_total",
    ),
    "store": (
        "penstock_store_lag_seconds",
        "penstock_store_tail_rows",
        "penstock_store_closed_connections_total",
    ),
    "notifier": ("penstock_notifier_clients", "penstock_notify_behind_events"),
}


def test_every_service_tells_what_it_does(mesh: RunningMesh) -> None:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("metrics")
    ) as db:
        db.execute(
            f"CREATE DATABASE {db.database} PARTITIONS 1; CREATE TABLE m (ts TIMESTAMP, v DOUBLE)"
        )
        db.execute(
            "CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n FROM m INTERVAL(10s)"
        )
        with db.subscribe(f"{db.database}.m").open() as rows:
            db.write("m", [{"ts": 1_700_000_000_000, "v": 1.0}])
            assert rows.next(60).items
        assert db.query("SELECT count(*) FROM m").rows == [(1,)]
        for service, found in COUNTED.items():
            for name in found:
                eventually(lambda r=service, n=name: above_0(mesh, r, n))  # type: ignore[misc]
    for service, wanted in NAMED.items():
        known = {line.split()[2] for line in lines(mesh, service) if line.startswith("# TYPE ")}
        assert set(wanted) <= known


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_how_long_results_follow_their_rows(mesh: RunningMesh, by: str) -> None:
    """Once in the scan of the source partition, once behind the exchange; time is in nanoseconds
    there, too.
    """
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=unique("lag")) as db:
        db.execute(
            f"CREATE DATABASE {db.database} PARTITIONS 2 PRECISION 'ns'; CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)"
        )
        db.execute(
            f"CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n FROM m PARTITION BY {by} INTERVAL(10s)"
        )
        began = time.monotonic()
        for n in range(5):
            db.write(
                "m", [{"tbname": f"t{n}", "ts": 1_700_000_000_000_000_000 + n, "v": n, "g": n}]
            )
            db.drain()
        took = time.monotonic() - began

        def figures() -> dict[str, float]:
            found = (
                line.rpartition(" ")
                for line in lines(mesh, "spark")
                if f'stream="{db.database}.s"' in line
            )
            return {
                name.removeprefix("penstock_stream_lag_seconds"): float(value)
                for name, _, value in found
                if "_lag_" in name
            }

        count = f'_count{{stream="{db.database}.s"}}'
        total = f'_sum{{stream="{db.database}.s"}}'
        shown = eventually(lambda: f if (f := figures()).get(count) == 5 else None)
        assert 0 <= shown[total] <= took
        buckets = [value for name, value in shown.items() if name.startswith("_bucket")]
        assert buckets == sorted(buckets) and buckets[-1] == 5


def test_how_far_views_are_behind(mesh: RunningMesh) -> None:
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=unique("view")) as db:
        db.execute(f"CREATE DATABASE {db.database} PARTITIONS 1")
        db.execute("CREATE TABLE m (ts TIMESTAMP, v INT); CREATE TABLE far (ts TIMESTAMP, v INT)")
        db.execute(f"CREATE EXTERNAL STREAM away {clause(settings_of(mesh, f'{db.database}.far'))}")
        db.execute("CREATE MATERIALIZED VIEW carried INTO away AS SELECT * FROM m")
        db.write("m", [{"ts": 1_700_000_000_000, "v": 1}])
        shown = f'penstock_federation_behind_seconds{{view="{db.database}.carried"}}'
        eventually(lambda: db.query("SELECT count(*) FROM far").rows == [(1,)])
        eventually(lambda: f"{shown} 0.0" in lines(mesh, "federation"))
        eventually(lambda: above_0(mesh, "federation", "penstock_federation_ack_seconds_count "))
        db.execute("DROP MATERIALIZED VIEW carried")
        eventually(lambda: not any(line.startswith(shown) for line in lines(mesh, "federation")))
