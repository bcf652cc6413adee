"""Lists of Flight SQL: what drivers ask before and beside a query, by ADBC's own driver and by bare
commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from services.store.flight_features import features, types
from services.store.flight_lists import FOREIGN_KEYS
from services.store.flightsql import write_command
from services.store.name_patterns import NamePattern
from tests.unit.services.store.test_flight import _Asked, served


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bytes]]:
    directory: Path = tmp_path_factory.mktemp("tls")
    with served(directory, _Asked()) as way:
        yield way


@contextmanager
def connected(endpoint: tuple[str, bytes], user: str, password: str) -> Iterator[Any]:
    options = {
        "username": user,
        "password": password,
        "adbc.flight.sql.client_option.tls_root_certs": endpoint[1].decode(),
    }
    with flight_sql.connect(f"grpc+tls://{endpoint[0]}", options, autocommit=True) as connection:
        yield connection


def listed(endpoint: tuple[str, bytes], name: str, *fields: tuple[int, bytes]) -> pa.Table:
    """What a command gives to ann, who may read one table."""
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer ann:anns password")], timeout=60
    )
    with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
        descriptor = flight.FlightDescriptor.for_command(write_command(name, fields))
        info = client.get_flight_info(descriptor, options)
        found = client.do_get(info.endpoints[0].ticket, options).read_all()
        assert found.schema == info.schema == client.get_schema(descriptor, options).schema
        return found


def test_a_driver_walks_from_catalogs_to_columns(endpoint: tuple[str, bytes]) -> None:
    with connected(endpoint, "root", "secret") as connection:
        (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
        assert catalog["catalog_name"] == "penstock"
        databases = {
            s["db_schema_name"]: s["db_schema_tables"] for s in catalog["catalog_db_schemas"]
        }
        assert databases["empty_one"] == []
        tables = {t["table_name"]: t for t in databases["d"]}
        assert {name: t["table_type"] for name, t in tables.items()} == {
            "mine": "TABLE",
            "shown": "VIEW",
            "theirs": "TABLE",
        }
        assert [c["column_name"] for c in tables["theirs"]["table_columns"]] == [
            "ts",
            "n",
            "price",
            "site",
        ]
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
        assert connection.adbc_get_table_schema("mine", db_schema_filter="d").types == [
            pa.timestamp("ms", "UTC"),
            pa.int32(),
            pa.decimal128(12, 2),
        ]
        info = connection.adbc_get_info()
        assert info["vendor_name"] == "Penstock" and info["vendor_version"]


def test_lists_hide_what_a_user_may_not_see(endpoint: tuple[str, bytes]) -> None:
    databases = listed(endpoint, "CommandGetDbSchemas").to_pylist()
    assert databases == [{"catalog_name": "penstock", "db_schema_name": "d"}]
    tables = listed(endpoint, "CommandGetTables", (2, b"%"), (3, b"%")).to_pylist()
    assert [t["table_name"] for t in tables] == ["mine"]
    assert listed(endpoint, "CommandGetPrimaryKeys", (3, b"theirs")).num_rows == 0


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ([(3, b"m%")], ["mine"]),
        ([(3, b"M_NE")], ["mine"]),
        ([(3, b"m\\_ne")], []),
        ([(2, b"other")], []),
        ([(1, b"other")], []),
        ([(4, b"VIEW")], []),
        ([(4, b"VIEW"), (4, b"TABLE")], ["mine"]),
    ],
)
def test_tables_are_listed_by_pattern_and_type(
    endpoint: tuple[str, bytes], fields: list[tuple[int, bytes]], names: list[str]
) -> None:
    assert listed(endpoint, "CommandGetTables", *fields).column("table_name").to_pylist() == names


def test_keys(endpoint: tuple[str, bytes]) -> None:
    found = listed(endpoint, "CommandGetPrimaryKeys", (2, b"d"), (3, b"mine")).to_pylist()
    assert [(k["table_name"], k["column_name"], k["key_sequence"]) for k in found] == [
        ("mine", "ts", 1)
    ]
    for name in ("CommandGetExportedKeys", "CommandGetImportedKeys", "CommandGetCrossReference"):
        found = listed(endpoint, name, (3, b"mine"))
        assert found.num_rows == 0 and found.schema == FOREIGN_KEYS


def test_features_come_by_number(endpoint: tuple[str, bytes]) -> None:
    assert features([0, 3, 99_999, 8]).to_pylist() == [
        {"info_name": 0, "value": "Penstock"},
        {"info_name": 3, "value": False},
        {"info_name": 8, "value": 0},
    ]
    every = features([])
    by_number = {row["info_name"]: row["value"] for row in every.to_pylist()}
    assert "SELECT" in by_number[508] and by_number[504] == "`" and by_number[543] == 64
    assert listed(endpoint, "CommandGetSqlInfo", (1, b"\x00\x0a")).column("value").to_pylist() == [
        "Penstock",
        True,
    ]


def test_types_have_the_numbers_of_odbc(endpoint: tuple[str, bytes]) -> None:
    found = listed(endpoint, "CommandGetXdbcTypeInfo").to_pylist()
    assert [kind["data_type"] for kind in found] == sorted(kind["data_type"] for kind in found)
    assert {"INT", "VARCHAR", "TIMESTAMP", "DECIMAL"} <= {kind["type_name"] for kind in found}
    negative = types((1 << 64) - 5).column("type_name").to_pylist()
    assert sorted(negative) == ["BIGINT", "BIGINT UNSIGNED"]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("%", "", True),
        ("", "", True),
        ("", "a", False),
        ("a%c", "abbc", True),
        ("a%c", "abcd", False),
        ("%a%b%", "xxaxxbxx", True),
        ("a\\%", "a%", True),
        ("a\\%", "ab", False),
        ("a\\", "a\\", True),
        ("_", "é", True),
        ("%" * 500 + "b", "a" * 190, False),
        ("%a" * 90 + "b", "a" * 190, False),
    ],
)
def test_patterns_of_names(pattern: str, name: str, fits: bool) -> None:
    assert NamePattern(pattern).fits(name) is fits
