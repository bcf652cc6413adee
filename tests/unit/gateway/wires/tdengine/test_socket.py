"""TDengine's WebSocket: logins, queries, limits, and messages that are none."""

from __future__ import annotations

import asyncio
import json
import struct
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from aiohttp import WSMsgType, WSServerHandshakeError
from hypothesis import given
from hypothesis import strategies as some

from gateway.wires.tdengine import results, socket
from gateway.wires.tdengine.columns import wire_table
from gateway.wires.tdengine.frames import ActionRequest, read
from penstock.errors import SchemaError
from tests.unit.gateway.api.conform import check_message
from tests.unit.gateway.wires.kit import MAX_RESULT, PASSWORD, Wires, key
from tests.unit.gateway.wires.tdengine.kit import TaosClient, connect, logged_in

_AT = datetime(2026, 3, 1, 9, 0, 0, 123_000, tzinfo=UTC)
_TICKS = round(_AT.timestamp() * 1000)


async def _fill(client: TaosClient, rows: int = 2) -> None:
    assert (
        await client.execute("CREATE STABLE m (ts TIMESTAMP, v DOUBLE, n NCHAR(8)) TAGS (g INT)")
        == 0
    )
    values = " ".join(f"({_TICKS + i}, {i}.5, 'ä{i}')" for i in range(rows))
    assert await client.execute(f"INSERT INTO a USING m TAGS (1) VALUES {values}") == rows


async def test_a_query_is_fetched_block_by_block(wires: Wires) -> None:
    client = await logged_in(wires)
    await _fill(client)
    told = await client.good("query", sql="SELECT ts, v, n, g FROM m ORDER BY ts")
    assert told["fields_names"] == ["ts", "v", "n", "g"]
    assert (told["fields_types"], told["fields_lengths"]) == ([9, 7, 10, 4], [8, 8, 8, 4])
    assert (told["fields_count"], told["precision"], told["is_update"]) == (4, 0, False)
    wanted = [(_TICKS, 0.5, "ä0", 1), (_TICKS + 1, 1.5, "ä1", 1)]
    assert (await client.good("num_fields", result_id=told["id"]))["num_fields"] == 4
    assert await client.fetch(told["id"]) == wanted
    assert (await client.ask("fetch", id=told["id"]))["message"].startswith("result is nil")


async def test_newer_connectors_ask_and_fetch_by_bytes(wires: Wires) -> None:
    client = await logged_in(wires)
    await _fill(client, 5000)
    sql = b"SELECT ts, v FROM m ORDER BY ts"
    told = await client.ask_bytes("binary_query", 6, 0, struct.pack("<HI", 1, len(sql)) + sql)
    found = await client.fetch_raw(told["id"])
    assert found == [(_TICKS + i, i + 0.5) for i in range(5000)]
    with pytest.raises(ValueError, match="result is nil"):
        await client.fetch_raw(told["id"])
    short = await client.ask_bytes("binary_query", 6, 0, struct.pack("<HI", 1, 99) + sql)
    assert short["code"] and short["message"].startswith("uncompleted message")
    other = await client.ask_bytes("binary_query", 6, 0, struct.pack("<HI", 7, len(sql)) + sql)
    assert other["code"]


async def test_a_result_that_is_freed_is_gone(wires: Wires) -> None:
    client = await logged_in(wires)
    number = (await client.good("query", sql="SELECT 1"))["id"]
    await client.send("free_result", id=number)
    assert (await client.ask("fetch", id=number))["code"] == 0xFFFF
    assert wires.tdengine.budget.held("root") == 0


async def test_use_is_kept_for_what_follows(wires: Wires) -> None:
    client = await connect(wires)
    await client.log_in()
    assert (await client.good("get_current_db"))["db"] == ""
    assert (await client.ask("query", sql="CREATE TABLE t (ts TIMESTAMP, v INT)"))["code"]
    assert await client.execute("USE d") == 0
    assert (await client.good("get_current_db"))["db"] == "d"
    assert await client.execute("CREATE TABLE t (ts TIMESTAMP, v INT)") == 0


async def test_times_without_a_zone_are_in_the_connections(wires: Wires) -> None:
    client = await connect(wires)
    await client.log_in(db="d", tz="Asia/Shanghai")
    await client.execute("CREATE TABLE t (ts TIMESTAMP, v INT)")
    await client.execute("INSERT INTO t VALUES ('2026-03-01 17:00:00.123', 1)")
    assert await client.rows("SELECT ts FROM t") == [(_TICKS,)]
    option = {"option": 1, "value": "UTC"}
    await client.good("options_connection", options=[option, {"option": 3, "value": "app"}])
    assert await client.rows("SELECT v FROM t WHERE ts = '2026-03-01 09:00:00.123'") == [(1,)]
    assert (await client.ask("options_connection", options=[{"option": 1, "value": "x/y"}]))["code"]


