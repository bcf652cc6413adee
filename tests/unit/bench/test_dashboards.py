"""Panels of all dashboards are asked again and again, timed, and counted when they fail."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from bench import dashboards
from bench.profile import PROFILES
from penstock.errors import RemoteError
from penstock.sql.parser import parse_one
from penstock.sql.statements import Query


class Mesh:
    """A mesh whose answers are empty; notes what it is asked and sent."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: list[str] = []
        self.rows = 0
        self.problems: list[str] = []
        self.lines: list[Any] = []
        self.fails = ""
        self.mesh = SimpleNamespace(gateway_url="", user="", password="")
        self.client = self

    # ------------------------------------------------ a client, and its writer

    def execute(self, sql: str) -> None: ...

    def query(self, sql: str, database: str) -> None:
        assert database == "walls"
        assert isinstance(parse_one(sql), Query)
        with self.lock:
            self.asked.append(sql)
        if self.fails and self.fails in sql:
            raise RemoteError("not this one")

    def writer(self, table: str) -> Mesh:
        return self

    def write(self, rows: pl.DataFrame) -> None:
        self.rows += rows.height

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def drop(self, database: str) -> None: ...

    # ------------------------------------------------ a recorder

    def problem(self, words: str) -> None:
        self.problems.append(words)

    def add(self, *lines: Any) -> None:
        self.lines += lines


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Mesh:
    made = Mesh()
    monkeypatch.setattr(dashboards, "connect", lambda *_, **__: made)
    monkeypatch.setattr(dashboards, "_DASHBOARDS", 3)
    monkeypatch.setattr(dashboards, "_REFRESH_S", 0.3)
    monkeypatch.setattr(dashboards, "_WARM_S", 0.6)
    monkeypatch.setattr(dashboards, "_PACE_S", 0.01)
    return made


def measure(mesh: Any) -> None:
    profile = SimpleNamespace(**{**vars(PROFILES["quick"]), "latency_seconds": 0.9})
    dashboards.measure(mesh, profile, mesh)  # type: ignore[arg-type]


def test_every_panel_of_every_dashboard_is_asked(mesh: Mesh) -> None:
    measure(mesh)
    (line,) = mesh.lines
    assert (line.name, line.unit, mesh.problems) == ("select_dashboards_p95", "ms", [])
    tables = {sql.partition(" FROM ")[2].split()[0] for sql in mesh.asked}
    assert tables == {f"m{number}" for number in range(30)}
    assert len({sql for sql in mesh.asked if "FROM m0 " in sql}) > 1  # no text comes twice
    assert mesh.rows > 4_000


def test_panels_that_fail_are_told(mesh: Mesh) -> None:
    mesh.fails = "last_row"
    measure(mesh)
    (problem,) = mesh.problems
    assert "panels failed" in problem
    assert mesh.lines


def test_rows_are_of_all_tables_in_turn() -> None:
    rows = dashboards._rows(5, 2_505)
    assert rows.height == 2_500
    assert rows["tbname"][0] == "m5"
    assert rows["tbname"].n_unique() == 1_000
    assert not rows.select(pl.struct("tbname", "ts").is_duplicated().any()).item()
