"""One plan for all texts that differ in literals: with any of them it answers as a plan of its own
would.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import Table, TableVersion
from penstock.errors import PenstockError
from penstock.rows.parameters import Parameters
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.query_texts import cut_text
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store import query
from services.store.execution import Execution
from services.store.free_literals import find_free
from services.store.query import Queries, QueryLimits
from services.store.query_run import QueryRun
from tests.nightly import drawn
from tests.unit.services.store.kit import DATABASE, STABLE, TOPIC, MemoryStore

LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")
_TYPES = ("TIMESTAMP", "INT", "BIGINT UNSIGNED", "FLOAT", "DOUBLE", "BOOL")
COLUMNS = (
    *(Column(name, ColumnType(kind)) for name, kind in zip("tiufdb", _TYPES, strict=True)),
    Column("w", ColumnType("VARCHAR", 16)),
)
TABLES = {
    precision: Table(
        number,
        "d",
        f"p_{precision}",
        "plain",
        TOPIC,
        1,
        precision,  # type: ignore[arg-type]
        (TableVersion(100 + number, COLUMNS),),
    )
    for number, precision in enumerate(("ms", "us", "ns"), 20)
}
WORDS = ["", "a", "b", "it", "%_", "$1", "é", "1970-01-01", "7919"]
SECONDS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class Planned(QueryRun):
    """Counts the queries that are answered without a plan."""

    count = 0

    def result(self) -> Any:
        Planned.count += 1
        return super().result()


class Asked:
    """A store whose tables have rows in files and in the tail, and queries that it remembers."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore(directory, DATABASE, STABLE, *TABLES.values())
        for begin in (0, 7):
            for table in TABLES.values():
                self._put(table, begin)
            self.store.put(STABLE, *((n, begin * 1000, begin, "a", 1) for n in ("a", "b", "$1")))
            if not begin:
                self.store.flush()
        self.queries = self.new()

    def _put(self, table: Table, begin: int) -> None:
        second = SECONDS[table.precision]
        rows = (
            (table.name, s * second, s - 4, s, s / 4, s / 8, s % 2 == 0, WORDS[s % len(WORDS)])
            for s in range(begin, begin + 7)
        )
        self.store.put(table, *rows)

    def new(self) -> Queries:
        return Queries(self.store.partitions, self.store.resolver, LIMITS)

    def ask(self, sql: str, timezone: str = "UTC", parameters: Parameters | None = None) -> Any:
        return _answer(self.queries, sql, timezone, parameters)

    def ask_anew(self, sql: str, timezone: str, parameters: Parameters | None = None) -> Any:
        count = Planned.count
        try:
            return _answer(self.new(), sql, timezone, parameters)
        finally:
            Planned.count = count


def _answer(queries: Queries, sql: str, timezone: str, parameters: Parameters | None) -> Any:
    try:
        made = queries.run(sql, "d", timezone, parameters=parameters)
    except PenstockError as error:
        return error.to_dict()
    fields = [(field.name, field.type, field.metadata) for field in made.schema]
    return fields, made.to_pylist()


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "QueryRun", Planned)
        yield Asked(Path(directory))


# ---------------------------------------------------------------- the same answer

TIMES = st.sampled_from(
    [
        "'1970-01-01 00:00:0{}'",
        "'1970-01-01T00:00:0{}.5Z'",
        "'1970-01-01 08:00:0{}'",
        "'1970-1-1 0:0:{}+00:00'",
        "'1969-12-31 23:59:5{}'",
        "'{}'",
        "'no time {}'",
    ]
)
#: what an atom leaves open → literals of that kind
LITERALS = {
    "T": st.builds(str.format, TIMES, st.integers(0, 9)),
    "W": st.sampled_from(["0", "1", "3", "007", "5000", "6000000", "2147483648", "7919"])
    | st.integers(0, 10**15 - 1).map(str),
    "R": st.sampled_from(["0.5", "0.75", "1.0", "0.1", "7919.0625", "123456789.987654321"]),
    "V": st.sampled_from(WORDS).map(lambda word: f"'{word}'")
    | st.text("ab'\\$1%-;", max_size=4).map(lambda word: "'" + word.replace("'", "''") + "'"),
}
ATOMS = [
    "t >= {T}",
    "{T} > t",
    "t BETWEEN {T} AND {T}",
    "t <> {T}",
    "_c0 < {W}",
    "t = {W}",
    "i > {W}",
    "i = {R}",
    "u BETWEEN {W} AND {W}",
    "u < {W}",
    "f >= {R}",
    "f = {W}",
    "d <= {W}",
    "d IN ({R}, {W})",
    "w = {V}",
    "w IN ({V}, {V})",
    "w >= {V}",
    "w > {W}",
    "b = {W}",
    "i > {V}",
    "i > -{W}",
    "NOT (w = {V})",
    "w LIKE {V}",
    "i + {W} > {W}",
    "tbname <> {V}",
    "t > now - {W}d",
]
SHAPES = [
    "SELECT t, i, w FROM {table} WHERE {where}",
    "SELECT t, {{W}} AS c FROM {table} x WHERE {where} ORDER BY t DESC LIMIT 3",
    "SELECT count(*), max(d) FROM {table} WHERE {where} HAVING count(*) > {{W}}",
    "SELECT w, sum(i) FROM {table} WHERE {where} GROUP BY w ORDER BY 1",
    "SELECT count(*) AS n FROM (SELECT i AS d, w FROM {table} WHERE {where}) WHERE d > {{W}}",
    "SELECT i AS t, t AS s FROM {table} WHERE {where} ORDER BY 2",
    "WITH q AS (SELECT i, w FROM {table} WHERE {where})"
    " SELECT a.i FROM q a JOIN q b ON a.i = b.i ORDER BY 1",
    "SELECT x.i FROM {table} x JOIN {table} y ON x.t = y.t WHERE x.i < {{W}} AND y.w <> {{V}}"
    " ORDER BY 1",
    "SELECT _wstart, count(*), max(i) FROM {table} WHERE {where} INTERVAL(2s)",
    "SELECT _wstart, count(*) FROM {table} WHERE {where} INTERVAL(2s, AUTO)",
    "SELECT _wstart, _qstart, count(*) FROM {table} WHERE {where} INTERVAL(2s)",
    "SELECT _wstart, count(*) FROM {table} WHERE {where} INTERVAL(1s) FILL(NULL)",
    "SELECT _wstart, count(*) FROM {table} WHERE {where} SESSION(t, 3s)",
    "SELECT last_row(t), last_row(i) FROM {table} WHERE {where}",
]
WHERES = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3).flatmap(
    lambda atoms: st.sampled_from([" AND ", " OR "]).map(lambda word: word.join(atoms))
)


