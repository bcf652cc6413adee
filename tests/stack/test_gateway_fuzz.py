"""Mutated statements against the whole front end: each is accepted or refused with an error of
ours, never a bug or a silence.
"""

from __future__ import annotations

import random
import re

import requests

from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

COUNT = 600
SEEDS = """\
CREATE STABLE IF NOT EXISTS m (ts TIMESTAMP, v DOUBLE, n INT, s VARCHAR(8), b BOOL, d DECIMAL(8,2)) TAGS (g INT, site NCHAR(8))
CREATE TABLE IF NOT EXISTS p (ts TIMESTAMP, k INT COMPOSITE KEY, v FLOAT)
CREATE TABLE IF NOT EXISTS c1 USING m TAGS (1, 'x') c2 USING m (g) TAGS (2)
INSERT INTO c1 VALUES (now, 1.5, 2, 'x', true, 1.25) (now+1s, NULL, NULL, NULL, NULL, NULL)
INSERT INTO c9 USING m (g) TAGS (5) (ts, v) VALUES ('2024-01-01', 3) p VALUES (now, 1, 2)
INSERT INTO m (tbname, ts, v) VALUES ('c3', 5, 1)
SELECT * FROM m
SELECT tbname, count(*), avg(v) FROM m PARTITION BY tbname INTERVAL(10s) FILL(NULL)
SELECT last_row(*), g FROM m GROUP BY g
SELECT count(*) FROM m WHERE ts BETWEEN '2024-01-01' AND now AND v > 1 ORDER BY ts DESC LIMIT 5 OFFSET 1
SELECT * FROM information_schema.ins_tables WHERE db_name = 'f'
SHOW TABLES LIKE 'c%'
SHOW CREATE STABLE m
DESCRIBE m
DELETE FROM m WHERE ts < 100 AND tbname = 'c1'
ALTER STABLE m ADD COLUMN w BIGINT
ALTER STABLE m MODIFY COLUMN s VARCHAR(16)
ALTER TABLE c1 SET TAG g = 7, site = 'y'
EXPLAIN CREATE STREAM s INTO r AS SELECT _wstart, count(*) FROM m PARTITION BY tbname INTERVAL(10s)
DROP TABLE IF EXISTS c9
SELECT 1""".splitlines()
ODD = [
    "'",
    "`",
    ";",
    "--",
    "/*",
    "NULL",
    "-1",
    "1e400",
    "9" * 30,
    "'2024-13-01'",
    "now",
    "\x00",
    "é",
    "(",
    ")",
    ",",
    "*",
]


def mutated(chance: random.Random) -> str:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", chance.choice(SEEDS))
    words = [w for seed in SEEDS for w in seed.split()] + ODD
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 4))):
        at = chance.randrange(len(pieces))
        action = chance.random()
        if action < 0.25 and len(pieces) > 1:
            del pieces[at]
        elif action < 0.5:
            pieces[at] = chance.choice(words)
        elif action < 0.75:
            pieces.insert(at, chance.choice(words) + " ")
        else:
            other = chance.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
    return "".join(pieces)


def test_mutated_statements(mesh: RunningMesh) -> None:
    chance = random.Random(20)
    database = unique("fuzz")
    with requests.Session() as session:
        session.auth = (mesh.user, mesh.password)

        def ask(sql: str) -> requests.Response:
            return session.post(
                f"{mesh.gateway_url}/rest/sql/{database}", data=sql.encode(), timeout=60
            )

        assert ask(f"CREATE DATABASE {database} PARTITIONS 1").json()["code"] == 0
        accepted = 0
        for _ in range(COUNT):
            sql = mutated(chance)
            answer = ask(sql)
            body = answer.json()
            accepted += body["code"] == 0
            if body["code"] == 0 or not sql.strip():
                continue
            assert answer.status_code in (200, 400), sql
            assert body["error"]["code"] not in ("E_INTERNAL", "E_REMOTE"), (sql, body)
            assert body["error"]["message"], sql
        assert accepted > COUNT // 20
