"""Mistakes that people make: where the error points, and what it says to do instead."""

from __future__ import annotations

import pytest

from penstock.errors import SqlSyntaxError
from penstock.sql import parse
from penstock.sql.mistakes.explain import MAX_LENGTH

T = "CREATE TABLE t (ts TIMESTAMP, a INT"

S = "CREATE STREAM s INTO r AS SELECT a FROM t"
#: text, column of the error, words of its hint
MISTAKES = [
    # typing errors
    ("SELCT 1", 1, "did you mean SELECT?"),
    ("SELECT a FORM t", 10, "did you mean FROM?"),
    ("SELECT a FROM t WHER a = 1", 17, "did you mean WHERE?"),
    ("SELECT a FROM t WEHRE a = 1", 17, "did you mean WHERE?"),
    ("SELECT a FROM t GROPU BY a", 17, "did you mean GROUP?"),
    ("SELECT a FROM t ODER BY a", 17, "did you mean ORDER?"),
    ("SELECT a FROM t WHERE a = 1 ODER BY a", 29, "did you mean ORDER?"),
    ("SELECT a FROM t LIMT 5", 17, "did you mean LIMIT?"),
    ("SELECT a FROM t PARTITON BY a", 17, "did you mean PARTITION?"),
    ("SELECT a FROM t INTERVL(5m)", 17, "did you mean INTERVAL?"),
    ("SELECT x FROM (SELECT a FORM t)", 25, "did you mean FROM?"),
    ("SELECT a FROM t ORDER BY a DSEC", 28, "did you mean DESC?"),
    ("INSRT INTO t VALUES (1)", 1, "did you mean INSERT?"),
    ("INSERT INTO t VALUS (1)", 15, "did you mean VALUES?"),
    ("CREAT TABLE t (ts TIMESTAMP)", 1, "did you mean CREATE?"),
    ("CREATE TABEL t (ts TIMESTAMP)", 8, "did you mean TABLE?"),
    ("CREATE STRAEM s INTO t AS SELECT 1", 8, "did you mean STREAM?"),
    ("CREATE STREAM s INTO t AS SELCT 1", 27, "did you mean SELECT?"),
    ("DELETE FORM t", 8, "did you mean FROM?"),
    ("DROP TABEL t", 6, "did you mean TABLE?"),
    ("SHOW TABELS", 6, "did you mean TABLES?"),
    # statements of others, commands of shells
    ("UPDATE t SET a = 1", 1, "INSERT a row with the same time"),
    ("REPLACE INTO t VALUES (1)", 1, "INSERT a row with the same time"),
    ("TRUNCATE TABLE t", 1, "DELETE FROM name"),
    ("BEGIN", 1, "leave it out"),
    ("START TRANSACTION", 1, "leave it out"),
    ("COMMIT", 1, "leave it out"),
    ("START STREAM s", 1, "RESUME STREAM"),
    ("STOP STREAM s", 1, "PAUSE STREAM"),
    ("SET x = 1", 1, "USE name"),
    ("help", 1, "SHOW DATABASES"),
    ("?", 1, "SHOW DATABASES"),
    ("\\d", 1, "SHOW TABLES, or DESCRIBE name"),
    ("\\dt", 1, "write SHOW TABLES"),
    ("\\l", 1, "write SHOW DATABASES"),
    ("\\h", 1, "SHOW DATABASES"),
    ("\\q", 1, "close the connection"),
    (".tables", 1, "write SHOW TABLES"),
    (".unknown", 1, "SHOW DATABASES"),
    ("quit", 1, "close the connection"),
    ("DESCRIBE TABLE t", 16, "DESCRIBE t"),
    ("DESCRIBE STREAM s", 17, "SHOW CREATE STREAM s"),
    ("SHOW COLUMNS FROM t", 6, "DESCRIBE name"),
    ("CREATE INDEX i ON t (a)", 8, "leave it out"),
    ("CREATE UNIQUE INDEX i ON t (a)", 8, "leave it out"),
    ("CREATE VIEW v AS SELECT 1", 8, "CREATE MATERIALIZED VIEW"),
    ("CREATE SCHEMA s", 8, "CREATE DATABASE"),
    ("ALTER TABLE t RENAME TO u", 22, "RENAME TAG old new"),
    ("ALTER TABLE t RENAME COLUMN a b", 22, "RENAME TAG old new"),
    ("DELETE t WHERE ts > 1", 8, "DELETE FROM"),
    ("INSERT t VALUES (1)", 8, "INSERT INTO"),
    ("INSERT INTO t (a) (1)", 19, "write VALUES"),
    ("INSERT INTO t SET a = 1", 15, "INSERT INTO name (column, …) VALUES"),
    ("INSERT INTO t VALUES now, 1", 22, "in parentheses"),
    ("SELECT a FROM t SELECT b FROM u", 17, "write ; in front"),
    # columns
    (f"{T} AUTO_INCREMENT)", 37, "the time of the first column is the key"),
    (f"{T} NOT NULL)", 37, "leave it out"),
    (f"{T} DEFAULT 5)", 37, "leave it out"),
    (f"{T}, PRIMARY KEY (ts))", 38, "COMPOSITE KEY"),
    (f"{T}, FOREIGN KEY (a))", 38, "leave it out"),
    (f"{T}, b VARCHAR)", 40, "write VARCHAR(64)"),
    (f"{T}, b NCHAR, c INT)", 40, "write NCHAR(64)"),
    ("CREATE STABLE t (ts TIMESTAMP) TAGS (b BINARY)", 40, "write BINARY(64)"),
    # commas, parentheses, quotes
    (f"{T},)", 36, "leave it out"),
    ("SELECT a, FROM t", 9, "leave it out"),
    ("INSERT INTO t VALUES (now, 1,)", 29, "leave it out"),
    ("INSERT INTO t VALUES (now, 1),", 30, "leave it out"),
    (T, 36, "the parenthesis of line 1, column 16"),
    ("SELECT count(* FROM t", 16, "the parenthesis of line 1, column 13"),
    ("SELECT f(a, (b + 1) FROM t", 21, "the parenthesis of line 1, column 9"),
    ("INSERT INTO t VALUES (now, 1", 29, "the parenthesis of line 1, column 22"),
    ("SELECT a + 1) FROM t", 13, "leave ) out"),
    ("SELECT a FROM t WHERE a = 'abc", 27, "write ' behind the text"),
    ("SELECT a FROM t WHERE a = 'abc AND b = 'x'", 27, "within a string is written ''"),
    ("SELECT a FROM t WHERE a = 'it's'", 27, "within a string is written ''"),
    ("SELECT a FROM t WHERE a = 'it's' AND b = 'it's'", 27, "within a string is written ''"),
    ("INSERT INTO t VALUES (now, 'it's')", 28, "within a string is written ''"),
    ("INSERT INTO t VALUES (now, 'a)", 28, "write ' behind the text"),
    ("SELECT `a FROM t", 8, "write ` behind the name"),
    ("SELECT a FROM t /* b", 17, "write */"),
    ('SELECT a FROM "t"', 15, "write t"),
    ("SELECT a FROM 'my table'", 15, "write `my table`"),
    ('CREATE TABLE t ("ts" TIMESTAMP)', 17, "write ts"),
    ('INSERT INTO "t" VALUES (1)', 13, "write t"),
    ("INSERT INTO t VALUES (now, abc)", 28, "text stands in quotes: 'abc'"),
    # characters
    ("SELECT a FROM t WHERE a = ‘b’", 27, "write ' instead"),
    ("SELECT a FROM t WHERE a = “b”", 27, 'write " instead'),
    ("INSERT INTO t VALUES (now, ‘b’)", 28, "write ' instead"),
    ("SELECT a FROM t WHERE a > 1 – 2", 29, "write - instead"),
    ("SELECT a\u200b b c FROM t", 9, "cannot be seen"),
    ("SELECT a FROM t\uff1b", 16, "write ; instead"),
    # operators and clauses
    ("SELECT a FROM t WHERE a == 1", 25, "write = for equal"),
    ("SELECT a::INT FROM t", 9, "CAST(a AS INT)"),
    ("SELECT a || b FROM t", 10, "concat(a, b)"),
    ("SELECT a FROM t WHERE a ILIKE 'x'", 25, "lower(a) LIKE"),
    ("SELECT a FROM t WHERE a RLIKE 'x'", 25, "MATCH"),
    ("SELECT TOP 5 a FROM t", 8, "write LIMIT 5"),
    ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", 17, "LIMIT 5"),
    ("SELECT a FROM t GROUP a", 23, "write GROUP BY"),
    ("SELECT a FROM t GROUP BY INTERVAL(5m)", 26, "FROM … INTERVAL(…)"),
    # lengths of time
    ("SELECT a FROM t INTERVAL '5 minutes'", 26, "write INTERVAL(5m)"),
    ("SELECT a FROM t INTERVAL(5 minutes)", 26, "write 5m"),
    ("SELECT a FROM t INTERVAL('5 minutes')", 26, "write 5m"),
    ("SELECT a FROM t INTERVAL(5ms)", 26, "write 5a"),
    ("SELECT a FROM t INTERVAL(1mon)", 26, "write 1n"),
    ("SELECT a FROM t INTERVAL(10 s)", 26, "write 10s"),
    ("SELECT a FROM t WHERE ts > now - INTERVAL '5 minutes'", 34, "write 5m"),
    ("SELECT a FROM t WHERE ts > now() - INTERVAL 2 HOUR", 36, "write 2h"),
    ("SELECT a FROM t WHERE ts > now - 5 minutes", 34, "write 5m"),
    # what is missing
    ("SELECT FROM t", 8, "something is missing in front of FROM"),
    ("SELECT a AS FROM t", 13, "something is missing in front of FROM"),
    ("SELECT a FROM t WHERE AND b = 1", 23, "something is missing in front of AND"),
    ("SELECT a FROM t WHERE a = 1 b = 2", 29, "AND or OR"),
    ("SELECT a FROM t WHERE a NOT NULL", 25, "IS NOT NULL"),
    ("SELECT a FROM t WHERE a IN 1", 28, "write IN (1, 2, 3)"),
    ("SELECT a FROM t WHERE a BETWEEN 1, 2", 34, "BETWEEN low AND high"),
    ("SELECT CASE WHEN a > 1 THEN 2 FROM t", 31, "ends with END"),
    ("SELECT CAST(a INT) FROM t", 15, "CAST(value AS type)"),
    ("SELECT a FROM t JOIN u", 23, "ON condition"),
    ("SELECT a FROM t OFFSET 5", 17, "behind LIMIT"),
    ("SELECT a FROM [t]", 15, "backticks"),
    ("SELECT a FROM", 14, "not complete"),
    ("SELECT a b c FROM t", 12, "a comma"),
    ("CREATE TABLE t (ts TIMESTAMP a INT)", 30, "a comma"),
    ("CREATE STREAM s INTO t SELECT 1", 24, "write AS SELECT"),
    (
        "CREATE STREAM s INTO t AS SELECT 1 FROM x INTERVAL(1m) TRIGGER AT_ONCE",
        56,
        "before INTO",
    ),
    ("SELECT order FROM t", 8, "backticks: `order`"),
    ("CREATE TABLE group (ts TIMESTAMP)", 14, "backticks: `group`"),
    ("DROP t", 6, "DROP TABLE t"),
    ("ALTER TABLE t ADD a INT", 19, "ADD COLUMN a"),
    ("GRANT SELECT ON t TO bob", 7, "READ"),
    # windows and streams of other systems
    (f"{S} GROUP BY b INTERVAL(5m)", 54, "PARTITION BY … INTERVAL(…)"),
    ("SELECT avg(a) FROM t GROUP BY b SESSION(ts, 5m)", 33, "PARTITION BY … SESSION(…)"),
    (f"{S} INTERVAL '5' MINUTE", 52, "write INTERVAL(5m)"),
    (f"{S} SESSION(30m)", 54, "SESSION(ts, 30m)"),
    (f"{S} SESSION_WINDOW(ts, 30m)", 43, "write SESSION(ts, 30m)"),
    (f"{S} HOPPING(1m, 5m)", 43, "write INTERVAL(5m) SLIDING(1m)"),
    ("SELECT a FROM TUMBLE(t, ts, INTERVAL '5' MINUTE) GROUP BY b", 29, "behind the table"),
    (f"{S} COUNT_WINDOW(3) SLIDING(1)", 59, "COUNT_WINDOW(10, 2)"),
    ("CREATE STREAM s AS SELECT a FROM t", 17, "CREATE STREAM name INTO result AS"),
    ("CREATE STREAM s WITH (a = 1) AS SELECT a FROM t", 17, "without WITH"),
    ("CREATE STREAM s INTO r WATERMARK 5s AS SELECT 1", 24, "INTO: CREATE STREAM s WATERMARK"),
    (f"{S} EVENT_WINDOW (START WITH a > 1 END WITH a < 1)", 56, "leave the parentheses out"),
    (f"{S} MATCH_RECOGNIZE (PARTITION BY tbname)", 43, "EVENT_WINDOW START WITH a END WITH b"),
    ("CREATE STREAM s INTO r NOTIFY ('w') ON ('WINDOW_CLOSE') AS SELECT 1", 24, "at the end"),
    (f"{S} EMIT CHANGES", 43, "TRIGGER AT_ONCE"),
    (f"{S} WHERE a EMIT FINAL", 51, "TRIGGER AT_ONCE"),
    (f"{S} NOTIFY ('w')", 55, "ON ('WINDOW_OPEN', 'WINDOW_CLOSE')"),
    (f"{S} NOTIFY 'ws://a'", 50, "NOTIFY ('ws://host:port/path') ON"),
    (f"{S} NOTIFY ('w') ON OPEN", 59, "write ON ('WINDOW_OPEN'"),
]