def _fill(text: str, data: st.DataObject) -> str:
    return re.sub(r"\{([TWRV])\}", lambda m: data.draw(LITERALS[m[1]]), text)


@given(
    st.sampled_from(SHAPES),
    WHERES,
    st.sampled_from(["p_ms", "p_us", "p_ns"]),
    st.sampled_from(["UTC", "Asia/Shanghai", "Europe/Berlin"]),
    st.data(),
)
@settings(max_examples=drawn(25), deadline=None)
def test_other_literals_are_answered_as_by_a_plan_of_their_own(
    asked: Asked, shape: str, where: str, table: str, timezone: str, data: st.DataObject
) -> None:
    open_text = shape.format(table=table, where=where)
    for _ in range(4):
        sql = _fill(open_text, data)
        assert asked.ask(sql, timezone) == asked.ask_anew(sql, timezone), sql


# ---------------------------------------------------------------- which are free


@pytest.mark.parametrize(
    ("sql", "free"),
    [
        ("SELECT t FROM p_ms WHERE t >= '1970-01-01' AND t < 5000", ["'1970-01-01'", "5000"]),
        ("SELECT t FROM p_ms x WHERE (x.i > 5 OR NOT '$1' = w) LIMIT 3", ["5", "'$1'"]),
        ("SELECT t FROM p_ms WHERE w IN ('a', 'b') AND f > 1.5", ["'a'", "'b'", "1.5"]),
        ("SELECT t FROM p_ms WHERE tbname = 'a' AND _c0 > 7", ["'a'", "7"]),
        ("SELECT 1 FROM (SELECT t FROM p_ms WHERE i > 5) WHERE t > 6", ["5"]),
        ("SELECT 1 FROM p_ms a, p_us b WHERE a.i > 5 AND t > 6", ["5"]),
        ("SELECT t FROM p_ms WHERE i > -5 AND i + 6 > 7 AND t > now - 8d", []),
        ("SELECT i AS t FROM p_ms WHERE t > 5", []),
        ("SELECT t FROM p_ms WHERE i > 1.5 AND b = 1 AND w > 5 AND f > 5 AND i > '5'", []),
        ("SELECT t FROM p_ms WHERE w LIKE 'a' AND w MATCH 'b' AND t > TIMESTAMP '1970-01-01'", []),
        ("SELECT t FROM p_ms WHERE w = 'it''s' AND w = \"a\"", []),
        ("SELECT CASE WHEN i > 5 THEN 6 END FROM p_ms GROUP BY 1 HAVING count(*) > 7", []),
        ("SELECT t FROM p_ms INTERVAL(10s) FILL(VALUE, 5) LIMIT 3", []),
    ],
)
def test_only_values_beside_columns_of_where_are_free(sql: str, free: list[str]) -> None:
    statement = parse_one(sql)
    assert isinstance(statement, Query)
    tables = {table.name: table for table in TABLES.values()}
    text = cut_text(sql)
    found = find_free(statement.query, text, lambda table: tables.get(table.name))
    assert [text.literals[one.place] for one in found] == free


