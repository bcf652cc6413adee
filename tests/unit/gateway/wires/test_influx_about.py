"""Who may ask in the ways of InfluxDB's clients, and what they are told of the server."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.gateway.wires.kit import Wires, key


async def test_a_server_is_there(wires: Wires) -> None:
    assert (await wires.get("/ping", {}))[0] == 204
    assert (await wires.get("/health", {}))[1]["status"] == "pass"
    status, said = await wires.get("/ready", {})
    assert (status, said["status"], said["up"]) == (200, "ready", "0s")


async def test_buckets_and_organisations(wires: Wires) -> None:
    wires.gateway.define("CREATE DATABASE k KEEP 3d", None)
    _, said = await wires.get("/api/v2/buckets")
    assert [b["name"] for b in said["buckets"]] == ["d", "k"]
    assert said["buckets"][1]["retentionRules"] == [{"type": "expire", "everySeconds": 259_200}]
    _, found = await wires.get("/api/v2/buckets", name="k")
    assert [b["name"] for b in found["buckets"]] == ["k"]
    assert (await wires.get(f"/api/v2/buckets/{found['buckets'][0]['id']}"))[1]["name"] == "k"
    assert (await wires.get("/api/v2/buckets/ffff"))[0] == 404
    assert (await wires.get("/api/v2/buckets", name="z"))[1]["buckets"] == []
    assert len((await wires.get("/api/v2/buckets", limit="1", offset="1"))[1]["buckets"]) == 1
    _, said = await wires.get("/api/v2/orgs", org="mine")
    assert said["orgs"] == [{"id": found["buckets"][0]["orgID"], "name": "mine"}]
    assert (await wires.get("/api/v2/orgs", orgID="2"))[1]["orgs"] == []


async def test_buckets_are_made(wires: Wires) -> None:
    async def make(body: Any, headers: dict[str, str] | None = None) -> Any:
        data = body if isinstance(body, str) else json.dumps(body)
        return await wires.post("/api/v2/buckets", data, headers)

    rule = {"type": "expire", "everySeconds": 90_000}
    status, said = await make({"name": "made", "orgID": "1", "retentionRules": [rule]})
    assert (status, said["name"]) == (201, "made")
    assert said["retentionRules"] == [{"type": "expire", "everySeconds": 172_800}]
    assert (await wires.get(f"/api/v2/buckets/{said['id']}"))[1] == said
    assert (await make({"name": "ever", "retentionRules": [{"everySeconds": 0}]}))[0] == 201
    status, said = await make({"name": "made"})
    assert (status, said["code"]) == (409, "conflict")
    for wrong in (
        *("", "[", "[]", "{}", '{"name": 1}'),
        *({"name": "x`; DROP DATABASE d"}, {"name": "x", "retentionRules": [rule, rule]}),
        *({"name": "x", "retentionRules": [1]}, {"name": "x", "retentionRules": rule}),
        *({"name": "x", "retentionRules": [{"everySeconds": n}]} for n in (-1, 1.5, "1", 10**12)),
    ):
        status, said = await make(wrong)
        assert (status, said["code"]) == (400, "invalid"), wrong
    bob = wires.as_user(wires.gateway.allow("bob"))
    status, said = await make({"name": "bobs"}, bob)
    assert (status, said["code"]) == (403, "forbidden")
    assert sorted(d.name for d in wires.gateway.catalog.databases()) == ["d", "ever", "made"]


async def test_without_a_key_or_with_a_wrong_one_nothing_is_told(wires: Wires) -> None:
    await wires.post("/write", "cpu v=1", db="d")
    for path in ("/query", "/influxdb/v1/query", "/api/v2/buckets", "/api/v2/orgs"):
        for headers in ({}, key(password="wrong"), {"Authorization": "Token x"}):
            status, said = await wires.get(path, headers, q="SHOW DATABASES")
            assert status == 401 and "cpu" not in str(said)
        assert (await wires.get(path, {}, q="SHOW DATABASES", u="root", p="secret"))[0] == 200


async def test_who_may_read_one_table_sees_that_one(wires: Wires) -> None:
    await wires.post("/write", "cpu,host=a usage=1\nmem free=1", db="d")
    catalog = wires.gateway.catalog
    cpu = catalog.table("d", "cpu")
    assert cpu is not None
    wires.gateway.define("CREATE DATABASE other", None)
    ann = wires.as_user(wires.gateway.allow("ann", "READ", on=cpu.id))

    async def said(q: str, db: str = "d") -> Any:
        return await wires.get("/query", ann, q=q, db=db)

    assert (await said("SHOW MEASUREMENTS"))[1]["results"][0]["series"][0]["values"] == [["cpu"]]
    assert (await said("SHOW DATABASES"))[1]["results"][0]["series"][0]["values"] == [["d"]]
    assert (await said("SELECT usage FROM cpu"))[0] == 200
    for query in (
        "SELECT free FROM mem",
        "SELECT v FROM nothing",
        "CREATE DATABASE x",
        "DROP DATABASE d",
    ):
        status, answer = await said(query)
        assert status == 403 and answer["error"].startswith("ann has no "), answer
    for database in ("other", "nothing"):
        status, answer = await said("SHOW MEASUREMENTS", database)
        assert (status, database in answer["error"]) == (403, True)
    assert (await said("SHOW TAG KEYS FROM mem"))[1]["results"] == [{"statement_id": 0}]
    assert (await wires.get("/api/v2/buckets", ann))[1]["buckets"][0]["name"] == "d"
    assert len((await wires.get("/api/v2/buckets", ann))[1]["buckets"]) == 1
    bob = wires.as_user(wires.gateway.allow("bob"))
    assert (await wires.get("/query", bob, q="SHOW MEASUREMENTS", db="d"))[0] == 403
    assert (await wires.get("/api/v2/buckets", bob))[1]["buckets"] == []
    status, answer = await wires.post("/write", b"\xff\xff", bob, db="d")
    assert status == 403, "before a byte of the body is looked at"