def refusal(text: str) -> SqlSyntaxError:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(("text", "column", "hint"), MISTAKES, ids=[m[0][:50] for m in MISTAKES])
def test_a_mistake_is_explained_where_it_stands(text: str, column: int, hint: str) -> None:
    error = refusal(text)
    assert (error.code, error.line, error.column) == ("E_SYNTAX", 1, column)
    assert hint in error.hint
    _, carets = error.snippet.split("\n")
    assert carets.index("^") == column - 1


@pytest.mark.parametrize(("text", "column", "hint"), MISTAKES[:30])
def test_it_is_explained_behind_other_statements_and_lines(
    text: str, column: int, hint: str
) -> None:
    error = refusal(f"USE x;\n-- 'one\n{text}")
    assert (error.line, error.column) == (3, column)
    assert hint in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a b c FROM t",
        "SELECT a FROM t LIMIT",
        "SELECT a FROM t WHERE a = 1 = 2",
        "CREATE TABLE t (ts TIMESTAMP, a WIRE)",
        "SELECT f(a b) FROM t",
        "SELECT a FROM t INTERVAL(5 apples)",
        "SELECT list lost last FROM t",
    ],
)
def test_nothing_is_guessed_where_nothing_is_known(text: str) -> None:
    error = refusal(text)
    assert "did you mean" not in error.hint
    assert "write" not in error.hint


def test_secrets_are_in_no_hint() -> None:
    for text in (
        "CREATE USER 'bob' PASS 'hunter2secret'",
        "CREATE USER bob PASS 'hunter2secret' 'hunter2secret",
        "CREATE USER bob PAS 'hunter2secret'",
        "ALTER USER bob PASS 'hunter2'secret'",
    ):
        assert "hunter2" not in str(refusal(text))


def test_a_long_statement_is_not_looked_at_again() -> None:
    error = refusal("SELECT a FORM t " + "-" * MAX_LENGTH)
    assert error.message.startswith("the statement should end here")
