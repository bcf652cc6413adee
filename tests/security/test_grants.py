"""A foreign database through the ways to SQL: rows, definitions and rights stay behind its
grants.
"""

from __future__ import annotations

import pytest

from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.security.conftest import FOREIGN, OWN, SECRET, Account, Attacker
from tests.stack.conftest import eventually

ATTACKS = [
    f"SELECT * FROM {FOREIGN}.secrets",
    f"SELECT who FROM (SELECT who FROM {FOREIGN}.secrets)",
    f"SELECT (SELECT max(who) FROM {FOREIGN}.secrets) FROM {OWN}.secrets",
    f"SELECT who FROM {OWN}.secrets UNION ALL SELECT who FROM {FOREIGN}.secrets",
    f"SELECT f.who FROM {OWN}.secrets o, {FOREIGN}.secrets f",
    f"EXPLAIN SELECT who FROM {FOREIGN}.secrets",
    f"INSERT INTO {OWN}.secrets SELECT ts, who FROM {FOREIGN}.secrets",
    f"INSERT INTO {FOREIGN}.secrets VALUES (now, 'x')",
    f"DELETE FROM {FOREIGN}.secrets",
    f"DROP TABLE {FOREIGN}.secrets",
    f"CREATE STREAM {OWN}.peek TRIGGER AT_ONCE INTO {OWN}.seen AS SELECT _wstart, count(*) AS n FROM {FOREIGN}.secrets INTERVAL(1m)",
    f"DESCRIBE {FOREIGN}.secrets",
    f"SHOW CREATE TABLE {FOREIGN}.secrets",
    f"GRANT READ ON {FOREIGN}.* TO stranger",
    "CREATE USER mallory PASS 'correct horse'",
    "ALTER USER root PASS 'correct horse'",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_foreign_database_stays_closed(
    anyone: Attacker, victims: Connection, attack: str
) -> None:
    answer = anyone.sql(attack)
    assert answer.status_code == (401 if anyone.password is None else 403), answer.text
    assert SECRET not in answer.text
    assert victims.query(f"SELECT who FROM {FOREIGN}.secrets").rows == [(SECRET,)]


def test_a_check_of_statements_tells_no_more(anyone: Attacker, victims: Connection) -> None:
    with anyone.http() as client:
        for attack in ATTACKS:
            answer = client.post("/v1/check", json={"sql": attack})
            if anyone.password is None:
                assert answer.status_code == 401
                continue
            (mistake,) = answer.json()["mistakes"]
            assert mistake["code"] == "E_FORBIDDEN", attack
            assert SECRET not in answer.text


def test_each_right_gives_what_it_says(
    reader: Attacker, writer: Attacker, creator: Attacker, victims: Connection
) -> None:
    assert reader.sql(f"SELECT who FROM {OWN}.secrets").json()["data"][0] == ["mine"]
    assert writer.sql(f"INSERT INTO {OWN}.secrets VALUES ('2026-03-02', 'hers')").status_code == 200
    assert creator.sql(f"CREATE TABLE {OWN}.made (ts TIMESTAMP, v INT)").status_code == 200
    eventually(lambda: ("hers",) in victims.query(f"SELECT who FROM {OWN}.secrets").rows)
    assert writer.sql(f"SELECT who FROM {OWN}.secrets").status_code == 403
    assert reader.sql(f"INSERT INTO {OWN}.secrets VALUES (now, 'x')").status_code == 403
    assert creator.sql(f"SELECT who FROM {OWN}.secrets").status_code == 403


def test_another_account_of_the_machine_reads_no_password(
    account: Account, mesh: RunningMesh
) -> None:
    secrets = mesh.layout.root / "secrets"
    files = [p for p in secrets.iterdir() if p.is_file()]
    assert files
    assert not [p for p in (secrets, *files) if account.reads(p)]
