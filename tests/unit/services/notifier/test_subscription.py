"""Subscriptions: tokens, what is dropped as had, filters, and work shared among listeners."""

from __future__ import annotations

import json
from functools import partial

import polars as pl
import pytest

from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.feeds.cursor import Cursor, TokenError
from penstock.records import ControlRecord, encode
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.notifier import subscription
from services.notifier.subscription import (
    EventSubscription,
    RowForm,
    RowSubscription,
    WorkCount,
)

from .kit import entry, event, piece, record

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))
TAGS = (Column("g", ColumnType("INT")),)
METERS = Table(7, "db", "meters", "stable", "in.db", 1, "ms", (TableVersion(100, COLUMNS, TAGS),))
WIDER = Table(
    7,
    "db",
    "meters",
    "stable",
    "in.db",
    1,
    "ms",
    (
        TableVersion(100, COLUMNS, TAGS),
        TableVersion(101, (*COLUMNS, Column("w", ColumnType("DOUBLE"))), TAGS),
    ),
)


def value(
    tables: list[str],
    *,
    producer: str | None = None,
    offset: int = -1,
    ordinal: int = 0,
    table: Table = METERS,
) -> bytes:
    rows = pl.DataFrame(
        {
            "tbname": tables,
            "ts": list(range(len(tables))),
            "v": [1] * len(tables),
            "g": [2] * len(tables),
        },
        schema_overrides={"v": pl.Int32, "g": pl.Int32},
    )
    if len(table.columns) == 3:
        rows = rows.with_columns(w=pl.lit(0.5))
    made = list(TableCodec(table).encode_partitioned(rows, 1, producer=producer, offset=offset))
    assert len(made) == 1
    return made[0][1]


def rows_of(message: subscription.SubscriberMessage | None) -> list[str]:
    return [] if message is None else [r["tbname"] for r in json.loads(message.payload)]


def meters() -> Table:
    return METERS


def test_token_continues_where_it_was() -> None:
    cursor = Cursor({0: 5, 3: 99}, {"0/s:1:in.db:0": (7, 2)})
    assert Cursor.from_token(cursor.token()) == cursor


@pytest.mark.parametrize(
    "token", ["", "nonsense", "e30=", "eJyrVipTslKqBQAGMQHW", "ö", "a" * 10_000]
)
def test_bad_tokens_are_refused(token: str) -> None:
    with pytest.raises(TokenError) as caught:
        Cursor.from_token(token)
    assert caught.value.code == "E_RESUME_TOKEN"


def test_rows_as_clients_get_them() -> None:
    message = RowSubscription(Cursor({0: 0}), meters).take(piece([value(["d1", "d2"])]))
    assert message is not None and message.count == 2
    assert json.loads(message.payload)[0] == {
        "tbname": "d1",
        "op": "upsert",
        "ts": 0,
        "v": 1,
        "g": 2,
    }


def test_only_what_is_behind_the_cursor() -> None:
    listener = RowSubscription(Cursor({0: 11}), meters)
    assert rows_of(listener.take(piece([value(["a"]), value(["b"]), value(["c"])], first=10))) == [
        "b",
        "c",
    ]
    assert listener.cursor.offsets == {0: 13}
    assert rows_of(listener.take(piece([value(["a"])], first=12))) == []


def test_what_a_restarted_stream_published_twice_comes_once() -> None:
    listener = RowSubscription(Cursor({0: 0}), meters)
    first = value(["a"], producer="s:1", offset=5)
    second = value(["b"], producer="s:1", offset=6)
    assert rows_of(listener.take(piece([first, second, first]))) == ["a", "b"]
    again = RowSubscription(Cursor.from_token(listener.cursor.token()), meters)
    assert rows_of(
        again.take(piece([second, value(["c"], producer="s:1", offset=7), value(["d"])], first=3))
    ) == ["c", "d"]


def test_filter_by_table_ignores_case() -> None:
    listener = RowSubscription(Cursor({0: 0}), meters, ["D2"])
    assert rows_of(listener.take(piece([value(["d1", "d2", "d3"])]))) == ["d2"]


def test_other_tables_and_controls_pass_by() -> None:
    listener = RowSubscription(Cursor({0: 0}), meters)
    assert listener.take(piece([encode(ControlRecord("tick")), None, b"junk", b""])) is None
    assert listener.cursor.offsets == {0: 4}