def test_a_dashboard_is_planned_twice_and_then_never(asked: Asked) -> None:
    texts = [
        "SELECT t, i FROM p_ms WHERE t >= '1970-01-01 00:00:0{}' AND t < '1970-01-01 00:01:0{}'",
        "SELECT _wstart, max(i) FROM p_ms WHERE t > '1970-01-01T00:00:0{}Z' AND i < {} INTERVAL(3s)",
        "SELECT last_row(t) FROM p_us WHERE w <> 'x{}' AND d < {}.5",
        "SELECT v, g FROM meters WHERE tbname = 'a' AND ts < 100000{}{}",
    ]
    for text in texts:
        Planned.count = 0
        for number in range(6):
            assert asked.ask(text.format(number, number))[1]
        assert Planned.count == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT _wstart, count(*) FROM p_ms WHERE t >= '1970-01-01 00:00:0{}' INTERVAL(2s, AUTO)",
        "SELECT _wstart, _qstart FROM p_ms WHERE t > {} AND t < 9000 INTERVAL(2s)",
        "SELECT _wstart, max(i) FROM p_ms WHERE t > {} AND t < 9000 INTERVAL(1s) FILL(NULL)",
        "SELECT t FROM p_ms LIMIT {}",
        "SELECT {} AS n FROM p_ms",
    ],
)
def test_what_a_value_decides_is_decided_for_each(asked: Asked, sql: str) -> None:
    Planned.count = 0
    for number in range(1, 6):
        text = sql.format(number)
        assert asked.ask(text) == asked.ask_anew(text, "UTC")
    assert Planned.count == 5


def test_a_text_whose_values_decide_is_still_remembered(asked: Asked) -> None:
    sql = "SELECT _wstart, min(i) FROM p_ms WHERE t >= '1970-01-01 00:00:0{}' INTERVAL(3s, AUTO)"
    Planned.count = 0
    for number in (1, 2, 2, 2, 2):
        text = sql.format(number)
        assert asked.ask(text) == asked.ask_anew(text, "UTC")
    assert Planned.count < 5


# ---------------------------------------------------------------- hostile texts

_HOSTILE = [
    "x' OR 1=1 --",
    "$2",
    "' $1 '",
    "\\' OR i > 0 --",
    "a'; DROP TABLE p_ms; --",
    "') UNION SELECT 1, 2 --",
    "'' OR ''=''",
    "`",
    '"',
    "/*",
    "\0",
    "\n",
    "é\u202e",
]


def test_no_literal_becomes_more_than_a_value(asked: Asked) -> None:
    sql = "SELECT i, w FROM p_ms WHERE w = '{}' AND i < 100 AND w <> '$1'"
    for text in ("a", "b", *_HOSTILE):
        for given_text in (text, text.replace("'", "''"), text.replace("'", "\\'")):
            whole = sql.format(given_text)
            assert asked.ask(whole) == asked.ask_anew(whole, "UTC"), whole
    assert asked.ask(sql.format("b"))[1] == [{"i": -2, "w": "b"}, {"i": 7, "w": "b"}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("i > 5 AND w = 'a'", "i > 5 AND w = 5"),
        ("i > 5", "i > 5.0"),
        ("i > 5", "i > '5'"),
        ("w = 'a' OR w = 'b'", "w = 'a'' OR w = ''b'"),
        ("w = 'a' /* 'x' */", "w = 'a' /* 'y' */ "),
        ("w = 'a' AND i < 7 -- '", "w = 'a' AND i < 7 --"),
        ("t > 5000", "t > 5s"),
        ("`t` > 5", "`i` > 5"),
        ("w = '$1' AND i > 1", "w = '$2' AND i > 1"),
        ("i > 123456789012345", "i > 1234567890123456"),
        ("d < 3.5", "d < 3.5e0"),
    ],
)
def test_texts_that_look_alike_have_answers_of_their_own(
    asked: Asked, one: str, other: str
) -> None:
    for where in (one, one, one, other, other, other, one):
        sql = f"SELECT i, w FROM p_ms WHERE {where}"
        assert asked.ask(sql) == asked.ask_anew(sql, "UTC")


def test_free_literals_choose_what_is_read(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT count(*) AS n FROM p_ms WHERE t >= '1970-01-01 00:00:{:02}'"
    for second in (1, 2):
        asked.ask(sql.format(second))
    read: list[int] = []
    narrow = Execution.read

    def note(self: Any, reading: Any, values: Any = ()) -> str:
        low = reading.scope(values).low
        assert low is not None
        read.append(low)
        return narrow(self, reading, values)

    monkeypatch.setattr(Execution, "read", note)
    Planned.count = 0
    assert asked.ask(sql.format(0))[1] == [{"n": 14}]
    assert asked.ask(sql.format(12))[1] == [{"n": 2}]
    assert (read, Planned.count) == ([-1, 11_999], 0)


def test_another_catalog_is_another_plan(asked: Asked) -> None:
    sql = "SELECT count(i) AS n FROM p_us WHERE i > {}"
    for number in (1, 2, 3):
        asked.ask(sql.format(number))
    table = TABLES["us"]
    changed = tuple(
        replace(column, type=ColumnType("DOUBLE")) if column.name == "i" else column
        for column in COLUMNS
    )
    kept = table.versions
    asked.store.catalog.put(replace(table, versions=(*kept, TableVersion(555, changed))))
    Planned.count = 0
    try:
        assert asked.ask(sql.format(4))
        assert Planned.count == 1
    finally:
        asked.store.catalog.put(table)
