"""Ways in to a mesh for bytes, as somebody with READ and WRITE on a database; for each of them good
bytes.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as dial
from websockets.typing import Origin, Subprotocol

from penstock.bus import Publisher
from penstock.client.wire import ARROW, to_stream
from penstock.feeds.cursor import Cursor
from penstock.link.frames import pack
from services.store.flightsql import write_command
from tests.fuzz.endpoints import METRICS, SERIES
from tests.security.conftest import OWN, PAGE, PASSWORD, Attacker
from tests.stack.postgres_kit import PgClient
from tests.unit.gateway.postgres.kit import bind, message, parse, text

#: 2026-03-01
T0 = 1_772_323_200_000
TABLE = f"{OWN}.points"
PARTITIONS = 2
_JSON = "application/json"
_PLAIN = "text/plain"
_PROTOBUF = "application/x-protobuf"
_FORM = "application/x-www-form-urlencoded"
_REGISTRY = "application/vnd.schemaregistry.v1+json"
_SELECT = f"SELECT s FROM {TABLE} LIMIT 5"
#: how long a message of the PostgreSQL wire is waited for: one that says it is longer has no answer
_PG_SECONDS = 3.0
#: bytes in, what came back out
Send = Callable[[bytes], str]
Way = tuple[Send, list[bytes]]


# ---------------------------------------------------------------- good bytes

ROW = {"tbname": "p1", "ts": T0, "v": 0.5, "n": 3, "s": "some text", "g": 1}
ROWS = pa.table(
    {
        "tbname": [f"p{i % 4}" for i in range(40)],
        "ts": pa.array(range(T0, T0 + 40), pa.int64()),
        "v": [0.5] * 40,
        "n": pa.array(range(40), pa.int32()),
        "s": ["some text", None, "ü" * 9, ""] * 10,
        "g": pa.array([1] * 40, pa.int32()),
    }
)
META = {"penstock.seq": "7", "penstock.table": TABLE}
LINE = b'points,g=1i v=0.5,n=3i,s="some text" 1772323200000000000\npoints v=1 1772323200001000000\n'
#: of OpenTelemetry, as JSON
GAUGE = {
    "resourceMetrics": [
        {
            "scopeMetrics": [
                {
                    "metrics": [
                        {
                            "name": "load",
                            "gauge": {
                                "dataPoints": [{"timeUnixNano": str(T0 * 10**6), "asDouble": 0.5}]
                            },
                        }
                    ]
                }
            ]
        }
    ]
}


def arrow_bodies() -> list[bytes]:
    words = ROWS.set_column(4, "s", ROWS["s"].dictionary_encode())
    views = ROWS.set_column(4, "s", ROWS["s"].cast(pa.string_view()))
    return [to_stream(ROWS), to_stream(words), to_stream(views)]


def token() -> bytes:
    return Cursor({0: 0, 1: 0}, {"0/a": (1, 2)}).token().encode()


def _taos(action: str, **args: Any) -> bytes:
    return json.dumps({"action": action, "args": {"req_id": 1, **args}}).encode()


def _taos_bytes(code: int, resource: int, content: bytes) -> bytes:
    return struct.pack("<QQQ", 1, resource, code) + content


def _pg_messages() -> list[bytes]:
    """A query, and a statement with a parameter."""
    select = f"SELECT s FROM {TABLE} WHERE n = $1 LIMIT 5"
    return [
        message(b"Q", text(_SELECT)),
        message(
            b"Q", text("SELECT relname FROM pg_catalog.pg_class WHERE oid = 'points'::regclass")
        ),
        message(b"P", parse("a", select, (23,)))
        + message(b"B", bind("", "a", [b"3"]))
        + message(b"D", b"P\0")
        + message(b"E", text("") + struct.pack("!i", 0)),
    ]


# ---------------------------------------------------------------- ways in


class WaysIn:
    """Sends bytes to each endpoint of a mesh."""

    def __init__(self, attacker: Attacker, publisher: Publisher, record: bytes) -> None:
        """*record* is a row batch of the table, as clients of Kafka send it."""
        key = base64.b64encode(f"{attacker.name}:{PASSWORD}".encode()).decode()
        self._key = {"Authorization": f"Basic {key}"}
        self._attacker = attacker
        self._mesh = attacker.mesh
        self._http = attacker.http()
        self._publisher = publisher
        self._record = record
        self._sockets: dict[str, ClientConnection] = {}
        self._postgres: PgClient | None = None
        self._store = flight.FlightClient(self._mesh.store_url)
        self._call = flight.FlightCallOptions(
            headers=[(b"authorization", self._key["Authorization"].encode())], timeout=60
        )
        self._token = self._http.post("/v1/tokens").json()["token"]

    def known(self) -> dict[str, Way]:
        """Each way in, with good bytes for it."""
        return {**self._of_rows(), **self._of_wires(), **self._of_sockets(), **self._of_store()}

    def _of_rows(self) -> dict[str, Way]:
        row = json.dumps(ROW).encode()
        rows = f"/v1/tables/{OWN}/points/rows"
        return {
            "arrow": (self._poster(rows, ARROW), arrow_bodies()),
            "json": (self._poster(rows, _JSON), [row, b"[" + row + b"]"]),
            "record": (self._publish, [self._record]),
            "check": (
                self._poster("/v1/check", _JSON),
                [json.dumps({"sql": "SELECT v FROM points", "database": OWN}).encode()],
            ),
        }

    def _of_wires(self) -> dict[str, Way]:
        select = b"SELECT v FROM points LIMIT 3"
        schema = json.dumps({"schema": '{"type": "record", "name": "r", "fields": []}'}).encode()
        subject = f"/compatibility/subjects/in.{OWN}-points/versions/latest"
        return {
            "lines": (self._poster(f"/write?db={OWN}", _PLAIN), [LINE]),
            "put json": (
                self._poster(f"/opentsdb/v1/put/json/{OWN}", _JSON),
                [b'[{"metric": "puts", "timestamp": 1772323200, "value": 1, "tags": {"g": "1"}}]'],
            ),
            "put telnet": (
                self._poster(f"/opentsdb/v1/put/telnet/{OWN}", _PLAIN),
                [b"put puts 1772323200 0.5 g=1\nputs 1772323200001 2 g=2"],
            ),
            "remote write": (
                self._poster(f"/api/v1/write?db={OWN}", _PROTOBUF),
                [pa.Codec("snappy").compress(SERIES * 3, asbytes=True)],
            ),
            "otlp": (self._poster(f"/v1/metrics?db={OWN}", _PROTOBUF), [METRICS]),
            "otlp json": (
                self._poster(f"/v1/metrics?db={OWN}", _JSON),
                [json.dumps(GAUGE).encode()],
            ),
            "influxql": (
                self._poster(f"/query?db={OWN}", _FORM),
                [b"q=SELECT+mean(v)+FROM+points+WHERE+g+%3D+1+GROUP+BY+time(1h)+LIMIT+3"],
            ),
            "sqlt": (self._poster(f"/rest/sqlt/{OWN}", _PLAIN), [select]),
            "sqlutc": (self._poster(f"/rest/sqlutc/{OWN}", _PLAIN), [select]),
            "registry": (self._poster(subject, _REGISTRY), [schema]),
        }

    def _of_sockets(self) -> dict[str, Way]:
        frame = json.dumps({"seq": 7, "table": TABLE, "rows": [ROW]}).encode()
        ask = json.dumps({"action": "subscribe", "id": "a", "table": TABLE}).encode()
        links = [
            {"ch": 1, "op": "information"},
            {"ch": 2, "op": "append", "table": "points", "database": OWN, "producer": "p"},
        ]
        sql = _SELECT.encode()
        return {
            "follow": (
                lambda data: self._socket("/v1/follow", _text(data)),
                [b'{"action": "subscribe", "id": "a", "table": "own.points", "limit": 5}'],
            ),
            "socket text": (lambda data: self._socket("/v1/ingest", _text(data)), [frame]),
            "socket rows": (lambda data: self._socket("/v1/ingest", data), [to_stream(ROWS, META)]),
            "link text": (
                lambda data: self._link(_text(data)),
                [json.dumps(link).encode() for link in links],
            ),
            "link rows": (lambda data: self._link(data), [pack({"ch": 2, "seq": 1}, ROWS)]),
            "token": (lambda data: self._subscribe(_text(data)), [token()]),
            "subscription": (lambda data: self._socket("notifier", _text(data)), [ask]),
            "log in": (
                lambda data: self._log_in(_text(data)),
                [json.dumps({"action": "login", "token": self._token}).encode()],
            ),
            "tdengine text": (
                lambda data: self._socket("tdengine", _text(data)),
                [
                    _taos("query", sql=_SELECT),
                    _taos("stmt2_prepare", stmt_id=1, sql=f"INSERT INTO {TABLE} VALUES (?, ?)"),
                    _taos("insert", protocol=1, precision="ms", data="puts,g=1 v=1 1772323200000"),
                    _taos("conn", user=self._attacker.name, password=PASSWORD, db=OWN),
                ],
            ),
            "tdengine bytes": (
                lambda data: self._socket("tdengine", data),
                [_taos_bytes(6, 0, struct.pack("<HI", 1, len(sql)) + sql)],
            ),
            "postgres": (self._pg, _pg_messages()),
        }

    def _of_store(self) -> dict[str, Way]:
        ask = {"sql": _SELECT, "after": {f"in.{OWN}:0": 0}}
        tables = [(2, OWN.encode()), (3, b"%"), (4, b"TABLE")]
        create = "ActionCreatePreparedStatementRequest"
        return {
            "ticket": (self._fetch, [json.dumps(ask).encode()]),
            "flight command": (
                self._describe,
                [
                    write_command("CommandGetTables", tables),
                    write_command("CommandStatementQuery", [(1, _SELECT.encode())]),
                ],
            ),
            "flight action": (
                lambda data: self._act("CreatePreparedStatement", data),
                [write_command(create, [(1, _SELECT.encode())])],
            ),
            "flight session": (
                lambda data: self._act("SetSessionOptions", data),
                [b"\n\x15\n\x07catalog\x12\n\n\x08penstock"],
            ),
        }

    def close(self) -> None:
        self._http.close()
        self._store.close()
        for socket in self._sockets.values():
            socket.close()
        if self._postgres is not None:
            self._postgres.close()

    # ---------------------------------------------------------------- HTTP, Kafka

    def _poster(self, path: str, kind: str) -> Send:
        def post(body: bytes) -> str:
            answer = self._http.post(path, content=body, headers={"Content-Type": kind})
            assert answer.status_code < 500, answer.text
            return answer.text

        return post

    def _publish(self, value: bytes) -> str:
        self._publisher.publish(f"in.{OWN}", value, partition=len(value) % PARTITIONS).result(60)
        return ""

    # ---------------------------------------------------------------- sockets

    def _open(self, name: str) -> ClientConnection:
        if name not in self._sockets:
            gateway = self._mesh.gateway_url.replace("http", "ws", 1)
            urls = {
                "notifier": self._mesh.notifier_url + "/ws",
                "tdengine": gateway + "/ws",
                "link": self._mesh.federation_url.replace("http", "ws", 1) + "/link",
            }
            socket = dial(
                urls.get(name, gateway + name),
                additional_headers=self._key,
                open_timeout=60,
                legacy=True,
            )
            if name == "/v1/ingest":
                socket.recv(60)
            self._sockets[name] = socket
        return self._sockets[name]

    def _socket(self, name: str, data: str | bytes) -> str:
        """Send a frame that has one answer, or ends its connection."""
        try:
            socket = self._open(name)
            socket.send(data)
            return str(socket.recv(60))
        except ConnectionClosed:
            self._sockets.pop(name, None)
            return ""

    def _link(self, data: str | bytes) -> str:
        """Send a frame that may have no answer, and a question behind it that has one, unless the
        connection ends.
        """
        said = ""
        try:
            socket = self._open("link")
            if isinstance(data, bytes):
                socket.send(
                    json.dumps({"ch": 2, "op": "append", "table": "points", "database": OWN})
                )
            socket.send(data)
            socket.send(json.dumps({"ch": 9_999, "op": "no such"}))
            while '"ch": 9999' not in said.replace('"ch":9999', '"ch": 9999'):
                said += str(socket.recv(60))
        except ConnectionClosed:
            self._sockets.pop("link", None)
        return said

    def _subscribe(self, cursor: str) -> str:
        """Subscribe from a token, which is taken or refused, and leave again."""
        said = self._socket(
            "notifier",
            json.dumps({"action": "subscribe", "id": "t", "table": TABLE, "from": cursor}),
        )
        self._sockets.pop("notifier").close()
        return said

    def _log_in(self, first: str) -> str:
        """Log in as a page does, by its first message."""
        with dial(
            self._mesh.notifier_url + "/ws",
            origin=Origin(PAGE),
            subprotocols=[Subprotocol("penstock")],
            open_timeout=60,
        ) as socket:
            try:
                socket.send(first)
                return str(socket.recv(60))
            except ConnectionClosed:
                return ""

    def _pg(self, data: bytes) -> str:
        """Send messages, and one behind them that has an answer unless the connection ends."""
        if self._postgres is None:
            port = self._mesh.state()["ports"]["postgres"]
            self._postgres = PgClient(port, self._attacker.name, PASSWORD, OWN, seconds=_PG_SECONDS)
        try:
            self._postgres.send(data + message(b"S", b""))
            reply = self._postgres.reply()
        except OSError:
            reply = None
        if reply is None or reply.ended:
            self._postgres.close()
            self._postgres = None
        assert reply is None or reply.error.get("C") != "XX000", reply.error
        return "" if reply is None else str(reply.messages)

    # ---------------------------------------------------------------- the store

    def _fetch(self, ticket: bytes) -> str:
        return self._asked(
            lambda: self._store.do_get(flight.Ticket(ticket), self._call).read_all().to_pylist()
        )

    def _describe(self, command: bytes) -> str:
        descriptor = flight.FlightDescriptor.for_command(command)
        return self._asked(lambda: self._store.get_flight_info(descriptor, self._call))

    def _act(self, name: str, body: bytes) -> str:
        action = flight.Action(name, body)
        return self._asked(
            lambda: [r.body.to_pybytes() for r in self._store.do_action(action, self._call)]
        )

    def _asked(self, call: Callable[[], object]) -> str:
        try:
            return str(call())
        except flight.FlightError as error:
            assert "E_INTERNAL" not in str(error), error
            assert "Traceback" not in str(error), error
            return str(error)
        except (pa.ArrowException, OSError) as error:
            assert "Traceback" not in str(error), error
            return str(error)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
