"""The schema registry over a socket: confluent-kafka's own client, and requests by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.unit.gateway.api.kit import KEY, WholeGateway

SUBJECT = "in.plant-meters"
T = TypeVar("T")


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WholeGateway]:
    made = WholeGateway(tmp_path, monkeypatch)
    await made.start()
    made.memory.define("CREATE DATABASE plant PARTITIONS 1", None)
    made.memory.define("CREATE STABLE plant.meters (ts TIMESTAMP, v DOUBLE) TAGS (site VARCHAR(8))")
    made.memory.define("ALTER STABLE plant.meters ADD COLUMN w BIGINT")
    yield made
    await made.close()


async def asked(gateway: WholeGateway, use: Callable[[SchemaRegistryClient], T]) -> T:
    """What Confluent's client, which blocks, makes of the gateway."""
    url = str(gateway.client.make_url("/")).rstrip("/")

    def work() -> T:
        with SchemaRegistryClient({"url": url, "basic.auth.user.info": "root:secret"}) as client:
            return use(client)

    return await asyncio.to_thread(work)


async def send(
    gateway: WholeGateway, method: str, path: str, body: Any = None, key: Any = KEY
) -> tuple[int, Any]:
    async with gateway.client.request(method, path, json=body, headers=key) as answer:
        return answer.status, json.loads(await answer.text())


async def newest(gateway: WholeGateway) -> Any:
    _, found = await send(gateway, "GET", f"/subjects/{SUBJECT}/versions/latest")
    return json.loads(found["schema"])


def with_column(schema: Any, **column: Any) -> dict[str, str]:
    """The body that asks about a table with one column more."""
    schema["fields"][0]["type"]["items"]["fields"].append({"name": "x", **column})
    return {"schema": json.dumps(schema)}


async def test_confluents_client_checks_before_a_table_is_altered(gateway: WholeGateway) -> None:
    optional = with_column(await newest(gateway), type=["null", "int"], default=None)["schema"]
    required = with_column(await newest(gateway), type="int")["schema"]

    def use(client: SchemaRegistryClient) -> list[Any]:
        assert client.get_subjects() == [SUBJECT]
        assert client.get_versions(SUBJECT) == [1, 2]
        known = client.get_version(SUBJECT, 2)
        found = client.lookup_schema(SUBJECT, Schema(known.schema.schema_str or "", "AVRO"))
        assert (found.schema_id, found.version) == (known.schema_id, 2)
        first = client.get_version(SUBJECT, 1).schema.schema_str or ""
        assert client.lookup_schema(SUBJECT, Schema(first, "AVRO")).version == 1
        assert client.register_schema(SUBJECT, known.schema) == known.schema_id
        before = [
            client.test_compatibility(SUBJECT, Schema(text, "AVRO"))
            for text in (optional, required)
        ]
        client.set_compatibility(SUBJECT, "FORWARD")
        assert client.get_compatibility(SUBJECT) == "FORWARD"
        return [*before, client.test_compatibility(SUBJECT, Schema(required, "AVRO"))]

    assert await asked(gateway, use) == [True, False, True]


async def test_a_check_tells_what_does_not_fit(gateway: WholeGateway) -> None:
    path = f"/compatibility/subjects/{SUBJECT}/versions"
    body = with_column(await newest(gateway), type="int")
    assert await send(gateway, "POST", path, body) == (200, {"is_compatible": False})
    for one in (f"{path}?verbose=true", f"{path}/1?verbose=true", f"{path}/latest?verbose=true"):
        status, told = await send(gateway, "POST", one, body)
        assert (status, told["is_compatible"]) == (200, False)
        assert any(
            "READER_FIELD_MISSING_DEFAULT_VALUE" in m and ": x" in m for m in told["messages"]
        )


