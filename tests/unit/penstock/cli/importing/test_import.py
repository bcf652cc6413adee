"""penstock import against a gateway: what is asked, shown, made and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CatalogError, ConfigError, PenstockError, SchemaError
from tests.unit.penstock.cli.data_kit import Deployment, deployment

METERS = pa.schema(
    [
        ("ts", pa.timestamp("ms", "UTC")),
        ("volts", pa.float64()),
        ("n", pa.int32()),
        ("site", pa.large_string()),
    ]
)
READINGS = """\
ts,volts,n,meter,site
2026-03-01T09:00:00Z,220.5,1,m1,Ulm
2026-03-01 09:00:01,,2,m2,"Bonn, south"
2026-03-01T10:00:02+01:00,221,3,m1,Ulm
"""
START = 1_772_355_600_000


def _answer(sql: str) -> pa.Table:
    if sql.startswith("CREATE"):
        return pa.table({"affected_rows": [0]})
    if "ins_databases" in sql:
        return pa.table({"name": ["Power"], "precision": ["ms"]})
    if "ins_stables" in sql:
        return pa.table({"db_name": ["Power"], "stable_name": ["Meters"]})
    if sql == "SELECT * FROM `power`.`meters` LIMIT 0":
        return METERS.empty_table()
    if sql == "SELECT * FROM `power`.`plain` LIMIT 0":
        return METERS.empty_table().select(["ts", "volts"])
    raise CatalogError("there is no table", code="E_NO_TABLE")


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(_answer, tmp_path) as made:
        yield made


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    path.write_text(READINGS, encoding="utf-8")
    return path


def written(mesh: Deployment) -> pa.Table:
    return pa.concat_tables([rows for _, _, rows in mesh.writes])


def test_rows_go_into_a_supertable_that_is_there(mesh: Deployment, readings: Path) -> None:
    done = mesh.run("import", str(readings), "power.meters", "--tbname", "meter")
    assert done.exit_code == 0, done.exception
    assert "3 rows in power.meters" in done.stdout
    rows = written(mesh)
    assert rows.select(["tbname", "volts", "n", "site"]).to_pylist() == [
        {"tbname": "m1", "volts": 220.5, "n": 1, "site": "Ulm"},
        {"tbname": "m2", "volts": None, "n": 2, "site": "Bonn, south"},
        {"tbname": "m1", "volts": 221.0, "n": 3, "site": "Ulm"},
    ]
    assert rows.column("ts").cast(pa.int64()).to_pylist() == [START, START + 1000, START + 2000]
    assert rows.schema.field("n").type == pa.int32()
    assert not [sql for sql in mesh.asked if sql.startswith("CREATE")]


def test_types_are_shown_before_anything_is_written(mesh: Deployment, readings: Path) -> None:
    done = mesh.run("import", str(readings), "power.fresh", "--yes")
    lines = [line.split() for line in done.stderr.splitlines()]
    assert ["volts", "DOUBLE", "volts", "DOUBLE"] in lines
    assert ["meter", "VARCHAR(16)", "meter", "VARCHAR"] in lines
    assert ["ts", "TIMESTAMP", "ts", "TIMESTAMP"] in lines
    assert (
        "CREATE TABLE `power`.`fresh` (`ts` TIMESTAMP, `volts` DOUBLE, `n` BIGINT,"
        " `meter` VARCHAR(16), `site` VARCHAR(16))"
    ) in mesh.asked
    assert written(mesh).column_names == ["ts", "volts", "n", "meter", "site"]


def test_a_new_supertable_has_its_tags(mesh: Deployment, readings: Path) -> None:
    words = ("--tbname", "meter", "--tags", "site", "--yes")
    done = mesh.run("import", str(readings), "power.fresh", *words)
    assert done.exit_code == 0, done.exception
    assert (
        "CREATE STABLE `power`.`fresh` (`ts` TIMESTAMP, `volts` DOUBLE, `n` BIGINT)"
        " TAGS (`site` VARCHAR(16))"
    ) in mesh.asked
    assert written(mesh).column_names == ["tbname", "ts", "volts", "n", "site"]


def test_no_table_is_made_when_nobody_can_be_asked(mesh: Deployment, readings: Path) -> None:
    done = mesh.run("import", str(readings), "power.fresh")
    assert isinstance(done.exception, ConfigError) and "--yes" in done.exception.hint
    assert not mesh.writes and not [sql for sql in mesh.asked if sql.startswith("CREATE")]


def test_a_trial_writes_nothing(mesh: Deployment, readings: Path) -> None:
    done = mesh.run("import", str(readings), "power.fresh", "--dry-run")
    assert done.stdout == "3 rows fit; nothing was written\n"
    assert not mesh.writes and not [sql for sql in mesh.asked if sql.startswith("CREATE")]


def test_the_same_import_has_the_same_keys(mesh: Deployment, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    lines = "".join(f"{START + n},{n}\n" for n in range(25_000))
    path.write_text(f"ts,volts\n{lines}", encoding="utf-8")
    for _ in range(2):
        done = mesh.run("import", str(path), "power.plain")
        assert done.exit_code == 0, done.exception
    keys = [key for _, key, _ in mesh.writes]
    assert len(set(keys)) == 3 and keys[:3] == keys[3:]
    assert [rows.num_rows for _, _, rows in mesh.writes] == [10_000, 10_000, 5_000] * 2
    path.write_text(f"ts,volts\n{lines.replace(',7', ',8')}", encoding="utf-8")
    mesh.run("import", str(path), "power.plain")
    assert not {key for _, key, _ in mesh.writes[6:]} & set(keys)


def test_ndjson_and_parquet_give_the_same_rows(mesh: Deployment, tmp_path: Path) -> None:
    lines = tmp_path / "rows.ndjson"
    lines.write_text(
        '{"ts": "2026-03-01T09:00:00Z", "volts": 1}\n\n{"ts": 1772355601000, "volts": null}\n',
        encoding="utf-8",
    )
    # times of both forms: text is what holds them, so a new table would be refused
    table = tmp_path / "rows.parquet"
    times = pa.array([START * 1000, START * 1000 + 10**6]).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, "volts": pa.array([1.0, None], pa.float32())}), table)
    for path in (table,):
        done = mesh.run("import", str(path), "power.plain")
        assert done.exit_code == 0, done.exception
        rows = mesh.writes.pop()[2]
        assert rows.column("ts").cast(pa.int64()).to_pylist() == [START, START + 1000]
        assert rows.column("volts").to_pylist() == [1.0, None]
    done = mesh.run("import", str(lines), "power.plain")
    assert "line 3" in str(done.exception)


def test_what_the_gateway_refuses_is_told_by_its_line(mesh: Deployment, readings: Path) -> None:
    def judge(rows: pa.Table) -> None:
        raise SchemaError('row 1, column "site": is longer than 4 bytes', code="E_ROW")

    mesh.judge = judge
    done = mesh.run("import", str(readings), "power.meters", "--tbname", "meter")
    assert 'readings.csv, line 3: column "site": is longer' in str(done.exception)


def test_a_stop_half_way_says_how_far_it_came(mesh: Deployment, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text(
        "ts,volts\n" + "".join(f"{START + n},{n}\n" for n in range(12_000)) + "soon,1\n",
        encoding="utf-8",
    )
    done = mesh.run("import", str(path), "power.plain")
    assert "many.csv, line 12002" in str(done.exception)
    assert "(10,000 rows before it are written)" in str(done.exception)


@pytest.mark.parametrize(
    ("table", "words", "said"),
    [
        ("power.meters", (), "which child table of power.meters"),
        ("power.plain", (), 'power.plain has no column "n"'),
        ("power.fresh", ("--tags", "sit"), 'the file has no column "sit"'),
        ("power.fresh", ("--tags", "site"), "which child table of power.fresh"),
        ("power.fresh", ("--tbname", "meter"), "a supertable without tags"),
        ("fresh", (), "which database is fresh in?"),
        ("power.fresh", ("--delimiter", "<>"), "does not separate fields"),
    ],
)
def test_what_does_not_fit_the_table_is_said(
    mesh: Deployment, readings: Path, table: str, words: tuple[str, ...], said: str
) -> None:
    done = mesh.run("import", str(readings), table, *words)
    assert isinstance(done.exception, PenstockError) and said in str(done.exception)
    assert not mesh.writes


def test_a_file_that_is_not_there_is_said(mesh: Deployment, tmp_path: Path) -> None:
    done = mesh.run("import", str(tmp_path / "no.csv"), "power.plain")
    assert isinstance(done.exception, ConfigError) and "No such file" in str(done.exception)
    done = mesh.run("import", str(tmp_path / "rows.xlsx"), "power.plain")
    assert "names end in .csv" in str(done.exception)
