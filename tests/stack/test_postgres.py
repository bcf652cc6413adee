"""The PostgreSQL wire of a mesh, with the real psql and with drivers' messages: lists, values,
parameters, rights, and TLS.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.display import services_table
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.certificates import issued
from tests.stack.endpoints_kit import PASSWORD, mesh_without_jobs
from tests.stack.postgres_kit import PSQL, PgClient, psql

WIRE = {"PENSTOCK_GATEWAY_POSTGRES": "1"}
DEFINITIONS = (
    "CREATE DATABASE plant;"
    " CREATE STABLE plant.meters (ts TIMESTAMP, volts DOUBLE, note NCHAR(16))"
    " TAGS (site VARCHAR(8));"
    " CREATE TABLE plant.secrets (ts TIMESTAMP, v INT);"
    " INSERT INTO plant.m1 USING plant.meters TAGS ('north')"
    " VALUES ('2026-03-01 09:00:00', 219.5, 'ä') ('2026-03-01 09:00:01', NULL, NULL);"
    " INSERT INTO plant.m2 USING plant.meters TAGS ('south')"
    " VALUES ('2026-03-01 09:00:02', 221, 'it''s');"
    " INSERT INTO plant.secrets VALUES ('2026-03-01', 4711)"
)
needs_psql = pytest.mark.skipif(PSQL is None, reason="psql is not installed")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with mesh_without_jobs(tmp_path_factory.mktemp("mesh"), environment=WIRE) as running:
        yield running


def _fill(mesh: RunningMesh, ca: Path | None = None) -> Connection:
    """Make tables and the reader ann; the connection of root."""
    root = connect(
        mesh.gateway_url,
        user="root",
        password=mesh.password,
        options=ConnectionOptions(timeout=150, ca=str(ca) if ca else None),
    )
    root.execute(DEFINITIONS)
    root.execute(f"CREATE USER ann PASS '{PASSWORD}'; GRANT READ ON plant.meters TO ann")
    return root


@pytest.fixture(scope="module")
def root(mesh: RunningMesh) -> Iterator[Connection]:
    with _fill(mesh) as made:
        yield made


def _port(mesh: RunningMesh) -> int:
    return int(mesh.state()["ports"]["postgres"])


@pytest.fixture
def ann(mesh: RunningMesh, root: Connection) -> Iterator[PgClient]:
    client = PgClient(_port(mesh), "ann", PASSWORD, "plant")
    assert not client.begun.error
    yield client
    client.close()


@needs_psql
def test_psql_lists_describes_and_reads(mesh: RunningMesh, root: Connection) -> None:
    said = psql(
        f"port={_port(mesh)} user=root dbname=plant",
        mesh.password,
        r"\d",
        r"\d meters",
        r"\d+ meters",
        r"\dn",
        "SET timezone = 'Europe/Berlin'",
        "SELECT ts, volts, note, site FROM meters ORDER BY ts",
        "SHOW DATABASES",
    )
    lines = said.splitlines()
    assert "ERROR" not in said, said
    assert {"plant|meters|table|root", "plant|secrets|table|root"} <= set(lines)
    assert {"ts|timestamp with time zone||not null|", "site|text|||", "plant|root"} <= set(lines)
    assert any(line.startswith("volts|double precision||||plain|") for line in lines), said
    wanted = ["219.5|ä|north", "||north", "221|it's|south"]
    assert [line.partition("|")[2] for line in lines if line.startswith("2026-03-01")] == wanted
    assert "2026-03-01 10:00:00+01|219.5|ä|north" in lines
    assert "plant" in lines


@needs_psql
def test_psql_shows_a_reader_what_is_theirs_and_writes_nothing(
    mesh: RunningMesh, root: Connection
) -> None:
    address = f"port={_port(mesh)} user=ann dbname=plant"
    said = psql(
        address,
        PASSWORD,
        r"\d",
        r"\d+ secrets",
        "SELECT count(*) FROM meters",
        "SELECT v FROM secrets",
        "SELECT v FROM plant.nothing",
        "INSERT INTO meters VALUES (now(), 1)",
    )
    assert "plant|meters|table|root" in said and "\n3\n" in said
    assert "4711" not in said and "plant|secrets" not in said
    assert 'Did not find any relation named "secrets"' in said
    assert said.count("permission") + said.count("READ on") >= 2 and "for reading" in said
    for password in ("wrong", ""):
        refused = psql(address, password, "SELECT 1")
        assert "psql: error" in refused, refused
    assert root.query("SELECT count(*) FROM plant.meters").rows == [(3,)]


def test_parameters_are_bound_beside_the_text(ann: PgClient) -> None:
    sql = "SELECT note, site FROM plant.meters WHERE volts > $1 AND site = $2 ORDER BY ts"
    reply = ann.prepared(sql, [b"220", b"south"])
    assert (reply.error, reply.rows, reply.status) == ({}, [["it's", "south"]], "I")
    hostile = ann.prepared(sql, [b"0", b"' OR 1 = 1 --"])
    assert (hostile.error, hostile.rows) == ({}, [])
    closed = ann.prepared("SELECT v FROM plant.secrets WHERE v = $1", [b"4711"])
    assert closed.error["C"] == "42501" and not closed.rows
    assert ann.query("SELECT count(*) FROM meters").rows == [["3"]]


def test_a_connection_ends_with_its_users_password(mesh: RunningMesh, root: Connection) -> None:
    root.execute(f"CREATE USER leaver PASS '{PASSWORD}'; GRANT READ ON plant.meters TO leaver")
    client = PgClient(_port(mesh), "leaver", PASSWORD, "plant")
    assert client.query("SELECT count(*) FROM meters").rows == [["3"]]
    root.execute(f"ALTER USER leaver PASS '{PASSWORD} again'")
    reply = client.query("SELECT count(*) FROM meters")
    assert reply.ended and reply.error["C"] == "28P01"
    client.close()


def test_the_port_is_shown_beside_the_gateways(mesh: RunningMesh) -> None:
    state = mesh.state()
    names = list(state["services"])
    (shown,) = (c for c in services_table(state).columns if c.header == "port")
    ports = list(shown.cells)[names.index("gateway")]
    assert ports == f"{state['ports']['gateway']} {_port(mesh)}"


def test_with_a_certificate_it_speaks_tls_only(tmp_path: Path) -> None:
    made = issued(tmp_path / "tls")
    environment = WIRE | {
        "PENSTOCK_TLS_CA": str(made.ca),
        "PENSTOCK_TLS_CERT": str(made.cert),
        "PENSTOCK_TLS_KEY": str(made.key),
    }
    with (
        mesh_without_jobs(tmp_path / "mesh", environment=environment) as mesh,
        _fill(mesh, made.ca),
    ):
        port = _port(mesh)
        plain = PgClient(port, "ann", PASSWORD, "plant")
        assert "TLS only" in plain.begun.error["M"] and plain.reply().ended
        context = ssl.create_default_context(cafile=str(made.ca))
        client = PgClient(port, "ann", PASSWORD, "plant", context)
        sql = "SELECT volts FROM meters WHERE site = $1 AND volts IS NOT NULL"
        assert client.prepared(sql, [b"north"]).rows == [["219.5"]]
        client.close()
        if PSQL is None:
            pytest.skip("psql is not installed")
        address = f"port={port} user=ann dbname=plant sslmode="
        said = psql(f"{address}verify-full sslrootcert={made.ca}", PASSWORD, r"\d", r"\conninfo")
        assert "plant|meters|table|root" in said and "SSL connection" in said, said
        said = psql(f"{address}disable", PASSWORD, "SELECT 1")
        assert "TLS only" in said, said