async def test_only_sql_registers(gateway: WholeGateway) -> None:
    path = f"/subjects/{SUBJECT}/versions"
    fits = with_column(await newest(gateway), type=["null", "int"], default=None)
    status, told = await send(gateway, "POST", path, fits)
    assert (status, told["error_code"]) == (422, 42205) and "ALTER TABLE" in told["message"]
    status, told = await send(gateway, "POST", path, with_column(await newest(gateway), type="int"))
    assert (status, told["error_code"]) == (409, 409)
    assert "incompatible with an earlier schema" in told["message"]
    status, told = await send(gateway, "POST", "/subjects/mine-value/versions", fits)
    assert (status, told["error_code"]) == (422, 42205)
    assert (await send(gateway, "GET", path))[1] == [1, 2]


async def test_a_subject_without_a_level_has_the_global_one(gateway: WholeGateway) -> None:
    own = f"/config/{SUBJECT}"
    assert await send(gateway, "GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert (await send(gateway, "GET", own))[1]["error_code"] == 40408
    told = await send(gateway, "GET", f"{own}?defaultToGlobal=true")
    assert told == (200, {"compatibilityLevel": "BACKWARD"})


async def test_levels_are_entries_of_the_catalog(gateway: WholeGateway) -> None:
    own = f"/config/{SUBJECT}"
    told = await send(gateway, "PUT", "/config", {"compatibility": "full_transitive"})
    assert told == (200, {"compatibility": "FULL_TRANSITIVE"})
    await send(gateway, "PUT", own, {"compatibility": "NONE"})
    assert await send(gateway, "GET", own) == (200, {"compatibilityLevel": "NONE"})
    table = gateway.memory.catalog.table("plant", "meters")
    level = gateway.memory.catalog.compatibility(table.id if table is not None else -1)
    assert level is not None and level.level == "NONE"


async def test_a_deleted_level_is_the_one_before_again(gateway: WholeGateway) -> None:
    own = f"/config/{SUBJECT}"
    await send(gateway, "PUT", "/config", {"compatibility": "full_transitive"})
    await send(gateway, "PUT", own, {"compatibility": "NONE"})
    assert await send(gateway, "DELETE", own) == (200, {"compatibilityLevel": "NONE"})
    assert (await send(gateway, "DELETE", own))[1]["error_code"] == 40401
    told = await send(gateway, "DELETE", "/config")
    assert told == (200, {"compatibilityLevel": "FULL_TRANSITIVE"})
    assert await send(gateway, "GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


async def test_a_dropped_tables_level_goes_with_it(gateway: WholeGateway) -> None:
    await send(gateway, "PUT", f"/config/{SUBJECT}", {"compatibility": "NONE"})
    table = gateway.memory.catalog.table("plant", "meters")
    assert table is not None
    gateway.memory.define("DROP TABLE plant.meters")
    assert gateway.memory.catalog.compatibility(table.id) is None
    gateway.memory.define("CREATE TABLE plant.meters (ts TIMESTAMP, v DOUBLE)")
    assert (await send(gateway, "GET", f"/config/{SUBJECT}"))[1]["error_code"] == 40408


async def test_no_level_loosens_what_alter_table_allows(gateway: WholeGateway) -> None:
    await send(gateway, "PUT", f"/config/{SUBJECT}", {"compatibility": "NONE"})
    body = {"schema": '"int"'}
    status, told = await send(gateway, "POST", f"/subjects/{SUBJECT}/versions", body)
    assert (status, told["error_code"]) == (422, 42205)


REFUSED = [
    ("GET", "/subjects/none/versions", None, 40401, "Subject 'none' not found."),
    ("GET", f"/subjects/{SUBJECT}/versions/3", None, 40402, "Version 3 not found."),
    ("GET", f"/subjects/{SUBJECT}/versions/0", None, 42202, "'0' is not a valid version id"),
    ("GET", f"/subjects/{SUBJECT}/versions/new", None, 42202, "'new' is not a valid"),
    ("GET", "/schemas/ids/99", None, 40403, "Schema 99 not found"),
    ("GET", "/schemas/ids/99/versions", None, 40403, "Schema 99 not found"),
    ("GET", "/schemas/ids/x", None, 40403, "Schema x not found"),
    ("POST", f"/subjects/{SUBJECT}", {"schema": '"int"'}, 40403, "Schema not found"),
    ("POST", "/subjects/none", {"schema": '"int"'}, 40401, "Subject 'none' not found."),
    ("POST", f"/subjects/{SUBJECT}", {"schema": "{"}, 42201, "Invalid schema"),
    ("POST", f"/subjects/{SUBJECT}", {}, 42201, "Invalid schema"),
    (
        "POST",
        f"/subjects/{SUBJECT}",
        {"schema": '"int"', "schemaType": "PROTOBUF"},
        42201,
        "schemaType",
    ),
    (
        "POST",
        f"/subjects/{SUBJECT}",
        {"schema": '"int"', "references": [{"name": "x"}]},
        42201,
        "references",
    ),
    ("POST", f"/subjects/{SUBJECT}", [], 40000, "no JSON object"),
    (
        "POST",
        f"/compatibility/subjects/{SUBJECT}/versions/9",
        {"schema": '"int"'},
        40402,
        "Version 9",
    ),
    ("PUT", "/config", {"compatibility": "SOME"}, 42203, "Invalid compatibility level"),
    ("PUT", f"/config/{SUBJECT}", {}, 42203, "Invalid compatibility level"),
    ("PUT", "/config/none", {"compatibility": "NONE"}, 40401, "Subject 'none' not found."),
    ("PUT", "/mode", {"mode": "READWRITE"}, 42205, "Mode changes are not allowed"),
    ("PUT", f"/mode/{SUBJECT}", {"mode": "IMPORT"}, 42205, "Mode changes are not allowed"),
    ("GET", "/mode/none", None, 40401, "Subject 'none' not found."),
]


async def test_refusals_have_confluents_numbers(gateway: WholeGateway) -> None:
    for method, path, body, number, words in REFUSED:
        status, told = await send(gateway, method, path, body)
        assert (status, told["error_code"]) == (int(str(number)[:3]), number), (method, path)
        assert words in told["message"]


async def test_lists_take_the_parameters_of_clients(gateway: WholeGateway) -> None:
    for query, found in (
        ("subjectPrefix=in.plant", [SUBJECT]),
        ("subjectPrefix=other", []),
        ("deleted=true", [SUBJECT]),
        ("deletedOnly=true", []),
        ("offset=0&limit=-1", [SUBJECT]),
        ("offset=1", []),
        ("limit=0", []),
    ):
        assert await send(gateway, "GET", f"/subjects?{query}") == (200, found)
    assert await send(gateway, "GET", f"/mode/{SUBJECT}") == (200, {"mode": "READONLY"})
    assert await send(gateway, "GET", "/schemas/ids/1/versions") == (200, [])


async def test_levels_want_rights(gateway: WholeGateway) -> None:
    memory = gateway.memory
    table = memory.catalog.table("plant", "meters")
    assert table is not None
    level = {"compatibility": "NONE"}
    ann = {"Authorization": f"Bearer {gateway.parts.console.login.token(memory.allow('ann'))}"}
    assert (await send(gateway, "GET", "/subjects", key=ann))[1] == []
    assert (await send(gateway, "PUT", f"/config/{SUBJECT}", level, ann))[1]["error_code"] == 40401
    memory.allow("ann", "READ", on=table.id)
    ann = {"Authorization": f"Bearer {gateway.parts.console.login.token('ann')}"}
    for method, path in (
        ("PUT", f"/config/{SUBJECT}"),
        ("PUT", "/config"),
        ("DELETE", "/config"),
    ):
        assert (await send(gateway, method, path, level, ann))[0] == 403, path
    memory.allow("ann", "ALTER", on=table.id)
    ann = {"Authorization": f"Bearer {gateway.parts.console.login.token('ann')}"}
    assert (await send(gateway, "PUT", f"/config/{SUBJECT}", level, ann))[0] == 200
    assert (await send(gateway, "PUT", "/config", level, ann))[0] == 403
