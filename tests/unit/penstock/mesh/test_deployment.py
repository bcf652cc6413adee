"""What goes into a backup of a mesh, and when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.mesh.deployment import backup, files, restore
from penstock.mesh.layout import Layout
from penstock.storage.vault import Vault

KEPT = (
    "kafka/log/in.d-0/00.log",
    "kafka/log/meta.properties",
    "segments/table=1/a.parquet",
    "state/1/t-0/p1.full",
    "redis/aof/1.aof",
    "federation/deployment",
)
LEFT = (
    "kafka/log/in.d-0/00.index",
    "redis/redis.conf",
    "secrets/root.password",
    "logs/spark.log",
    "run/lock",
    "backup/q.1/x.backup",
)


def mesh(root: Path) -> Layout:
    for name in (*KEPT, *LEFT):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return Layout(root)


def test_a_mesh_that_is_down_goes_into_a_backup_and_out_of_it(tmp_path: Path) -> None:
    layout = mesh(tmp_path / "one")
    vault = Vault(str(tmp_path / "v"))
    done = backup(layout, vault, 1000)
    assert {i.path for i in done.backup.items} == set(KEPT) == set(files(layout.root))
    restore(Layout(tmp_path / "two"), vault, done.backup)
    assert {n: (tmp_path / "two" / n).read_text() for n in KEPT} == {n: n for n in KEPT}
    assert backup(layout, vault, 2000).backup.number == 2


def test_refusals(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "v"))
    with pytest.raises(ConfigError, match="no Kafka of a mesh"):
        backup(Layout(tmp_path / "nothing"), vault, 1)
    layout = mesh(tmp_path / "one")
    made = backup(layout, vault, 1).backup
    with pytest.raises(ConfigError, match="is not empty"):
        restore(layout, vault, made)
