from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.confirmed import ConfirmedRows
from gateway.forward import Forwarder, Run, column_from_json, column_to_json, internal_token
from gateway.statements.context import RequestContext
from penstock.errors import AuthError, CatalogError
from penstock.sql.plan import Column
from penstock.types import ColumnType


@pytest.mark.parametrize(
    "kind", [ColumnType("INT UNSIGNED"), ColumnType("VARCHAR", 64), ColumnType("DECIMAL", 0, 10, 2)]
)
def test_columns_travel(kind: ColumnType) -> None:
    column = Column("ä b", kind)
    assert column_from_json(column_to_json(column)) == column


def test_the_token_is_the_passwords() -> None:
    assert internal_token("a") == internal_token("a") != internal_token("b")
    assert "a" * 8 not in internal_token("a" * 8)


class _Reader:
    """A gateway's catalog, which shows whatever is waited for."""

    def __init__(self, revision: int = 0) -> None:
        self.catalog = SimpleNamespace(revision=revision)
        self.waited: list[int] = []

    def wait_for(self, revision: int) -> None:
        self.waited.append(revision)


def _forwarder(reader: Any, confirmed: ConfirmedRows, token: str = "secret") -> Forwarder:
    return Forwarder(reader, token, confirmed.note_own)


@asynccontextmanager
async def _leader(run: Run) -> AsyncIterator[str]:
    """Serve the route of a gateway that leads the catalog, at revision 7; yield its address."""
    app = web.Application()
    app.add_routes(_forwarder(_Reader(7), ConfirmedRows()).routes(run))
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


CONTEXT = RequestContext("d", "Asia/Tokyo", user="ann")
SET_TAG = "ALTER TABLE c SET TAG g = 1"


async def test_reads_wait_for_what_the_leader_wrote_in_band() -> None:
    bodies: list[dict[str, Any]] = []

    async def run(body: dict[str, Any], own: dict[tuple[str, int], int]) -> None:
        bodies.append(body)
        own["in.d", 3] = 12

    reader = _Reader()
    confirmed = ConfirmedRows()
    asked = _forwarder(reader, confirmed)
    async with _leader(run) as address:
        await asked.statement(address, SET_TAG, CONTEXT)
        await asked.close()
    assert bodies == [{"sql": SET_TAG, "database": "d", "timezone": "Asia/Tokyo", "user": "ann"}]
    assert confirmed.offsets == {("in.d", 3): 12} and reader.waited == [7]


async def test_what_was_done_before_a_failure_is_waited_for_as_well() -> None:
    async def run(_: dict[str, Any], own: dict[tuple[str, int], int]) -> None:
        own["in.d", 0] = 5
        raise CatalogError("there is no table d.b", code="E_NO_TABLE")

    reader = _Reader()
    confirmed = ConfirmedRows()
    asked = _forwarder(reader, confirmed)
    async with _leader(run) as address:
        with pytest.raises(CatalogError, match="no table d.b"):
            await asked.statement(address, "DROP TABLE a, b", CONTEXT)
        await asked.close()
    assert confirmed.offsets == {("in.d", 0): 5} and reader.waited == [7]


async def test_the_route_is_for_gateways_and_tells_others_nothing() -> None:
    async def run(_: dict[str, Any], __: dict[tuple[str, int], int]) -> None:
        raise AssertionError("it was run")

    reader = _Reader()
    asked = _forwarder(reader, ConfirmedRows(), token="guessed")
    async with _leader(run) as address:
        with pytest.raises(AuthError):
            await asked.statement(address, SET_TAG, CONTEXT)
        await asked.close()
    assert not reader.waited
