"""penstock follow: rows and window events as they come, in each form."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli.following.printer import PiecePrinter
from penstock.cli.following.rows import rows_table, selection_table
from penstock.cli.following.source import Followed, select_rows
from penstock.cli.table_name import TableName
from penstock.errors import CatalogError, PenstockError, RemoteError
from penstock.link.description import Description
from penstock.link.selection import compile_selection
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.penstock.cli.data_kit import Deployment, deployment

METERS = pa.schema(
    [
        ("ts", pa.timestamp("ms", "UTC")),
        ("volts", pa.float64()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("site", pa.string()),
    ]
)
START = 1_772_355_600_000


def row(n: int, **more: object) -> dict[str, object]:
    known = {"ts": START + n * 1000, "volts": n / 2, "raw": "AP8=", "price": "1.50", "site": "x"}
    return {"tbname": f"m{n}", "op": "upsert", **known, **more}


def _answer(sql: str) -> pa.Table:
    if sql == "SHOW STREAMS":
        return pa.table(
            {
                "stream_name": ["Averages", "told"],
                "target_db": ["power", None],
                "target_table": ["averages_r", None],
            }
        )
    if "ins_databases" in sql:
        return pa.table({"name": ["other", "Power"], "precision": ["ns", "us"]})
    if sql in (
        "SELECT * FROM `power`.`meters` LIMIT 0",
        "SELECT * FROM `power`.`averages_r` LIMIT 0",
    ):
        return METERS.empty_table()
    raise CatalogError("there is no table", code="E_TABLE_NOT_EXIST")


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(_answer, tmp_path) as made:
        yield made


def test_a_pipe_gets_a_line_of_json_for_each_row(mesh: Deployment) -> None:
    mesh.messages = [
        {"type": "rows", "rows": [row(1), row(2)], "token": "t1"},
        {"type": "rows", "rows": [row(3, op="delete", volts=None)], "token": "t2"},
    ]
    done = mesh.run("follow", "power.meters", "-n", "3", "--from", "earliest", "--child", "m1")
    assert done.exit_code == 0, done.exception
    first, _, third = (json.loads(line) for line in done.stdout.splitlines())
    assert first == {
        "tbname": "m1",
        "op": "upsert",
        "ts": "2026-03-01 09:00:01.000Z",
        "volts": 0.5,
        "raw": "00ff",
        "price": "1.50",
        "site": "x",
    }
    assert (third["op"], third["volts"]) == ("delete", None)
    [asked] = mesh.subscribed
    assert (asked["table"], asked["from"], asked["tables"]) == ("power.meters", "earliest", ["m1"])


def test_a_stream_is_followed_by_its_result(mesh: Deployment) -> None:
    mesh.messages = [{"type": "rows", "rows": [row(1)], "token": "t1"}]
    done = mesh.run("follow", "averages", "--database", "power", "-n", "1", "-o", "csv")
    assert done.exit_code == 0, done.exception
    assert done.stdout.splitlines() == [
        "tbname,op,ts,volts,raw,price,site",
        "m1,upsert,2026-03-01 09:00:01.000Z,0.5,00ff,1.50,x",
    ]
    assert mesh.subscribed[0]["stream"] == "power.averages"
    assert "following stream power.averages" in done.stderr


def test_a_stream_without_a_result_has_events_to_follow(mesh: Deployment) -> None:
    error = mesh.run("follow", "power.told").exception
    assert isinstance(error, CatalogError) and error.code == "E_TABLE_NOT_EXIST"
    assert "has no result table" in error.message and "--events" in error.hint
    mesh.messages = [
        {"type": "events", "events": [{"eventType": "WINDOW_OPEN", "windowStart": 5}], "token": "t"}
    ]
    done = mesh.run("follow", "power.told", "--events", "-n", "1", "-o", "json")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)[0]["windowStart"] == 5


def test_no_more_rows_are_shown_than_were_asked_for(mesh: Deployment) -> None:
    mesh.messages = [{"type": "rows", "rows": [row(n) for n in range(5)], "token": "t1"}]
    done = mesh.run("follow", "power.meters", "-n", "2", "-o", "json")
    assert [r["tbname"] for r in json.loads(done.stdout)] == ["m0", "m1"]


def test_a_column_that_was_added_is_told_once(mesh: Deployment) -> None:
    mesh.messages = [
        {"type": "rows", "rows": [row(n, extra=1)], "token": f"t{n}"} for n in range(2)
    ]
    done = mesh.run("follow", "power.meters", "-n", "2")
    assert done.stderr.count("columns were added: extra; start again") == 1
    assert len(done.stdout.splitlines()) == 2


EVENT = {
    "tableName": "t_1",
    "eventType": "WINDOW_CLOSE",
    "windowStart": START * 1000,
    "windowEnd": START * 1000 + 60_000_000,
    "tags": {"tbname": "m1"},
    "result": {"n": 3},
}


def test_window_events_are_given_as_they_are(mesh: Deployment) -> None:
    mesh.messages = [{"type": "events", "events": [EVENT], "token": "t1"}]
    done = mesh.run("follow", "power.averages", "--events", "-n", "1")
    assert json.loads(done.stdout) == EVENT
    assert mesh.subscribed[0]["what"] == "events"


def test_window_events_as_a_table_have_times(mesh: Deployment) -> None:
    mesh.messages = [{"type": "events", "events": [EVENT], "token": "t1"}]
    done = mesh.run("follow", "power.averages", "--events", "-n", "1", "-o", "table")
    head, _, line = done.stdout.splitlines()
    assert head.split() == ["eventType", "tableName", "windowStart", "windowEnd", "tags", "result"]
    assert "2026-03-01 09:00:00.000000Z  2026-03-01 09:01:00.000000Z" in line
    assert '{"n": 3}' in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("power.nothing",), "there is no table"),
        (("nothing",), "which database is nothing in?"),
        (("power.",), "power. names no table"),
        (("power.nothing", "--events"), "there is no stream power.nothing"),
        (("power.meters", "--where", "volts > 1", "--child", "m1"), "--where goes with"),
        (("power.averages", "--where", "volts > 1"), "--where is for tables"),
    ],
)
def test_what_cannot_be_followed_is_said(
    mesh: Deployment, words: tuple[str, ...], said: str
) -> None:
    done = mesh.run("follow", *words)
    assert isinstance(done.exception, PenstockError)
    assert said in str(done.exception)


def test_interrupting_it_ends_what_was_begun(mesh: Deployment) -> None:
    mesh.messages = [{"type": "rows", "rows": [row(1)], "token": "t1"}]
    command = [sys.executable, "-m", "penstock.cli", "follow", "power.meters", "-o", "json"]
    login = ["--url", mesh.url, "--password-file", str(mesh.password)]
    with subprocess.Popen(
        [*command, *login],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in the background may ignore it, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as program:
        assert program.stdout is not None
        begun = program.stdout.readline()  # the row comes in the same piece
        program.send_signal(signal.SIGINT)
        rest = program.stdout.read()
        assert program.stderr is not None
        complaints = program.stderr.read()
        assert program.wait(30) == 0, complaints
    assert "Traceback" not in complaints
    assert [r["tbname"] for r in json.loads(begun + rest)] == ["m1"]


# -------------------------------------------------------------------- the parts


def test_a_value_of_another_type_is_an_error() -> None:
    with pytest.raises(RemoteError, match='column "volts"'):
        rows_table([row(1, volts="much")], METERS)


def test_rows_of_a_select_look_as_rows_of_a_table_do() -> None:
    rows = pa.table(
        {
            "_op": pa.array([0, 1], pa.int8()),
            "tbname": ["a", "b"],
            "_time": [1, 2],
            "volts": [1.5, None],
        }
    )
    made = selection_table(rows)
    assert made.column_names == ["tbname", "op", "volts"]
    assert made.column("op").to_pylist() == ["upsert", "delete"]


def test_a_condition_is_one_that_a_subscription_can_have() -> None:
    asked: list[tuple[str, str, str]] = []
    came = pa.table(
        {"_op": pa.array([0], pa.int8()), "tbname": ["a"], "_time": [1], "code": [404], "site": [1]}
    )

    def stream(text: str, *, start: str, database: str, patience: float | None) -> Any:
        assert patience == 7
        asked.append((text, start, database))
        return nullcontext([SimpleNamespace(rows=came)])

    client: Any = SimpleNamespace(stream=stream)
    columns = pa.schema([("code", pa.int32()), ("site", pa.int32())])
    followed = Followed(TableName("d", "t"), False, columns)
    [piece] = select_rows(client, followed, "code >= 400", "earliest", patience=7)
    assert piece.to_pylist() == [{"tbname": "a", "op": "upsert", "code": 404, "site": 1}]
    [(text, *more)] = asked
    assert more == ["earliest", "d"]
    source = Description(
        7,
        "d",
        "t",
        (Column("ts", ColumnType("TIMESTAMP")), Column("code", ColumnType("INT"))),
        (Column("site", ColumnType("INT")),),
    )
    assert [c.name for c in compile_selection(text, source).outputs] == ["code", "site"]


def test_a_table_grows_wider_and_has_one_head() -> None:
    out = io.StringIO()
    printer = PiecePrinter("table", out)
    printer.write(pa.table({"name": ["a"], "n": [1]}))
    printer.write(pa.table({"name": ["much longer"], "n": [200]}))
    printer.write(pa.table({"name": ["b"], "n": [3]}))
    printer.close()
    assert out.getvalue().splitlines() == [
        "name  n",
        "----  -",
        "a     1",
        "much longer  200",
        "b              3",
    ]


def test_json_of_nothing_is_an_empty_list() -> None:
    out = io.StringIO()
    PiecePrinter("json", out).close()
    assert json.loads(out.getvalue()) == []


def test_csv_has_its_head_once() -> None:
    out = io.StringIO()
    printer = PiecePrinter("csv", out)
    for n in range(2):
        printer.write(pa.table({"a\nb": [n]}))
    assert out.getvalue() == '"a\nb"\n0\n1\n'