async def test_a_wrong_statement_is_told_with_tdengines_number(wires: Wires) -> None:
    client = await logged_in(wires)
    for sql, code in (("SELEC", 0x2600), ("SELECT * FROM nothing", 0x2603)):
        reply = await client.ask("query", sql=sql)
        assert (reply["code"], bool(reply["message"])) == (code, True)


# ---------------------------------------------------------------- who may


async def test_version_is_told_to_anybody_and_nothing_else(wires: Wires) -> None:
    client = await connect(wires)
    assert (await client.good("version"))["version"].count(".") == 3
    for action in ("query", "fetch", "insert", "init", "get_server_info", "no such"):
        reply = await client.ask(action, sql="SELECT 1", id=1)
        assert (reply["code"], reply["message"].split(";")[0]) == (0x0357, "server not connected")
    await client.log_in()
    assert (await client.good("get_server_info"))["info"]


@pytest.mark.parametrize("password", ["wrong", ""])
async def test_a_wrong_password_opens_nothing(wires: Wires, password: str) -> None:
    client = await connect(wires)
    reply = await client.ask("conn", user="root", password=password)
    assert (reply["code"], reply["action"]) == (0x0357, "conn")
    assert (await client.ask("query", sql="SELECT 1"))["code"] == 0x0357
    await client.log_in()


async def test_an_unknown_database_leaves_nobody_logged_in(wires: Wires) -> None:
    client = await connect(wires)
    assert (await client.ask("conn", user="root", password=PASSWORD, db="no"))["code"] == 0x0388
    assert (await client.ask("query", sql="SELECT 1"))["code"] == 0x0357
    await client.log_in(db="d")
    assert (await client.ask("conn", user="root", password=PASSWORD))["code"]


async def test_tokens_log_in_and_so_do_headers(wires: Wires) -> None:
    token = wires.login.token("root")
    for client in (
        await connect(wires, token=token),
        await connect(wires, key()),
        await connect(wires, {"Authorization": f"Taosd {token}"}),
    ):
        await client.good("conn", db="d")
        assert await client.rows("SELECT 1") == [(1,)]
    by_message = await connect(wires)
    await by_message.good("conn", bearer_token=token)
    assert await by_message.rows("SELECT 1") == [(1,)]
    for wrong in (key("root", "wrong"), {"Authorization": "Bearer x"}):
        with pytest.raises(WSServerHandshakeError) as refused:
            await connect(wires, wrong)
        assert refused.value.status == 401


async def test_rights_are_those_of_the_user(wires: Wires) -> None:
    await _fill(await logged_in(wires))
    token = wires.login.token(wires.gateway.allow("rita", "READ"))
    client = await connect(wires, token=token)
    await client.good("conn", db="d")
    assert len(await client.rows("SELECT v FROM m")) == 2
    for sql in ("INSERT INTO a VALUES (NOW, 1, '')", "DROP TABLE m", "CREATE DATABASE x"):
        assert (await client.ask("query", sql=sql))["code"] == 0x2644
    stranger = await connect(wires, token=wires.login.token(wires.gateway.allow("eve")))
    assert (await stranger.ask("query", sql="SELECT v FROM d.m"))["code"] == 0x2644


async def test_a_connection_ends_when_its_login_does(wires: Wires) -> None:
    token = wires.login.token(wires.gateway.allow("rita", "READ"), seconds=60)
    client = await connect(wires, token=token)
    assert await client.rows("SELECT 1") == [(1,)]
    wires.gateway.clock.advance(61.0)
    assert (await client.ask("query", sql="SELECT 1"))["code"] == 0x0357
    assert await client.receive() is None
    assert client.socket.close_code == 1008


async def test_pages_of_others_may_not_connect(wires: Wires) -> None:
    with pytest.raises(WSServerHandshakeError) as refused:
        await connect(wires, {"Origin": "http://evil.example"})
    assert refused.value.status == 403


async def test_a_request_that_is_no_websocket_is_told_so(wires: Wires) -> None:
    status, said = await wires.get("/ws")
    assert (status, said["error"]["code"]) == (400, "E_BODY")


# ---------------------------------------------------------------- limits


async def test_so_many_results_may_be_open(wires: Wires) -> None:
    client = await logged_in(wires)
    for _ in range(results.MOST_OPEN):
        await client.good("query", sql="SELECT 1")
    reply = await client.ask("query", sql="SELECT 1")
    assert (reply["code"], "results are open" in reply["message"]) == (0x0139, True)
    await client.send("free_result", id=1)
    await client.good("query", sql="SELECT 1")


