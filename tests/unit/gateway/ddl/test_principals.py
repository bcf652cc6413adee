"""Passwords of users on their way to Kafka, and DROP of what goes with others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.ddl.child_tables import ChildTables
from gateway.ddl.drops import Drops
from gateway.ddl.principals import Principals
from penstock.auth.passwords import matches
from penstock.catalog import stream_tables
from penstock.catalog.model import Replicated, Table
from penstock.errors import CatalogError, PenstockError
from penstock.sql import parse
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.kit import ROOT, MemoryGateway


class Passwords:
    """What Kafka is told of users."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def set(self, user: str, password: str) -> None:
        self.known[user] = password

    def forget(self, user: str) -> None:
        del self.known[user]


class Groups:
    """Stream tables, of which some are subscribed to."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.gone: list[str] = []

    def check_unused(self, tables: list[Table]) -> None:
        for table in tables:
            if table.name in self.used:
                raise CatalogError("there are subscriptions", code="E_IN_USE")

    def wait_gone(self, tables: list[Table]) -> None:
        self.gone += [t.name for t in tables]


class Here:
    def __init__(self, gateway: MemoryGateway) -> None:
        self.gateway = gateway
        self.passwords = Passwords()
        self.groups: Any = Groups()
        known = gateway.parts.definitions
        tables = ChildTables(gateway.definer, gateway.children)
        self.principals = Principals(gateway.definer, tables, gateway.clock, ROOT, self.passwords)
        self.drops = Drops(
            gateway.definer,
            gateway.parts.removal,
            gateway.parts.streams,
            known._externals,
            known._views,
            known._mirrors,
            self.principals,
            self.groups,
        )

    def apply(self, text: str) -> None:
        for statement in parse(text):
            if isinstance(statement, st.Drop):
                after = self.drops.apply(statement, "d")
                if after is not None:
                    after()
            else:
                assert isinstance(statement, st.CreateUser | st.AlterUser | st.Grant)
                self.principals.apply(statement, "d")

    def refusal(self, text: str) -> PenstockError:
        with pytest.raises(PenstockError) as wrong:
            self.apply(text)
        return wrong.value


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    gateway = MemoryGateway(tmp_path)
    gateway.define("CREATE DATABASE d")
    yield Here(gateway)
    gateway.close()


def test_kafka_hears_of_passwords_and_the_catalog_only_of_their_hashes(here: Here) -> None:
    here.apply("CREATE USER Bob PASS 'a long password'")
    assert here.passwords.known == {"Bob": "a long password"}
    bob = here.gateway.catalog.user("bob")
    assert bob is not None and matches("a long password", bob.password)
    here.apply("CREATE USER IF NOT EXISTS bob PASS 'something else'")
    assert here.passwords.known == {"Bob": "a long password"}, "it is not theirs"
    here.apply("ALTER USER bob PASS 'another password'")
    assert here.passwords.known == {"Bob": "another password"}, "under the name it has there"
    here.apply("ALTER USER bob ENABLE 0")
    here.apply("DROP USER bob")
    assert here.passwords.known == {}


def test_the_meshs_own_user_is_nobodys_to_change(here: Here) -> None:
    for sql in (f"CREATE USER {ROOT} PASS 'a long password'", f"ALTER USER {ROOT} ENABLE 0"):
        assert here.refusal(sql).code
    assert here.passwords.known == {}


def test_a_grant_needs_a_database(here: Here) -> None:
    here.apply("CREATE USER bob PASS 'a long password'")
    (statement,) = parse("GRANT READ ON TABLE met TO bob")
    assert isinstance(statement, st.Grant)
    with pytest.raises(CatalogError) as where:
        here.principals.apply(statement, None)
    assert (where.value.code, where.value.hint) == ("E_WHICH_DATABASE", "write database.met")


def add_stream_table(here: Here, name: str) -> Table:
    columns = [Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT"))]
    catalog = here.gateway.catalog
    made = stream_tables.create(
        catalog, here.gateway.writer.new_id, "d", name, columns, Replicated(11, 5, 5)
    )
    here.gateway.definer.commit(made)
    table = catalog.table("d", name)
    assert table is not None
    return table


def test_a_stream_table_goes_when_nobody_subscribes_and_is_waited_for(here: Here) -> None:
    table = add_stream_table(here, "ha")
    here.gateway.log.append(table.topic, b"x")
    here.groups.used.add("ha")
    assert here.refusal("DROP TABLE ha").code == "E_IN_USE"
    assert here.refusal("DROP DATABASE d").code == "E_IN_USE"
    assert here.gateway.catalog.table("d", "ha") is not None
    here.groups.used.clear()
    here.apply("DROP TABLE ha")
    assert here.groups.gone == ["ha"]
    assert here.gateway.log.starts == {(table.topic, 0): 1}, "its log is emptied"
    add_stream_table(here, "hb")
    here.apply("DROP DATABASE d")
    assert here.groups.gone == ["ha", "hb"]


def test_several_at_once_go_in_their_order(here: Here) -> None:
    here.gateway.define(
        "CREATE TABLE a (ts TIMESTAMP, v INT); CREATE TABLE b (ts TIMESTAMP, v INT)"
    )
    error = here.refusal("DROP TABLE a, none, b")
    assert error.code == "E_NO_TABLE"
    assert [t.name for t in here.gateway.catalog.tables("d")] == ["b"], "up to the one that fails"
    here.apply("DROP TABLE IF EXISTS a, b")
    assert here.gateway.catalog.tables("d") == []