def test_columns_added_meanwhile_show_up() -> None:
    now = [METERS]
    listener = RowSubscription(Cursor({0: 0}), lambda: now[0])
    listener.take(piece([value(["a"])]))
    now[0] = WIDER
    message = listener.take(piece([value(["a"]), value(["b"], table=WIDER)], first=1))
    assert message is not None
    assert [r["w"] for r in json.loads(message.payload)] == [None, 0.5]


def test_a_dropped_table_gives_nothing() -> None:
    assert RowSubscription(Cursor({0: 0}), lambda: None).take(piece([value(["a"])])) is None


def test_many_listeners_decode_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    whole = TableCodec.decode
    monkeypatch.setattr(
        TableCodec, "decode", lambda self, values: decoded.append(1) or whole(self, values)
    )
    part = piece([value(["d1", "d2"], producer="s:1", offset=1)])
    listeners = [
        RowSubscription(Cursor({0: 0}), meters, ["d1"] if i % 2 else None) for i in range(20)
    ]
    assert [rows_of(s.take(part)) for s in listeners] == [["d1", "d2"], ["d1"]] * 10
    assert len(decoded) == 1
    part.forget()
    assert rows_of(RowSubscription(Cursor({0: 0}), meters).take(part)) == ["d1", "d2"]


def test_events_of_one_stream() -> None:
    values = [
        encode(record([event(table="d1"), event(table="D2")])),
        encode(record([event()], stream=99)),
        b"junk",
        encode(record([event()], offset=4)),
        encode(ControlRecord("barrier")),
        encode(record([event(table="d3")], offset=5)),
    ]
    listener = EventSubscription(Cursor({0: 0}), entry())
    message = listener.take(piece(values))
    assert message is not None and message.kind == "events"
    assert [e["tableName"] for e in json.loads(message.payload)] == ["d1", "D2", "d3"], (
        "the repeat of offset 4 is dropped"
    )
    only = EventSubscription(Cursor({0: 0}), entry(), ["d2"]).take(piece(values))
    assert only is not None and only.count == 1
    assert EventSubscription(Cursor({0: 6}), entry()).take(piece(values)) is None


def test_a_limit_leaves_the_newest_rows_of_a_message() -> None:
    form = RowForm(limit=2)
    message = RowSubscription(Cursor({0: 0}), meters, None, form).take(
        piece([value(["d1", "d2"]), value(["d3"])])
    )
    assert rows_of(message) == ["d2", "d3"]
    assert message is not None and (message.count, message.skipped) == (2, 1)
    narrow = RowSubscription(Cursor({0: 0}), meters, ["d1"], form)
    message = narrow.take(piece([value(["d1", "d2"])]))
    assert message is not None and (rows_of(message), message.skipped) == (["d1"], 0)


def test_exact_numbers_are_text_and_leave_other_subscribers_theirs() -> None:
    part = piece([value(["d1"])])
    exact = RowSubscription(Cursor({0: 0}), meters, None, RowForm(exact=True)).take(part)
    plain = RowSubscription(Cursor({0: 0}), meters).take(part)
    assert exact is not None and plain is not None
    assert json.loads(exact.payload) == [{**json.loads(plain.payload)[0], "ts": "0"}]
    assert json.loads(plain.payload)[0]["ts"] == 0


def test_a_hundred_with_one_limit_have_rows_written_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = []
    write = subscription._text
    monkeypatch.setattr(
        subscription, "_text", lambda rows, form: written.append(form) or write(rows, form)
    )
    part = piece([value(["d1", "d2"])])
    form = RowForm(limit=1)
    told = [RowSubscription(Cursor({0: 0}), meters, None, form).take(part) for _ in range(100)]
    assert len(written) == 1 and len({m.payload for m in told if m is not None}) == 1


def test_work_for_a_hundred_is_counted_once() -> None:
    done = {"decoded": 0, "written": 0}

    def add(name: str, rows: int) -> None:
        done[name] += rows

    work = WorkCount(partial(add, "decoded"), partial(add, "written"))
    part = piece([value(["d1", "d2", "d3"])])
    form = RowForm(limit=2, exact=True)
    followers = [RowSubscription(Cursor({0: 0}), meters, None, form, work) for _ in range(100)]
    assert all(one.take(part) is not None for one in followers)
    assert done == {"decoded": 3, "written": 2}
    # who wants some child tables only has rows of its own written, from those decoded before
    assert RowSubscription(Cursor({0: 0}), meters, ["d1"], form, work).take(part) is not None
    assert done == {"decoded": 3, "written": 3}