async def test_so_many_bytes_may_wait_for_a_user(wires: Wires) -> None:
    wires.tdengine.budget.take("root", MAX_RESULT)
    client = await logged_in(wires)
    reply = await client.ask("query", sql="SELECT 1")
    assert (reply["code"], "open results hold" in reply["message"]) == (0x0139, True)
    wires.tdengine.budget.give_back("root", MAX_RESULT)
    await client.good("query", sql="SELECT 1")
    assert wires.tdengine.budget.held("root") > 0
    await client.socket.close()


async def test_a_result_nobody_asks_for_is_freed() -> None:
    budget = results.ResultBudget(100)
    kept = results.OpenResults(budget, idle_s=0)
    number = kept.add("ann", wire_table(pa.table({"a": [1]})))
    assert budget.held("ann") == 8
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(SchemaError):
        kept.find(number)
    assert budget.held("ann") == 0


async def test_a_message_that_is_too_large_ends_the_connection(wires: Wires) -> None:
    client = await logged_in(wires)
    await client.socket.send_str("x" * (1 << 20) + "x")
    assert await client.receive() is None
    assert client.socket.close_code == 1009


@pytest.mark.parametrize("frames", [1, 40], ids=["one frame", "many"])
async def test_who_has_not_logged_in_may_send_little(wires: Wires, frames: int) -> None:
    """Else an address could have the gateway hold a large message of each of its connections."""
    client = await connect(wires)
    for _ in range(frames):
        await client.socket.send_str("x" * (socket.MOST_UNKNOWN // frames + 1))
    while await client.receive() is not None:
        pass  # each small frame is refused by itself
    assert client.socket.close_code == 1009


async def test_a_login_makes_room_for_large_messages(wires: Wires) -> None:
    text = f"SELECT 1 /* {'x' * socket.MOST_UNKNOWN} */"
    late = await logged_in(wires)
    early = await connect(wires, key())
    for client in (late, early):
        assert await client.rows(text) == [(1,)]


async def test_who_does_not_log_in_is_sent_away(wires: Wires) -> None:
    wires.tdengine.socket.login_s = 0.01
    client = await connect(wires)
    assert await client.receive() is None
    assert client.socket.close_code == 1008


# ---------------------------------------------------------------- messages that are none


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        "1",
        "{}",
        '{"action": 1}',
        '{"action": ""}',
        '{"action": "query", "args": []}',
        '{"action": "query", "args": {"sql": 1}}',
        '{"action": "query"}',
        '{"action": "fetch", "args": {"id": "1"}}',
        '{"action": "fetch", "args": {"id": -1}}',
        '{"action": "fetch_block", "args": {"id": 9}}',
        '{"action": "fetch_raw_block", "args": {}}',
        '{"action": "options_connection", "args": {"options": [1]}}',
        '{"action": "bind", "args": {"stmt_id": 1, "columns": 1}}',
        "[" * 100_000,
        b"",
        b"x" * 24,
        struct.pack("<QQQ", 1, 1, 4) + b"x",
        struct.pack("<QQQ", 1, 1, 6),
        struct.pack("<QQQ", 1, 1, 2),
    ],
)
async def test_a_message_that_is_none_has_an_answer(wires: Wires, message: str | bytes) -> None:
    client = await logged_in(wires)
    if isinstance(message, str):
        await client.socket.send_str(message)
    else:
        await client.socket.send_bytes(message)
    reply = await client.receive()
    assert reply["code"] not in (0, None) and "bug" not in reply["message"]
    assert await client.rows("SELECT 1") == [(1,)]


@given(message=some.text() | some.binary(max_size=64))
def test_messages_are_read_or_refused(message: str | bytes) -> None:
    try:
        found = read(message)
    except SchemaError as refused:
        assert refused.code == "E_BODY"
        assert ActionRequest("", {}).refusal(refused)
    else:
        assert found.action and found.number >= 0


async def test_answers_are_as_described(wires: Wires) -> None:
    client = await logged_in(wires)
    check_message("TdengineAction", {"action": "query", "args": {"req_id": 1, "sql": "SELECT 1"}})
    told = await client.good("query", sql="SELECT 1")
    check_message("TdengineAnswer", told)
    check_message("TdengineAnswer", await client.good("fetch", id=told["id"]))
    check_message("TdengineAnswer", await client.ask("query", sql="SELEC"))
    check_message("TdengineAnswer", await client.good("init"))
    await client.socket.send_str(json.dumps({"action": "version"}))
    message = await client.socket.receive(timeout=60)
    assert message.type is WSMsgType.TEXT
    check_message("TdengineAnswer", json.loads(message.data))
