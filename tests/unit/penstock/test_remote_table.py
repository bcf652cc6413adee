"""`RemoteTable`s by builder: what is asked of which deployment, and definitions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock import remote_table, uri
from penstock.catalog.model import Table, TableVersion
from penstock.errors import PenstockError, RemoteError, SchemaError, SqlSyntaxError
from penstock.link.description import Description
from penstock.link.remote_request import MirrorOptions, RemoteTarget
from penstock.link.uris import DEFAULT_RETRY_WINDOW_MS
from penstock.remote_table import definition_of, for_remote_cluster, in_local_cluster
from penstock.sql.plan import Column
from penstock.types import ColumnType

INT = ColumnType("INT")
TIMESTAMP = ColumnType("TIMESTAMP")
COLUMNS = (Column("ts", TIMESTAMP), Column("v", INT))


class Opened:
    """What was opened with which arguments."""

    def __init__(self) -> None:
        self.given: tuple[Any, ...] = ()

    def __call__(self, *given: Any) -> Opened:
        self.given = given
        return self

    def start(self) -> Opened:
        return self


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    made = Opened()
    monkeypatch.setattr(uri, "_sessions", {})
    monkeypatch.setattr(uri, "_default", [])
    monkeypatch.setattr(remote_table, "RemoteTable", made)
    monkeypatch.setattr(remote_table, "snapshot", made)
    uri.session("ws://home", password="x")
    uri.session("ws://far", password="x")
    return made


def replicas(url: str) -> tuple[Any, ...]:
    return uri.session_for(url).replicas


def test_a_table_of_the_default_deployment(opened: Opened) -> None:
    assert in_local_cluster("plant", "t").subscribe() is opened  # type: ignore[comparison-overlap]
    assert opened.given == (
        RemoteTarget(replicas("ws://home"), "t", "plant"),
        MirrorOptions(),
        None,
    )


def test_a_table_of_another_deployment_by_serial(opened: Opened) -> None:
    for_remote_cluster("ws://far").query_name(7).table_name("t").subscribe()
    assert opened.given[0] == RemoteTarget(replicas("ws://far"), "t", None, 7)


def test_options_are_kept_until_it_is_opened(opened: Opened) -> None:
    builder = in_local_cluster("q", "t").blink("require").table_definition({"v": "INT"})
    builder.subscribe(
        ["v"],
        clear_on_disconnect=False,
        retry_window_ms=5,
        max_retries=3,
        filters="v > 1",
        wait_timeout_ms=9,
    )
    _, options, definition = opened.given
    assert options == MirrorOptions(
        ("v",), "retain", 5, 3, blink=True, blink_required=True, wait_timeout_ms=9, where="v > 1"
    )
    assert definition == definition_of({"v": "INT"})


def test_a_builder_is_never_changed(opened: Opened) -> None:
    base = in_local_cluster("q", "t")
    base.blink().table_name("other")
    base.subscribe()
    target, options, _ = opened.given
    assert (target.table, options.blink) == ("t", False)
    assert options.retry_window_ms == DEFAULT_RETRY_WINDOW_MS


def test_a_snapshot_has_columns_a_filter_and_a_timeout(opened: Opened) -> None:
    in_local_cluster("q", "t").snapshot("v", filters="v > 1", wait_timeout_ms=9)
    assert opened.given == (
        RemoteTarget(replicas("ws://home"), "t", "q"),
        MirrorOptions(("v",), where="v > 1", wait_timeout_ms=9),
    )


def test_a_column_is_included_once(opened: Opened) -> None:
    with pytest.raises(SchemaError) as caught:
        in_local_cluster("q", "t").subscribe(["v", "V"])
    assert caught.value.code == "E_DUPLICATE_COLUMN"


@pytest.mark.parametrize(
    ("builder", "what"),
    [
        (for_remote_cluster("ws://far").table_name("t"), "which query?"),
        (for_remote_cluster("ws://far").query_name("q"), "which table?"),
        (for_remote_cluster("ws://far").query_name("q").table_name(""), "which table?"),
    ],
)
def test_query_and_table_must_be_named(opened: Opened, builder: Any, what: str) -> None:
    for ask in (builder.subscribe, builder.snapshot):
        with pytest.raises(RemoteError) as caught:
            ask()
        assert (caught.value.code, caught.value.message) == ("E_URI", what)


def test_a_deployment_needs_a_session(opened: Opened) -> None:
    with pytest.raises(PenstockError) as caught:
        for_remote_cluster("ws://stranger").query_name("q").table_name("t").subscribe()
    assert caught.value.code == "E_NO_SESSION"


def test_a_description_and_a_table_are_their_own_definition() -> None:
    given = Description(7, "d", "t", COLUMNS)
    assert definition_of(given) is given
    table = Table(7, "d", "t", "plain", "in.d", 1, "ms", (TableVersion(100, COLUMNS),))
    assert definition_of(table) == Description.of(table)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("int unsigned", "INT UNSIGNED"),
        ("VARCHAR", "VARCHAR(65517)"),
        ("VARCHAR(9)", "VARCHAR(9)"),
        (pa.bool_(), "BOOL"),
        (pa.int8(), "TINYINT"),
        (pa.uint64(), "BIGINT UNSIGNED"),
        (pa.float32(), "FLOAT"),
        (pa.timestamp("ms", "UTC"), "TIMESTAMP"),
        (pa.string(), "VARCHAR(65517)"),
        (pa.large_string(), "VARCHAR(65517)"),
        (pa.binary(), "VARBINARY(65517)"),
        (pa.decimal128(9, 3), "DECIMAL(9,3)"),
    ],
)
def test_a_type_is_ours_or_one_of_arrow(kind: Any, wanted: str) -> None:
    found = definition_of({"c": kind})
    assert [str(c.type) for c in found.columns] == [wanted]


def test_a_schema_of_arrow_tells_the_precision() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int32())])
    assert definition_of(schema) == Description(0, "", "", COLUMNS, (), "us")
    assert definition_of({"ts": "TIMESTAMP"}).precision == "ms"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (pa.list_(pa.int64()), SchemaError),
        (pa.date32(), SchemaError),
        ("NUMBER", SqlSyntaxError),
        ("INT x", SqlSyntaxError),
    ],
)
def test_what_is_no_type_is_refused(kind: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        definition_of({"c": kind})
