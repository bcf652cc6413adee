"""The node of the jobs loses its disk, sleeps or dies: what a snode kept is enough, and no result
is lost or there twice.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import penstock
from penstock import names
from penstock.catalog.model import Snode
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.storage.backup_list import Backup
from penstock.storage.checkpoints import newest_verified
from penstock.storage.vault import Vault
from tests.rsync_daemon import needs_rsync, rsync_daemon
from tests.stack.conftest import eventually
from tests.stack.metrics_kit import above_0
from tests.stack.names import unique
from tests.stack.operator_kit import OperatorKit, operator_kit
from tests.stack.test_kill_operator import Load, check, start

pytestmark = pytest.mark.long

SERVICES = ("kafka", "redis", "spark", "snode")
QUICK = {"epoch_seconds": "6", "lease_seconds": "4"}


def backed_up(vault: Vault, subject: str, beyond: int = 0) -> Backup:
    """Wait for a backup whose positions add up to more than *beyond*."""

    def look() -> Backup | None:
        found = vault.backups(subject)
        return found[0] if found and sum(found[0].facts["positions"].values()) > beyond else None

    found = eventually(look, 60)
    assert found is not None
    return found


def lose_disk(mesh: RunningMesh) -> None:
    """kill -9 of everything that is the jobs, and not a byte of their state is left."""
    for process in mesh.processes("spark")[::-1]:
        with suppress(psutil.Error):
            process.kill()
    shutil.rmtree(mesh.layout.root / "state")


def subject(kit: OperatorKit) -> str:
    database = kit.catalog.catalog.database("k")
    assert database is not None
    return f"{names.ingest_topic('k')}.{database.id}"


@contextmanager
def standby(kit: OperatorKit, directory: Path, backups: Path) -> Iterator[RunningMesh]:
    """A second node that runs jobs and a snode only, and shares Kafka, Redis and the place of the
    backups.
    """
    environment = {
        **{k: v for k, v in kit.mesh.settings.items() if k != "PENSTOCK_DATA_DIR"},
        "PENSTOCK_NODE": "2",
        "PENSTOCK_CHECKPOINT_BACKUP_DIR": str(backups),
        **{f"PENSTOCK_SPARK_{k.upper()}": v for k, v in QUICK.items()},
    }
    with running_mesh(directory, services=("spark", "snode"), environment=environment) as mesh:
        yield mesh


@pytest.mark.timeout(900)
def test_a_lost_disk_is_restored_and_nothing_is_lost_or_there_twice(tmp_path: Path) -> None:
    with operator_kit(tmp_path / "mesh", SERVICES, **QUICK) as kit:
        kit.commit([Snode(kit.writer.new_id(), 1)])
        source, targets = start(kit)
        vault = Vault(str(kit.mesh.layout.root / "backup"))
        load = Load(kit, source)
        with load.flowing():
            first = backed_up(vault, subject(kit))
            eventually(lambda: above_0(kit.mesh, "snode", "penstock_snode_backup_seconds_count"))
            backed_up(vault, subject(kit), sum(first.facts["positions"].values()) + 500)
            driver = kit.mesh.pid("spark")
            lose_disk(kit.mesh)
            began = time.monotonic()
            kit.mesh.wait_ready("spark", not_pid=driver)
            print(f"recovered in {time.monotonic() - began:.1f} s")
            time.sleep(2)
        kit.drain("k")
        check(kit, load.all(), targets)
        assert "state restored from a backup" in kit.mesh.layout.log("spark").read_text()


@needs_rsync
@pytest.mark.timeout(900)
def test_backups_go_to_an_rsync_daemon_and_a_lost_disk_comes_back_from_there(
    tmp_path: Path,
) -> None:
    with rsync_daemon(tmp_path / "daemon") as (url, there):
        place = f"{url}/mesh"
        with operator_kit(
            tmp_path / "mesh", SERVICES, PENSTOCK_CHECKPOINT_BACKUP_DIR=place, **QUICK
        ) as kit:
            kit.commit([Snode(kit.writer.new_id(), 1)])
            source, targets = start(kit)
            vault = Vault(str(there / "mesh"))
            load = Load(kit, source)
            with load.flowing():
                first = backed_up(vault, subject(kit))
                backed_up(vault, subject(kit), sum(first.facts["positions"].values()) + 200)
                driver = kit.mesh.pid("spark")
                lose_disk(kit.mesh)
                kit.mesh.wait_ready("spark", not_pid=driver, seconds=400)
            kit.drain("k")
            check(kit, load.all(), targets)
            assert "state restored from a backup" in kit.mesh.layout.log("spark").read_text()
            assert newest_verified(Vault(place), subject(kit)) is not None


@pytest.mark.timeout(900)
def test_a_standby_goes_on_where_a_node_sleeps_and_the_sleeper_publishes_nothing_more(
    tmp_path: Path,
) -> None:
    with (
        operator_kit(tmp_path / "one", SERVICES, **QUICK) as kit,
        standby(kit, tmp_path / "two", tmp_path / "one" / "backup") as two,
    ):
        for node in (1, 2):
            kit.commit([Snode(kit.writer.new_id(), node)])
        source, targets = start(kit)
        vault = Vault(str(tmp_path / "one" / "backup"))
        load = Load(kit, source)
        with load.flowing():
            backed_up(vault, subject(kit), 100)
            sleepers = kit.mesh.processes("spark")
            for process in sleepers:
                process.suspend()
            log = two.layout.log("spark")
            began = time.monotonic()
            eventually(
                lambda: (
                    "leading the jobs" in log.read_text() and "query started" in log.read_text()
                ),
                60,
            )
            print(f"taken over in {time.monotonic() - began:.1f} s")
            time.sleep(3)
            for process in sleepers:
                with suppress(psutil.Error):
                    process.resume()
            # the sleeper sees that it has lost the jobs, ends, and comes back as the one that
            # stands by
            eventually(lambda: "standing by" in kit.mesh.layout.log("spark").read_text(), 60)
            newer = backed_up(vault, subject(kit))
            backed_up(vault, subject(kit), sum(newer.facts["positions"].values()))
        kit.drain("k")
        check(kit, load.all(), targets)
        assert newest_verified(vault, subject(kit)) is not None


def test_a_snode_that_dies_before_publishing_leaves_whole_backups_only(tmp_path: Path) -> None:
    with (
        running_mesh(
            tmp_path / "mesh",
            environment={
                "PENSTOCK_SPARK_EPOCH_SECONDS": "6",
                "PENSTOCK_SNODE_FAILPOINTS": "before_publish:exit:2",
            },
        ) as mesh,
        penstock.connect(mesh.gateway_url, password=mesh.password) as client,
    ):
        with pytest.raises(PenstockError, match="E_NO_SNODE"):
            client.execute("DROP SNODE ON DNODE 1")
        with pytest.raises(PenstockError, match="E_NO_DNODE"):
            client.execute("CREATE SNODE ON DNODE 9")
        client.execute("CREATE SNODE ON DNODE 1")
        with pytest.raises(PenstockError, match="E_SNODE_EXISTS"):
            client.execute("CREATE SNODE ON DNODE 1")
        with pytest.raises(PenstockError, match="REPLICA 3 needs 3"):
            client.execute("CREATE DATABASE several REPLICA 3")
        nodes = client.query("SHOW DNODES").rows
        assert [(n[0], n[2]) for n in nodes] == [(1, "ready")]
        name = unique("sn")
        client.execute(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (ts TIMESTAMP, v INT)")
        pid = mesh.pid("snode")
        rows = iter(range(1_700_000_000_000, 1_800_000_000_000, 1000))

        def dead() -> bool:
            client.write(f"{name}.t", [{"ts": next(rows), "v": 1}])
            return mesh.pid("snode") != pid

        eventually(dead, 60, every=0.2)
        vault = Vault(str(mesh.layout.root / "backup"))
        said = eventually(lambda: (r := client.query("SHOW SNODES").rows[0])[5] >= 2 and r, 60)
        assert (said[0], said[3]) == (1, "ready")
        for found in (b for s in vault.subjects() for b in vault.backups(s)):
            assert vault.faults(found) == []
        assert client.query("SELECT count(*) FROM information_schema.ins_snodes").rows == [(1,)]
        client.execute("DROP SNODE ON DNODE 1")
        assert client.query("SHOW SNODES").rows == []
