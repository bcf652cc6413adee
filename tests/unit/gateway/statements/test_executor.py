"""Statements from text to an answer, over a real intake and publisher and a store that is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.answers import Affected
from gateway.dead_letters import DeadLetterReader
from gateway.information import columns
from gateway.statements import executor
from penstock import names
from penstock.coordination.lease import Holder
from penstock.errors import BusError, OverloadError, PenstockError
from penstock.records import DeadLetter, encode
from penstock.rows.parameters import Moment
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import FAR, Statements, Store


@pytest.fixture
async def statements(tmp_path: Path) -> AsyncIterator[Statements]:
    loop = asyncio.get_running_loop()
    gateway = MemoryGateway(tmp_path, loop=loop)
    made = Statements(gateway, Store(), loop)
    gateway.define(
        "CREATE DATABASE d PARTITIONS 2; CREATE TABLE p (ts TIMESTAMP, a INT);"
        " CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (ta INT);"
        " CREATE TABLE c1 USING met TAGS (1); CREATE VTABLE v (ts TIMESTAMP, x INT FROM p.a)"
    )
    yield made
    made.close()


# -------------------------------------------------------------------- rows in


async def test_rows_of_several_tables_are_inserted(statements: Statements) -> None:
    answer = await statements.run("INSERT INTO p VALUES (1, 10) (2, 20) c1 VALUES (1, 30)")
    assert answer == Affected(3)
    assert statements.rows("p") == [10, 20] and statements.rows("met") == [30]
    assert statements.publisher.confirmed.rows == 3
    assert (
        sum(statements.publisher.confirmed.offsets.values()) >= 0
        and statements.publisher.confirmed.offsets
    )
    assert statements.publisher.pending == (0, 0)


async def test_a_child_table_is_made_known_by_its_rows(statements: Statements) -> None:
    await statements.run("INSERT INTO c2 USING met TAGS (5) VALUES (1, 30)")
    met = statements.gateway.catalog.table("d", "met")
    assert met is not None
    assert statements.gateway.redis.hexists(names.children(met.id), "c2")
    assert await statements.run("INSERT INTO c2 VALUES (2, 40)") == Affected(1)
    assert statements.rows("met") == [30, 40]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("INSERT INTO v VALUES (1, 1)", "E_VTABLE_WRITE"),
        ("INSERT INTO none VALUES (1, 1)", "E_NO_TABLE"),
        ("INSERT INTO other.p VALUES (1, 1)", "E_NO_DATABASE"),
        ("INSERT INTO c9 USING p TAGS (1) VALUES (1, 1)", "E_NOT_A_STABLE"),
        ("DELETE FROM v WHERE ts > 1", "E_VTABLE_WRITE"),
        ("SHOW NOTHING", "E_SYNTAX"),
        ("", "E_SYNTAX"),
    ],
)
async def test_what_cannot_be_done(statements: Statements, sql: str, code: str) -> None:
    assert (await statements.refusal(sql)).code == code
    assert statements.rows("p") == []


async def test_which_database(statements: Statements) -> None:
    error = await statements.refusal("INSERT INTO p VALUES (1, 1)", database=None)
    assert error.code == "E_WHICH_DATABASE" and "/rest/sql/database" in error.hint
    assert await statements.run("USE d; INSERT INTO p VALUES (1, 1)", database=None) == Affected(1)


async def test_one_bad_write_does_not_take_others_with_it(statements: Statements) -> None:
    layout = statements.layout("p")
    good = await statements.intake.submit_to(layout, [{"ts": 1, "a": 1}], size=10)
    bad = await statements.intake.submit_to(layout, [{"ts": 1, "a": "x"}], size=10)
    again = await statements.intake.submit_to(layout, [{"ts": 2, "a": 2}], size=10)
    assert (await good).rows == (await again).rows == 1
    with pytest.raises(PenstockError):
        await bad
    assert statements.rows("p") == [1, 2]


async def test_rows_wait_while_partitions_change(statements: Statements) -> None:
    statements.halted.add("in.d")
    waiting = await statements.intake.submit_to(
        statements.layout("p"), [{"ts": 1, "a": 1}], size=10
    )
    while not statements.publisher._queue.held:
        await asyncio.sleep(0)
    assert not waiting.done() and statements.rows("p") == []
    statements.halted.clear()
    statements.publisher.look_again()
    assert (await waiting).rows == 1
    assert statements.rows("p") == [1]


async def test_kafka_that_is_down_refuses_at_once(statements: Statements) -> None:
    statements.publisher.down = "no broker answers"
    error = await statements.refusal("INSERT INTO p VALUES (1, 1)")
    assert (error.code, error.detail) == ("E_KAFKA_DOWN", "no broker answers")
    statements.publisher.down = None
    statements.gateway.log.refusal = BusError("not enough replicas")
    assert (await statements.refusal("INSERT INTO p VALUES (1, 1)")).code == "E_BUS"


async def test_too_much_at_once(statements: Statements) -> None:
    with pytest.raises(OverloadError):
        await statements.intake.submit_to(statements.layout("p"), [{"ts": 1}], size=2 << 20)


async def test_a_key_makes_rows_count_once(statements: Statements) -> None:
    sql = "INSERT INTO p VALUES (1, 1)"
    assert await statements.run(sql, key="k1") == Affected(1)
    statements.ledger.close()
    assert await statements.run(sql, key="k1") == Affected(1)
    assert statements.rows("p") == [1]
    error = await statements.refusal("INSERT INTO p VALUES (2, 2)", key="k1")
    assert error.code == "E_KEY_REUSED"
    error = await statements.refusal(f"{sql}; {sql}", key="k2")
    assert error.code == "E_SEVERAL_STATEMENTS"


async def test_rows_for_other_deployments_go_there(statements: Statements) -> None:
    statements.gateway.catalog.put(FAR)
    assert await statements.run("INSERT INTO far VALUES (1, 7) p VALUES (1, 8)") == Affected(2)
    assert statements.remote.written == [[7]] and statements.rows("p") == [8]
    error = await statements.refusal("INSERT INTO far VALUES (1, 7)", key="k")
    assert error.code == "E_UNSUPPORTED_STATEMENT"


async def test_selected_rows_are_inserted(statements: Statements) -> None:
    statements.store.answer = pa.table(
        {"ts": pa.array([1, 2], pa.timestamp("ms")), "a": pa.array([5, 6], pa.int32())}
    )
    assert await statements.run("INSERT INTO p SELECT ts, a FROM met") == Affected(2)
    assert statements.rows("p") == [5, 6]
    statements.store.answer = statements.store.answer.slice(0, 0)
    assert await statements.run("INSERT INTO p SELECT ts, a FROM met") == Affected(0)
    error = await statements.refusal("INSERT INTO p SELECT ts, a FROM met", key="k")
    assert error.code == "E_UNSUPPORTED_STATEMENT"


async def test_deletes_are_control_records_at_their_place(statements: Statements) -> None:
    await statements.run("DELETE FROM p WHERE ts >= 5 AND ts <= 9")
    made = [c for _, c in statements.gateway.controls("in.d") if c.kind == "delete"]
    assert [(c.kind, c.tables, c.low, c.high) for c in made] == [("delete", ("p",), 5, 9)]
    assert statements.publisher.confirmed.offsets, "a SELECT that follows waits for it"


# -------------------------------------------------------------------- questions


async def test_a_select_waits_for_what_was_acked_here(statements: Statements) -> None:
    await statements.run("INSERT INTO p VALUES (1, 1)")
    assert (await statements.run("SELECT a FROM p")).to_pydict() == {"n": [1]}
    ((user, sql, after),) = statements.store.asked
    assert (user, sql) == (ROOT, "SELECT a FROM p")
    assert after == statements.publisher.confirmed.offsets and after
    await statements.run("SELECT a FROM other.p")
    assert statements.store.asked[-1][2] == {}


async def test_a_select_that_came_before_asks_for_the_same_rights_and_rows(
    statements: Statements,
) -> None:
    await statements.run("INSERT INTO p VALUES (1, 10)")
    ann = statements.gateway.allow("ann")
    for value in (1, 2, 3):
        text = f"SELECT a FROM p WHERE a > {value}"
        refused = await statements.refusal(text, user=ann)
        assert refused.code == "E_FORBIDDEN"
        assert await statements.run(text) is statements.store.answer
        _, sent, after = statements.store.asked[-1]
        assert (sent, bool(after)) == (text, True)
    assert len(statements.store.asked) == 3
    several = await statements.refusal(f"{text}; {text}", key="k")
    assert several.code == "E_SEVERAL_STATEMENTS"


async def test_a_select_that_came_before_is_not_read_again(
    statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    await statements.run("SELECT a FROM p WHERE ts > '2026-01-01' AND a = 1")
    monkeypatch.setattr(executor, "parse", None)
    other = "SELECT a FROM p WHERE ts > '2026-02-03 04:05' AND a = 67"
    assert await statements.run(other) is statements.store.answer
    assert statements.store.asked[-1][1] == other


async def test_lists_do_not_reach_the_store(statements: Statements) -> None:
    assert (await statements.run("SELECT 2 AS n")).to_pydict() == {"n": [2]}
    found = await statements.run("SELECT stable_name FROM information_schema.ins_stables")
    assert found.to_pydict() == {"stable_name": ["met"]}
    assert (await statements.run("SHOW STABLES")).num_rows == 1
    assert (await statements.run("SHOW CREATE TABLE p")).num_rows == 1
    assert statements.store.asked == []


async def test_tables_are_described(statements: Statements) -> None:
    statements.gateway.catalog.put(FAR)
    for name, width in (("p", 2), ("met", 3), ("c1", 3), ("far", 2)):
        assert (await statements.run(f"DESCRIBE {name}")).num_rows == width
    assert (await statements.refusal("DESCRIBE none")).code == "E_NO_TABLE"


async def test_information_schema_can_be_used(statements: Statements) -> None:
    for sql, database in (
        ("USE information_schema; SELECT stable_name FROM ins_stables", None),
        ("SELECT stable_name FROM ins_stables", "information_schema"),
        ("USE INFORMATION_SCHEMA; SELECT stable_name FROM d.met", None),
    ):
        await statements.run(sql, database=database)
    assert [sql for _, sql, _ in statements.store.asked] == ["SELECT stable_name FROM d.met"]
    ann = statements.gateway.allow("ann")
    found = await statements.run("USE information_schema; DESCRIBE ins_tags", user=ann)
    assert found.num_rows == len(columns.TAGS)
    found = await statements.run("USE information_schema; SELECT * FROM ins_stables", user=ann)
    assert found.num_rows == 0
    assert (await statements.refusal("DESCRIBE information_schema.x")).code == "E_NO_TABLE"


async def test_children_that_rows_made_answer_like_others(statements: Statements) -> None:
    await statements.run("INSERT INTO c2 USING met TAGS (5) VALUES (1, 30)")
    shown = (await statements.run("SHOW CREATE TABLE c2")).to_pylist()
    assert shown == [{"Table": "c2", "Create Table": "CREATE TABLE `c2` USING `met` TAGS (5)"}]
    found = await statements.run("SHOW TAGS FROM c2 FROM d", database=None)
    assert found.column("tag_value").to_pylist() == ["5"]
    found = await statements.run("SHOW TABLE TAGS FROM met")
    assert found.to_pydict() == {"tbname": ["c1", "c2"], "ta": [1, 5]}
    found = await statements.run("SHOW CHILD TABLES")
    assert sorted(found.column(0).to_pylist()) == ["c1", "c2"]
    error = await statements.refusal("SHOW TAGS FROM c2", database=None)
    assert error.code == "E_WHICH_DATABASE"


async def test_indexes_are_of_a_table(statements: Statements) -> None:
    assert (await statements.run("SHOW INDEXES FROM met")).num_rows == 0
    assert (await statements.refusal("SHOW INDEXES FROM none")).code == "E_NO_TABLE"


async def test_how_a_table_is_distributed(statements: Statements) -> None:
    await statements.run("INSERT INTO c2 USING met TAGS (5) VALUES (1, 30)")
    times = pa.array([1000], pa.timestamp("ms", "UTC"))
    statements.store.answer = pa.table([pa.array([7]), times, times], ["n", "a", "b"])
    found = await statements.run("SHOW TABLE DISTRIBUTED met")
    total, tables, *partitions = found.column("_block_dist").to_pylist()
    assert total.startswith("Total_Rows=[7] First_Row=[1970-01-01") and "00:00:01" in total
    assert tables == "Total_Tables=[2] Partitions=[2]"
    assert [p.split()[0] for p in partitions] == ["Partition=[0]", "Partition=[1]"]
    assert sum(int(p.split("Tables=[")[1][:-1]) for p in partitions) == 2
    assert statements.store.asked[-1][1] == ("SELECT count(*), min(`ts`), max(`ts`) FROM `d`.`met`")
    for name in ("p", "c1"):
        assert (await statements.run(f"SHOW TABLE DISTRIBUTED {name}")).num_rows == 1
    nothing = pa.array([None], pa.timestamp("ms"))
    statements.store.answer = pa.table([pa.array([0]), nothing, nothing], ["n", "a", "b"])
    found = await statements.run("SHOW TABLE DISTRIBUTED p")
    assert found.column(0).to_pylist() == ["Total_Rows=[0] First_Row=[] Last_Row=[]"]


async def test_questions_about_a_table_need_rights_on_it(statements: Statements) -> None:
    table = statements.gateway.catalog.table("d", "p")
    assert table is not None
    ann = statements.gateway.allow("ann", "WRITE", on=table.id)
    await statements.run("INSERT INTO c2 USING met TAGS (5) VALUES (1, 30)")
    nothing = pa.array([None], pa.timestamp("ms"))
    statements.store.answer = pa.table([pa.array([0]), nothing, nothing], ["n", "a", "b"])
    for sql in (
        "SHOW TAGS FROM c1",
        "SHOW TAGS FROM c2",
        "SHOW TABLE TAGS FROM met",
        "SHOW CREATE TABLE c2",
        "SHOW INDEXES FROM met",
        "SHOW TABLE DISTRIBUTED p",
        "SHOW TABLE DISTRIBUTED met",
    ):
        assert (await statements.refusal(sql, user=ann)).code == "E_FORBIDDEN", sql
    assert (await statements.run("SHOW CHILD TABLES", user=ann)).num_rows == 0
    assert (await statements.run("SHOW INDEXES FROM p", user=ann)).num_rows == 0
    met = statements.gateway.catalog.table("d", "met")
    assert met is not None
    bob = statements.gateway.allow("bob", "READ", on=met.id)
    for sql, count in (
        ("SHOW TAGS FROM c2", 1),
        ("SHOW TABLE TAGS FROM met", 2),
        ("SHOW CREATE TABLE c2", 1),
        ("SHOW TABLE DISTRIBUTED c2", 1),
        ("SELECT tag_value FROM information_schema.ins_tags", 2),
    ):
        assert (await statements.run(sql, user=bob)).num_rows == count, sql


async def test_explain_says_where_it_runs(statements: Statements) -> None:
    assert await statements.run("EXPLAIN SELECT a FROM p") is statements.store.answer
    assert statements.store.asked[-1][1] == "EXPLAIN SELECT a FROM p"
    for sql in ("SELECT 1", "SELECT name FROM information_schema.ins_databases"):
        found = (await statements.run(f"EXPLAIN {sql}")).to_pydict()
        assert found == {"item": ["query", "runs in"], "value": [sql, "gateway"]}
    stream = "CREATE STREAM s INTO r AS SELECT _wstart, sum(a) AS t FROM met INTERVAL(1s)"
    shown = (await statements.run(f"EXPLAIN {stream}")).to_pydict()
    assert "d.s" in shown["value"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM s OPEN WINDOWS INTERVAL(1s)", "E_UNSUPPORTED_QUERY"),
        ("SELECT * FROM none OPEN WINDOWS", "E_NO_STREAM"),
    ],
)
async def test_open_windows_are_of_one_stream(statements: Statements, sql: str, code: str) -> None:
    error = await statements.refusal(sql)
    assert error.code in (code, "E_SYNTAX")


# -------------------------------------------------------------------- rights


async def test_who_may_do_what(statements: Statements) -> None:
    table = statements.gateway.catalog.table("d", "p")
    assert table is not None
    ann = statements.gateway.allow("ann", "WRITE", on=table.id)
    assert await statements.run("INSERT INTO p VALUES (1, 1)", user=ann) == Affected(1)
    for sql in (
        "SELECT a FROM p",
        "INSERT INTO met VALUES (1, 1)",
        "DROP TABLE p",
        "CREATE DATABASE x",
        "INSERT INTO none VALUES (1, 1)",
    ):
        assert (await statements.refusal(sql, user=ann)).code == "E_FORBIDDEN"
    assert (await statements.refusal("INSERT INTO p VALUES (1, 1)", user="")).code == "E_FORBIDDEN"


async def test_a_token_does_not_change_its_users_password(statements: Statements) -> None:
    statements.gateway.define("CREATE USER ann PASS 'a long password'")
    sql = "ALTER USER ann PASS 'another password'"
    assert (await statements.refusal(sql, user="ann")).code == "E_FORBIDDEN"
    assert await statements.run(sql, user="ann", with_password=True) == Affected(0)


# -------------------------------------------------------------------- DDL


async def test_definitions_are_made_here_or_by_the_leader(statements: Statements) -> None:
    assert await statements.run("CREATE TABLE q (ts TIMESTAMP, b INT)") == Affected(0)
    assert statements.gateway.catalog.table("d", "q") is not None
    statements.gateway.writer.holder = Holder(4, "http://other:1")
    sql = "CREATE TABLE z (ts TIMESTAMP, b INT)"
    assert await statements.run(sql) == Affected(0)
    assert statements.forwarder.sent == [("http://other:1", ROOT, sql)]
    assert (await statements.refusal(sql, forwarded=True)).code == "E_LEASE_HELD"


async def test_a_definition_tells_where_reads_that_follow_must_wait(statements: Statements) -> None:
    statements.gateway.define("CREATE STABLE tagged (ts TIMESTAMP, v INT) TAGS (g INT)")
    created: dict[tuple[str, int], int] = {}
    await statements.run("CREATE TABLE t1 USING tagged TAGS (1)", own=created)
    tagged: dict[tuple[str, int], int] = {}
    await statements.run("ALTER TABLE t1 SET TAG g = 2", own=tagged)
    assert len(tagged) == 1 and tagged.keys() == created.keys()
    assert tagged.items() <= statements.gateway.own_writes.items()
    failed: dict[tuple[str, int], int] = {}
    text = "CREATE TABLE t2 USING tagged TAGS (1) t1 USING tagged TAGS (1)"
    assert (await statements.refusal(text, own=failed)).code == "E_TABLE_EXISTS"
    assert failed and not failed.items() <= created.items()


async def test_the_first_that_fails_ends_a_text(statements: Statements) -> None:
    error = await statements.refusal(
        "CREATE TABLE q (ts TIMESTAMP, b INT); DROP TABLE none; CREATE TABLE w (ts TIMESTAMP, b INT)"
    )
    assert error.code == "E_NO_TABLE"
    assert statements.gateway.catalog.table("d", "q") is not None
    assert statements.gateway.catalog.table("d", "w") is None


# -------------------------------------------------------------------- dead letters


def test_the_newest_dead_letters_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = MemoryGateway(tmp_path)
    monkeypatch.setattr("gateway.dead_letters.Reader", lambda b, o, **_: gateway.log.reader(b, o))
    reader = DeadLetterReader(gateway.log, "kafka", "g1")
    assert reader.read() == []
    letters = [DeadLetter("in.d", 0, i, "store", "E_ROW", "no", 7, None, b"x") for i in range(3)]
    gateway.log.append(names.DEAD_LETTER, b"junk")
    for letter in letters:
        gateway.log.append(names.DEAD_LETTER, encode(letter))
    assert reader.read() == letters
    monkeypatch.setattr("gateway.dead_letters.MOST", 2)
    assert reader.read() == letters[1:]
    # an earlier build told no time: it is then the letter's own in the log
    gateway.log.append(names.DEAD_LETTER, encode(replace(letters[0], time=0)))
    [*_, last] = reader.read()
    assert last.time > 7
    gateway.close()


# -------------------------------------------------------------------- parameters


async def test_inserted_values_may_be_parameters(statements: Statements) -> None:
    sql = "INSERT INTO p VALUES (:at, :a) (2, :a)"
    at = Moment("2026-03-01T09:00:00Z")
    assert await statements.run(sql, parameters={"at": at, "a": 7}) == Affected(2)
    assert statements.rows("p") == [7, 7]
    error = await statements.refusal(sql, parameters={"at": at, "a": b"7"})
    assert (error.code, statements.rows("p")) == ("E_ROW", [7, 7])


async def test_another_value_is_another_insert_under_the_same_key(statements: Statements) -> None:
    sql = "INSERT INTO p VALUES (1, ?)"
    assert await statements.run(sql, key="k", parameters=[1]) == Affected(1)
    assert await statements.run(sql, key="k", parameters=[1]) == Affected(1)
    assert (await statements.refusal(sql, key="k", parameters=[2])).code == "E_KEY_REUSED"
    assert statements.rows("p") == [1]


async def test_the_store_gets_the_text_and_the_values_apart(statements: Statements) -> None:
    await statements.run("SELECT a FROM p WHERE a = ?", parameters=["x"])
    assert statements.store.asked[-1][1] == "SELECT a FROM p WHERE a = ?"
    assert statements.store.parameters == ["x"]
    statements.store.answer = pa.table({"ts": [1], "a": [5]})
    sql = "INSERT INTO p SELECT ts, a FROM met WHERE a > :low"
    assert await statements.run(sql, parameters={"low": 2}) == Affected(1)
    assert statements.store.asked[-1][1] == "SELECT ts, a FROM met WHERE a > :low"
    assert statements.store.parameters == {"low": 2}


async def test_rows_go_by_parameters(statements: Statements) -> None:
    await statements.run("DELETE FROM p WHERE ts < ?", parameters=[Moment("2026-03-01")])
    assert (await statements.refusal("DELETE FROM p WHERE ts < ?", parameters=["x"])).code == (
        "E_BAD_DELETE"
    )
    assert (await statements.refusal("DELETE FROM p WHERE ts < ?")).code == "E_PARAMETER"


async def test_definitions_take_no_parameters_so_the_audit_trail_has_none(
    statements: Statements, caplog: pytest.LogCaptureFixture
) -> None:
    for sql in ("CREATE TABLE q (ts TIMESTAMP, a INT) COMMENT ?", "CREATE DATABASE ?"):
        assert (await statements.refusal(sql, parameters=["secret"])).code == "E_SYNTAX"
    assert "secret" not in caplog.text
