"""What the gateway answers is what the OpenAPI document says: `kit.WholeGateway` compares."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.api.operations import OPERATIONS
from gateway.rest import ARROW
from tests.unit.gateway.api.kit import KEY, WholeGateway

_ROW = {"tbname": "m1", "ts": "2026-03-01T00:00:00Z", "v": 1.5, "site": "n"}
_LINE = "cpu,host=a v=1 1772355600000000000"
_SCHEMA = {"schema": '"int"'}
_UNTAKEN = {"name": "s", "summary": {"dataPoints": [{}]}}
_METRICS = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [_UNTAKEN]}]}]}
#: name of an operation, its request, and the status of the answer
ASKED: list[tuple[str, str, str, dict[str, Any], int]] = [
    ("query", "POST", "/v1/query?db=plant", {"data": "SELECT * FROM meters"}, 200),
    ("query", "POST", "/v1/query", {"json": {"sql": "SELECT ? AS a", "parameters": [1]}}, 200),
    ("query", "POST", "/v1/query", {"data": "SELECT 1", "headers": {"Accept": ARROW}}, 200),
    ("query", "POST", "/v1/query", {"data": "SELEC 1"}, 400),
    ("query", "POST", "/v1/query", {"data": "SELECT * FROM no.such"}, 400),
    ("query", "POST", "/v1/query", {"data": "CREATE DATABASE plant"}, 409),
    ("tdengineSql", "POST", "/rest/sql?timing=true", {"data": "SELECT 1"}, 200),
    ("tdengineSql", "POST", "/rest/sql", {"data": "SELEC"}, 200),
    ("tdengineSql", "POST", "/rest/sql", {"data": ""}, 400),
    (
        "tdengineSqlIn",
        "POST",
        "/rest/sql/plant?row_with_meta=true",
        {"data": "SELECT * FROM meters"},
        200,
    ),
    ("tdengineSqlSlash", "POST", "/rest/sql/", {"data": "SELECT 1"}, 200),
    ("tdengine2Ticks", "POST", "/rest/sqlt", {"data": "SELECT * FROM plant.meters"}, 200),
    ("tdengine2Ticks", "POST", "/rest/sqlt", {"data": "SELEC"}, 200),
    ("tdengine2TicksIn", "POST", "/rest/sqlt/plant", {"data": "SELECT * FROM meters"}, 200),
    ("tdengine2Utc", "POST", "/rest/sqlutc", {"data": "SELECT 1"}, 200),
    ("tdengine2UtcIn", "POST", "/rest/sqlutc/plant", {"data": "SHOW TABLES"}, 200),
    ("tdengineLogin", "GET", "/rest/login/root/secret", {}, 200),
    ("tdengineLogin", "GET", "/rest/login/root/wrong", {}, 401),
    ("check", "POST", "/v1/check", {"json": {"sql": "SELECT v FROM plant.meters; SELEC"}}, 200),
    ("check", "POST", "/v1/check", {"json": []}, 400),
    ("dialect", "GET", "/v1/dialect", {}, 200),
    ("info", "GET", "/v1/info", {}, 200),
    ("writeRows", "POST", "/v1/tables/plant/meters/rows", {"json": [_ROW]}, 200),
    ("writeRows", "POST", "/v1/tables/plant/meters/rows", {"json": {**_ROW, "ts": 7}}, 200),
    ("writeRows", "POST", "/v1/tables/plant/meters/rows", {"json": [{"v": "x"}]}, 400),
    ("writeRows", "POST", "/v1/tables/plant/none/rows", {"json": [_ROW]}, 404),
    ("writeRows", "POST", "/v1/tables/plant/meters/rows", {"data": "x"}, 415),
    ("lastRows", "GET", "/v1/tables/plant/meters/last?tbname=m1", {}, 200),
    ("influxWrite", "POST", "/write?db=plant&precision=ns", {"data": _LINE}, 204),
    ("influxWrite", "POST", "/write?db=plant", {"data": "cpu"}, 400),
    ("influxWriteV1", "POST", "/influxdb/v1/write?db=plant", {"data": _LINE}, 204),
    ("influxWriteV2", "POST", "/api/v2/write?bucket=plant&org=o", {"data": _LINE}, 204),
    ("influxWriteV2", "POST", "/api/v2/write?bucket=plant", {"data": "cpu"}, 400),
    ("influxWriteV2Prefixed", "POST", "/influxdb/api/v2/write?bucket=plant", {"data": _LINE}, 204),
    (
        "openTsdbPutJson",
        "POST",
        "/opentsdb/v1/put/json/plant",
        {"json": {"metric": "t", "timestamp": 1772355600, "value": 1, "tags": {"a": "b"}}},
        204,
    ),
    (
        "openTsdbPutTelnet",
        "POST",
        "/opentsdb/v1/put/telnet/plant",
        {"data": "t 1772355600 1 a=b"},
        204,
    ),
    ("openTsdbPutTelnet", "POST", "/opentsdb/v1/put/telnet/plant", {"data": "t"}, 400),
    ("prometheusWrite", "POST", "/api/v1/write?db=plant", {"data": b"\0"}, 204),
    ("prometheusWrite", "POST", "/api/v1/write", {"data": b""}, 400),
    ("otlpMetrics", "POST", "/v1/metrics?db=plant", {"json": _METRICS}, 200),
    ("otlpMetrics", "POST", "/v1/metrics?db=plant", {"json": []}, 400),
    ("otlpMetrics", "POST", "/v1/metrics?db=plant", {"data": "x"}, 415),
    ("influxQuery", "GET", "/query?db=plant&q=SELECT+*+FROM+cpu&epoch=s", {}, 200),
    ("influxQuery", "GET", "/query?q=SELECT", {}, 400),
    ("influxQuery", "GET", "/query", {}, 400),
    ("influxQueryForm", "POST", "/query", {"data": {"q": "SHOW DATABASES"}}, 200),
    ("influxQueryV1", "GET", "/influxdb/v1/query?q=SHOW+DATABASES", {}, 200),
    ("influxQueryFormV1", "POST", "/influxdb/v1/query?q=SHOW+DATABASES", {}, 200),
    ("influxBuckets", "GET", "/api/v2/buckets?name=plant&limit=1&offset=0", {}, 200),
    ("influxBucket", "GET", "/api/v2/buckets/0", {}, 404),
    ("influxMakeBucket", "POST", "/api/v2/buckets", {"json": {"name": "made"}}, 201),
    ("influxMakeBucket", "POST", "/api/v2/buckets", {"json": {"name": "plant"}}, 409),
    ("influxOrganisations", "GET", "/api/v2/orgs?org=mine", {}, 200),
    ("influxPing", "GET", "/ping", {}, 204),
    ("influxPingV1", "GET", "/influxdb/v1/ping", {}, 204),
    ("influxHealth", "GET", "/health", {}, 200),
    ("influxReady", "GET", "/ready", {}, 200),
    ("drain", "POST", "/v1/drain?db=none", {}, 404),
    ("drain", "POST", "/v1/drain?depth=x", {}, 400),
    ("groups", "GET", "/v1/groups", {}, 200),
    ("forward", "POST", "/internal/ddl", {}, 403),
    ("schemaTypes", "GET", "/schemas/types", {}, 200),
    ("schema", "GET", "/schemas/ids/1", {}, 200),
    ("schema", "GET", "/schemas/ids/7", {}, 404),
    ("schemaAlone", "GET", "/schemas/ids/1/schema", {}, 200),
    ("schemaSubjects", "GET", "/schemas/ids/1/subjects", {}, 200),
    ("schemaVersions", "GET", "/schemas/ids/1/versions", {}, 200),
    ("subjects", "GET", "/subjects", {}, 200),
    ("versions", "GET", "/subjects/in.plant-meters/versions", {}, 200),
    ("version", "GET", "/subjects/in.plant-meters/versions/latest", {}, 200),
    ("versionSchema", "GET", "/subjects/in.plant-meters/versions/1/schema", {}, 200),
    ("versionSchema", "GET", "/subjects/none/versions/1/schema", {}, 404),
    ("lookUpSchema", "POST", "/subjects/in.plant-meters", {"json": _SCHEMA}, 404),
    ("registerSchema", "POST", "/subjects/in.plant-meters/versions", {"json": _SCHEMA}, 409),
    (
        "checkCompatibility",
        "POST",
        "/compatibility/subjects/in.plant-meters/versions?verbose=true",
        {"json": _SCHEMA},
        200,
    ),
    (
        "checkCompatibilityWith",
        "POST",
        "/compatibility/subjects/in.plant-meters/versions/latest",
        {"json": _SCHEMA},
        200,
    ),
    ("compatibility", "GET", "/config", {}, 200),
    ("setCompatibility", "PUT", "/config", {"json": {"compatibility": "FULL"}}, 200),
    ("setCompatibility", "PUT", "/config", {"json": {}}, 422),
    ("clearCompatibility", "DELETE", "/config", {}, 200),
    (
        "setSubjectCompatibility",
        "PUT",
        "/config/in.plant-meters",
        {"json": {"compatibility": "FULL"}},
        200,
    ),
    ("subjectCompatibility", "GET", "/config/in.plant-meters", {}, 200),
    ("clearSubjectCompatibility", "DELETE", "/config/in.plant-meters", {}, 200),
    ("subjectCompatibility", "GET", "/config/in.plant-meters", {}, 404),
    ("mode", "GET", "/mode", {}, 200),
    ("subjectMode", "GET", "/mode/in.plant-meters", {}, 200),
    ("setMode", "PUT", "/mode", {"json": {"mode": "READWRITE"}}, 422),
    ("setSubjectMode", "PUT", "/mode/in.plant-meters", {"json": {"mode": "READWRITE"}}, 422),
    ("issueToken", "POST", "/v1/tokens", {"json": {"seconds": 60}}, 200),
    ("issueToken", "POST", "/v1/tokens", {"data": "x"}, 400),
    ("openLink", "GET", "/login?token=x", {}, 401),
    ("logIn", "POST", "/v1/login", {"json": {"user": "root", "password": "secret"}}, 200),
    ("logIn", "POST", "/v1/login", {"json": {"user": "root", "password": "x"}}, 401),
    ("logIn", "POST", "/v1/login", {"data": "x"}, 415),
    ("logOut", "POST", "/v1/logout", {"json": {"everywhere": True}}, 200),
    ("whoAmI", "GET", "/v1/whoami", {}, 200),
    ("console", "GET", "/", {}, 200),
    ("console", "GET", "/", {"headers": {"If-None-Match": "*"}}, 304),
    ("toConsole", "GET", "/console", {}, 308),
    ("toConsoleFolder", "GET", "/console/", {}, 308),
    ("consoleFile", "GET", "/console/v/none.js", {}, 404),
    ("health", "GET", "/v1/health", {}, 200),
    ("streamCounters", "GET", "/v1/streams/counters", {}, 200),
    ("audit", "GET", "/v1/audit?limit=5", {}, 200),
    ("audit", "GET", "/v1/audit?limit=0", {}, 400),
    ("logs", "GET", "/v1/logs?service=gateway&level=warning&limit=5", {}, 200),
    ("logs", "GET", "/v1/logs?since=soon", {}, 400),
    ("openapi", "GET", "/v1/openapi.json", {}, 200),
    ("asyncapi", "GET", "/v1/asyncapi.json", {}, 200),
]
#: WebSockets are opened below; a catalog in memory has no root whose tokens could be revoked
_ELSEWHERE = {"ingest", "follow", "tdengineSocket", "revokeTokens"}


async def test_answers_are_as_described(gateway: WholeGateway) -> None:
    gateway.memory.define("CREATE DATABASE plant PARTITIONS 1", None)
    columns = "(ts TIMESTAMP, v DOUBLE) TAGS (site VARCHAR(8))"
    gateway.memory.define(f"CREATE STABLE plant.meters {columns}", None)
    faults = []
    for name, method, path, given, status in ASKED:
        headers = KEY | given.get("headers", {})
        answer = await gateway.client.request(
            method, path, **{**given, "headers": headers, "allow_redirects": False}
        )
        if answer.status != status:
            faults.append(f"{name} {path}: {answer.status} {await answer.text()}")
    assert not faults, "\n".join(faults)


def test_every_operation_is_asked() -> None:
    asked = {name for name, *_ in ASKED}
    assert asked | _ELSEWHERE == {one.id for one in OPERATIONS.values()}


async def test_info_tells_where_the_other_ports_are(gateway: WholeGateway) -> None:
    told = await (await gateway.client.get("/v1/info", headers=KEY)).json()
    settings = gateway.memory.settings
    assert (told["notifier_url"], told["store_url"]) == (settings.notifier_url, settings.store_url)
    assert told["federation_url"] == settings.federation_url
    assert told["kafka_bootstrap"] == settings.kafka_bootstrap
    assert told["kafka_security"] == settings.kafka_security
    assert told["kafka_users"] is settings.kafka_users


async def test_documents_are_for_users(gateway: WholeGateway) -> None:
    for path in ("/v1/openapi.json", "/v1/asyncapi.json"):
        assert (await gateway.client.get(path)).status == 401
        answer = await gateway.client.get(path, headers=KEY)
        told = await answer.json()
        assert told["info"]["title"] == "Penstock" and told["info"]["version"]


@pytest.mark.parametrize("path", ["/v1/ingest", "/v1/follow", "/ws"])
async def test_a_socket_opens_with_a_login(gateway: WholeGateway, path: str) -> None:
    async with gateway.client.ws_connect(path, headers=KEY) as socket:
        assert not socket.closed
