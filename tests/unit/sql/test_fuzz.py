"""Ten thousand random and mutated statements: each is accepted (and then has a canonical text) or a
SqlError, nothing else.
"""

from __future__ import annotations

import random
import re
import time

import pytest

from penstock.errors import SqlError
from penstock.sql import parse, render
from tests.nightly import drawn

# ruff: noqa: E501
SEEDS = [
    "CREATE DATABASE IF NOT EXISTS power PRECISION 'us' KEEP 3650d PARTITIONS 8 MAX_AHEAD 1d VGROUPS 4 CACHEMODEL 'both' DURATION 10d",
    "CREATE STABLE met (ts TIMESTAMP, a INT COMPOSITE KEY, b VARCHAR(20), d DECIMAL(10, 2)) TAGS (ta INT, tb NCHAR(8) COMMENT 'x') "
    "WITH (topic='own', partitions=16)",
    "CREATE TABLE d1 USING met (ta, tb) TAGS (1, 'x') d2 USING met TAGS (-2.5, NULL)",
    "INSERT INTO d1 USING met TAGS (1, 'a') (ts, a) VALUES (now + 1s, 1) ('2024-01-01 00:00:00', NULL) d2 VALUES (1, 2.5e3) (2, 'it''s \\n')",
    "CREATE STREAM IF NOT EXISTS s1 TRIGGER MAX_DELAY 5s WATERMARK 10s IGNORE EXPIRED 0 IGNORE UPDATE 1 FILL_HISTORY 1 ASYNC DELETE_MARK 1d "
    "INTO db.out1 (ts, c COMPOSITE KEY) TAGS (cc VARCHAR(100)) SUBTABLE(concat('new-', tname)) AS SELECT _wstart, count(*) c1, max(a)+min(b) x "
    "FROM met WHERE a > 5 AND b IN (1, 2) OR NOT c IS NOT NULL PARTITION BY tbname tname INTERVAL(10s, 5s) SLIDING(5s) FILL(VALUE, 1, 2) "
    "NOTIFY ('ws://h:1/n') ON ('WINDOW_OPEN', 'WINDOW_CLOSE') NOTIFY_HISTORY 1 ON_FAILURE DROP SIGNED_BY 'k'",
    "CREATE STREAM s2 INTO o AS SELECT _wstart ws, count(*) FROM d1 EVENT_WINDOW START WITH a = 0 END WITH b BETWEEN 1 AND 9 TRUE_FOR(3s)",
    "CREATE STREAM s3 FROM d1 WHERE a > 1 PARTITION BY tbname COUNT_WINDOW(3) NOTIFY ON ('WINDOW_CLOSE') WHERE count(*) > 2",
    "SELECT DISTINCT t1.a, CASE WHEN a > 1 THEN 'x' ELSE b -> 'k' END AS y FROM db.t1 AS t1 LEFT JOIN (SELECT * FROM t2) t2 ON t1.ts = t2.ts "
    "WHERE EXISTS (SELECT 1) AND s LIKE 'a%' GROUP BY a HAVING count(*) > 1 ORDER BY 1 DESC, a NULLS LAST LIMIT 10 OFFSET 5",
    "(SELECT a FROM b) UNION ALL SELECT cast(c AS BIGINT UNSIGNED) FROM d SESSION(ts, 1a) ORDER BY a LIMIT 1, 2",
    "WITH x (p, q) AS (SELECT a, b FROM t), y AS (SELECT * FROM x) SELECT sum(p) FILTER (WHERE q > 1) OVER w, rank() OVER (PARTITION BY p "
    "ORDER BY q DESC NULLS LAST) AS r FROM y WINDOW w AS (ORDER BY q RANGE BETWEEN 10s PRECEDING AND CURRENT ROW) QUALIFY r = 1 EXCEPT SELECT 1, 2",
    "ALTER TABLE d1 SET TAG ta = 1, tb = 'x'; ALTER STABLE met ADD COLUMN z DOUBLE; DROP TABLE IF EXISTS a, b; USE power",
    "DELETE FROM d1 WHERE ts >= '2024-01-01' AND ts < now - 1d; SHOW power.STREAMS LIKE 'a%'; DESCRIBE met; RESUME STREAM s IGNORE UNTREATED",
    "EXPLAIN CREATE STREAM s INTO o AS SELECT last_row(*) FROM t STATE_WINDOW(CASE a WHEN 1 THEN 2 END) -- c\n; /* x */ FLUSH STREAM `a b`",
    "RECALCULATE STREAM s FROM '2024-01-01' TO now; CREATE VTABLE v (ts TIMESTAMP, a INT FROM d1.a); CREATE SNODE ON DNODE 1",
]
WORDS = sorted(
    {
        w
        for s in SEEDS
        for w in s.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    }
)
LITERALS = [
    "0",
    "1",
    "-1",
    "2.5",
    "1e3",
    "'x'",
    '"y"',
    "NULL",
    "TRUE",
    "now",
    "10s",
    "1n",
    "`q`",
    "a",
    "tbname",
    "18446744073709551616",
]
ODD = [
    "'",
    '"',
    "`",
    ";",
    "--",
    "/*",
    "*/",
    "\\",
    "\0",
    "é",
    "名",
    "(",
    ")",
    ",",
    "10s",
    "1e",
    "1e400",
    "0x1F",
    "{#",
    "#}",
    "{{",
    "@",
    "?",
    ":=",
    "\ud800",
    "9" * 50,
    "-" * 3,
    "[",
    "]",
    "||",
    "::",
    ".",
    "..",
    "%",
    "!",
    "~",
    "\u2028",
    "\u00a0",
    "\r",
    "\t",
    "_",
    "$$",
    "N'x'",
]


def mutated(rng: random.Random) -> str:
    """A statement with a few things removed, doubled, swapped or put in; or words at random."""
    if rng.random() < 0.15:
        return " ".join(
            rng.choice(WORDS if rng.random() < 0.9 else ODD) for _ in range(rng.randint(1, 30))
        )
    text = rng.choice(SEEDS)
    if rng.random() < 0.5:
        words = re.findall(r"\w+|\s+|'[^']*'|.", text)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(words))
            words[at] = rng.choice(
                [
                    words[at] * 2,
                    "",
                    rng.choice(WORDS),
                    rng.choice(words),
                    rng.choice(LITERALS),
                    words[at].swapcase(),
                ]
            )
        return "".join(words)
    for _ in range(rng.randint(1, 4)):
        a, b = sorted(rng.randint(0, len(text)) for _ in range(2))
        b = min(b, a + 25)
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:]
        elif kind == 2:
            text = text[:a] + rng.choice(ODD) + text[a:]
        elif kind == 3:
            text = f"{text[:a]} {rng.choice(WORDS)} {text[a:]}"
        elif kind == 4:
            text = (
                text[:a]
                + chr(rng.choice([rng.randrange(128), rng.randrange(0x3000)]))
                + text[a + 1 :]
            )
        else:
            text = text[:a] + rng.choice(SEEDS)[a:]
    return text


@pytest.mark.slow
def test_ten_thousand_statements_are_accepted_or_refused() -> None:
    rng = random.Random(20240115)
    accepted = 0
    count = drawn(10_000)
    begun = time.process_time()
    for _ in range(count):
        text = mutated(rng)
        try:
            statements = parse(text)
        except SqlError as error:
            assert str(error), text
            continue
        for statement in statements:
            accepted += 1
            assert parse(render(statement)) == [statement], text
    assert accepted > count * 0.15
    assert time.process_time() - begun < 60
