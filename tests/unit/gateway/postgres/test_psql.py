"""The real psql against a real server: its backslash commands and a query."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.gateway.postgres.kit import PASSWORD, serving

PSQL = shutil.which("psql")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PSQL is None, reason="psql is not installed"),
]


async def psql(port: int, *commands: str, user: str = "root", password: str = PASSWORD) -> str:
    assert PSQL is not None
    given = [part for command in commands for part in ("-c", command)]
    process = await asyncio.create_subprocess_exec(
        PSQL,
        f"host=127.0.0.1 port={port} user={user} dbname=d",
        "-AtX",
        *given,
        env={**os.environ, "PGPASSWORD": password, "LC_ALL": "C"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return told.decode()


async def test_backslash_commands_and_a_query(tmp_path: Path) -> None:
    async with serving(tmp_path) as wire:
        wire.store.answer = pa.table({"n": [1, None], "who": ["a", "b"]})
        told = await psql(
            wire.port, r"\dt", r"\d meters", r"\dn", r"\l", "SELECT n, who FROM plain"
        )
        lines = told.splitlines()
        wanted = {
            "d|meters|table|root",
            "d|plain|table|root",
            "ts|timestamp with time zone||not null|",
            "price|numeric(10,2)|||",
            "site|text|||",
            "d|root",
            "1|a",
            "|b",
        }
        assert wanted <= set(lines)
        assert any(line.startswith("penstock|root|UTF8") for line in lines)
        assert "ERROR" not in told


@pytest.mark.parametrize(
    "command", [r"\d", r"\d+ meters", r"\dv", r"\di", r"\df", r"\du", r"\dT", r"\dp"]
)
async def test_other_backslash_commands_end_without_errors(tmp_path: Path, command: str) -> None:
    async with serving(tmp_path) as wire:
        assert "ERROR" not in await psql(wire.port, command)


async def test_errors_point_into_the_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as wire:
        told = await psql(
            wire.port, "SELECT 1 FORM plain x", "INSERT INTO plain VALUES (1, 1, 'a')"
        )
        assert "LINE 1: SELECT 1 FORM plain x" in told
        assert "the PostgreSQL wire is for reading" in told and "HINT:" in told


async def test_few_rights_show_little(tmp_path: Path) -> None:
    async with serving(tmp_path) as wire:
        wire.add_user("ann", "READ", on="d")
        told = await psql(wire.port, r"\dn", r"\l", user="ann", password=PASSWORD * 2)
        assert "d|root" in told and "hidden" not in told
