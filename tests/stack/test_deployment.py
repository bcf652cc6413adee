"""A whole mesh backed up while it works and restored elsewhere; safe mode; a burst that is
absorbed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import psutil
import pytest

import penstock
from penstock.errors import OverloadError
from penstock.mesh.process import proportional_memory
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.storage.vault import Vault
from tests.nightly import NIGHTLY
from tests.stack.conftest import PATIENT, eventually

pytestmark = pytest.mark.long

T0 = 1_700_000_000_000
STREAM = "CREATE STREAM d.{name} TRIGGER AT_ONCE INTO d.{name}_r AS SELECT _wstart AS w, count(*) AS n FROM d.m PARTITION BY tbname INTERVAL(1m)"


def connect(mesh: RunningMesh) -> penstock.Connection:
    return penstock.connect(
        mesh.gateway_url,
        password=mesh.password,
        database="d",
        options=penstock.ConnectionOptions(timeout=150),
    )


def rows(first: int, count: int) -> pl.DataFrame:
    n = pl.int_range(first, first + count, eager=True)
    return pl.DataFrame({"n": n}).select(
        tbname=pl.format("t{}", pl.col("n") % 8),
        ts=T0 + pl.col("n") * 10,
        v=pl.col("n"),
        g=pl.lit("x"),
    )


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def total(client: penstock.Connection, table: str) -> int:
    return int(client.query(f"SELECT sum(n) FROM {table}").rows[0][0] or 0)


@pytest.mark.timeout(900)
def test_a_working_mesh_is_backed_up_and_restored_elsewhere(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with running_mesh(tmp_path / "one", environment=PATIENT) as mesh, connect(mesh) as client:
        client.execute(
            "CREATE DATABASE d; CREATE STABLE d.m (ts TIMESTAMP, v BIGINT) TAGS (g VARCHAR(8))"
        )
        client.execute(STREAM.format(name="s"))
        client.write("m", rows(0, 20_000))
        client.drain()
        acked = 20_000
        halt = threading.Event()

        def write_on() -> None:
            nonlocal acked
            while not halt.is_set():
                client.write("m", rows(acked, 100))
                acked += 100

        writing = threading.Thread(target=write_on)
        writing.start()
        before = acked
        said = command("backup", kept, "--data-dir", str(mesh.layout.root))
        after = acked
        halt.set()
        writing.join()
        print(said)
        assert before > 0 and "stood still for" in said
        client.drain()
        assert total(client, "s_r") == acked, "the mesh goes on as if nothing had been"
        again = command("backup", kept, "--data-dir", str(mesh.layout.root))
        assert "-000000002:" in again
    first = Vault(kept).backups("deployment")[1]
    assert not [
        i.path
        for i in first.items
        if "password" in i.path or "secret" in i.path or i.path.endswith("redis.conf")
    ]

    key = str(tmp_path / "one" / "secrets" / "backup.password")
    with pytest.raises(AssertionError, match="--unsigned"):
        command("restore", kept, "--backup", first.name, "--data-dir", str(tmp_path / "two"))
    command(
        "restore", kept, "--backup", first.name, "--key", key, "--data-dir", str(tmp_path / "two")
    )
    with pytest.raises(AssertionError, match="is not empty"):
        command("restore", kept, "--key", key, "--data-dir", str(tmp_path / "two"))
    with running_mesh(tmp_path / "two", environment=PATIENT) as mesh, connect(mesh) as client:
        found = client.query("SELECT count(*) FROM m").rows[0][0]
        assert before <= found <= after + 100, "all that was acknowledged before the backup began"
        client.drain()
        assert total(client, "s_r") == found
        client.write("m", rows(1_000_000, 500))
        client.drain()
        assert total(client, "s_r") == found + 500


@pytest.mark.timeout(900)
def test_safe_mode_lets_a_stream_be_dropped_before_it_sees_another_row(tmp_path: Path) -> None:
    with running_mesh(tmp_path / "m", environment=PATIENT) as mesh, connect(mesh) as client:
        client.execute(
            "CREATE DATABASE d; CREATE STABLE d.m (ts TIMESTAMP, v BIGINT) TAGS (g VARCHAR(8))"
        )
        for name in ("good", "bad"):
            client.execute(STREAM.format(name=name))
        client.write("m", rows(0, 1000))
        client.drain()
    with (
        running_mesh(tmp_path / "m", environment=PATIENT, safe=True) as mesh,
        connect(mesh) as client,
    ):
        assert {(r[0], r[4]) for r in client.query("SHOW STREAMS").rows} == {
            ("good", "stopped"),
            ("bad", "stopped"),
        }
        client.write("m", rows(1000, 1000))
        assert client.query("SELECT count(*) FROM m").rows == [(2000,)]
        assert not [p for p in mesh.processes("spark") if "spark_jobs.daemon" in p.cmdline()]
        client.execute("DROP STREAM bad")
    with running_mesh(tmp_path / "m", environment=PATIENT) as mesh, connect(mesh) as client:
        eventually(lambda: client.query("SHOW STREAMS").rows[0][4] == "ready", 60)
        client.drain()
        assert (total(client, "good_r"), total(client, "bad_r")) == (2000, 1000)


@pytest.mark.timeout(900)
def test_ten_times_the_rate_for_a_while_is_absorbed_and_memory_stays_bounded(
    tmp_path: Path,
) -> None:
    """What cannot be taken in is pushed back to the client; nothing that was acknowledged is
    missing from the stream's result.
    """
    seconds = 60 if NIGHTLY else 15
    sustained = 20_000
    chunk = 4_000
    with running_mesh(tmp_path / "m", environment=PATIENT) as mesh, connect(mesh) as client:
        client.execute(
            "CREATE DATABASE d; CREATE STABLE d.m (ts TIMESTAMP, v BIGINT) TAGS (g VARCHAR(8))"
        )
        client.execute(STREAM.format(name="s"))
        sent = pushed_back = 0
        peak: dict[str, int] = {}

        def flow(rate: float, length: float) -> None:
            nonlocal sent, pushed_back
            began = time.monotonic()
            wanted = sent
            measured = 0.0
            while (now := time.monotonic()) - began < length:
                if now - measured > 2:
                    measured = now
                    for service in ("gateway", "spark", "store", "notifier", "kafka"):
                        try:
                            peak[service] = max(
                                peak.get(service, 0), proportional_memory(mesh.pid(service))
                            )
                        except psutil.Error:
                            continue
                if sent - wanted > (now - began) * rate:
                    time.sleep(0.01)
                    continue
                try:
                    client.write("m", rows(sent, chunk), idempotency_key=f"burst-{sent}")
                    sent += chunk
                except OverloadError:
                    pushed_back += 1

        flow(sustained, 5)
        calm = dict(peak)
        flow(10 * sustained, seconds)
        flow(sustained, 5)
        client.drain()
        print(
            f"sent {sent} rows, pushed back {pushed_back} times; MB calm {_mb(calm)}, peak {_mb(peak)}"
        )
        assert total(client, "s_r") == sent
        assert client.query("SELECT count(*) FROM m").rows == [(sent,)]
        limits = {"gateway": 700, "spark": 3500, "store": 2500, "notifier": 500, "kafka": 900}
        assert not {r: peak[r] / 1e6 for r in limits if peak[r] / 1e6 > limits[r]}


def _mb(sizes: dict[str, int]) -> dict[str, int]:
    return {service: size // 10**6 for service, size in sizes.items()}
