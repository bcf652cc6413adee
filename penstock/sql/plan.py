"""The plan of one stream: what `CREATE STREAM` means once names are bound and types are known.

A plan is plain frozen data. The planner (`penstock.sql.planner`) is its only maker, the catalog
stores it (`to_json`), and `penstock.windows` is its only interpreter. Expressions are kept as
canonical SQL text of the penstock dialect over *plan names* and compiled to polars once per plan by
`penstock.sql.compile`:

* before aggregation: source columns and tags by their own names, `tbname`, and `_now` (append time
  of the record);
* after aggregation: `_a0, _a1, …` (aggregates), `_k0, _k1, …` (partition keys), `_wstart`, `_wend`,
  `_wduration`.

All times are 64-bit integers counted in ticks of the source database's precision.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.types import ColumnType
from penstock.udf.function import UserFunction

Precision = Literal["ms", "us", "ns"]
WindowKind = Literal["interval", "session", "state", "event", "count"]
TriggerKind = Literal[
    "at_once", "window_close", "max_delay", "force_window_close", "continuous_window_close"
]
FillMode = Literal["none", "null", "value", "prev", "next", "linear"]

#: what OPEN WINDOWS has besides the columns of results: what a window spans as far as it is known,
#: and T of its group
OPEN_SPAN = ("_window_start", "_window_end", "_window_t")

TICKS_PER_SECOND: dict[str, int] = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Duration:
    """A length of time as written: `10s`, `1n`. Units b u a s m h are fixed, d w follow local
    midnight, n y the calendar.
    """

    value: int
    unit: Literal["b", "u", "a", "s", "m", "h", "d", "w", "n", "y"]

    @property
    def natural(self) -> bool:
        """True when the length depends on the calendar (months and years)."""
        return self.unit in ("n", "y")

    def ticks(self, precision: str) -> int:
        """Length in ticks of *precision*; months count 30 and years 365 days (for limits only,
        never for boundaries).
        """
        nanos = {
            "b": 1,
            "u": 1_000,
            "a": 1_000_000,
            "s": 10**9,
            "m": 60 * 10**9,
            "h": 3600 * 10**9,
            "d": 86400 * 10**9,
            "w": 7 * 86400 * 10**9,
            "n": 30 * 86400 * 10**9,
            "y": 365 * 86400 * 10**9,
        }[self.unit]
        return self.value * nanos * TICKS_PER_SECOND[precision] // 10**9

    def __str__(self) -> str:
        return f"{self.value}{self.unit}"


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType


@dataclass(frozen=True)
class Origin:
    """The origin of one column of a virtual table: a column of a plain table, or of one child table
    of a supertable.
    """

    column: str
    table_id: int
    #: name of the plain or child table
    table: str
    source: str


@dataclass(frozen=True)
class Member:
    """One virtual table of a virtual source, with its tag values (JSON's, as in the catalog) and
    its origins as they were when planned.
    """

    name: str
    tags: tuple[object, ...]
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Source:
    """The table that rows come from. `columns[0]` is the time column; `child` narrows a supertable
    to one child table.
    """

    table_id: int
    database: str
    table: str
    kind: Literal["stable", "child", "plain", "virtual"]
    columns: tuple[Column, ...]
    tags: tuple[Column, ...]
    precision: Precision
    child: str | None = None
    key_column: str | None = None
    #: id of the stream whose result this table is: repeats replace and nothing expires
    #: (docs/decisions/0004).
    result_of: int | None = None
    #: of a virtual source: the tables that were there when the stream was planned. Later ones do
    #: not take part.
    members: tuple[Member, ...] = ()

    @property
    def table_ids(self) -> tuple[int, ...]:
        """Tables whose records carry the source's rows."""
        if self.kind != "virtual":
            return (self.table_id,)
        return tuple(dict.fromkeys(o.table_id for m in self.members for o in m.origins))

    @property
    def time_column(self) -> str:
        return self.columns[0].name


@dataclass(frozen=True)
class Key:
    """One PARTITION BY item. `alias` is what TAGS and SUBTABLE may call it."""

    alias: str
    sql: str
    type: ColumnType


@dataclass(frozen=True)
class Interval:
    size: Duration
    sliding: Duration
    offset: Duration | None = None
    kind: Literal["interval"] = "interval"


@dataclass(frozen=True)
class Session:
    tolerance: Duration
    kind: Literal["session"] = "session"


@dataclass(frozen=True)
class State:
    sql: str
    type: ColumnType
    true_for: Duration | None = None
    kind: Literal["state"] = "state"


@dataclass(frozen=True)
class Event:
    """`*_columns` are the source columns each condition reads: they go into notifications as
    `fieldValue`.
    """

    start_sql: str
    end_sql: str
    start_columns: tuple[str, ...] = ()
    end_columns: tuple[str, ...] = ()
    true_for: Duration | None = None
    kind: Literal["event"] = "event"


@dataclass(frozen=True)
class Count:
    size: int
    sliding: int
    kind: Literal["count"] = "count"


Window = Interval | Session | State | Event | Count


@dataclass(frozen=True)
class Trigger:
    kind: TriggerKind
    #: MAX_DELAY's time, or CONTINUOUS_WINDOW_CLOSE's RECALCULATE period.
    every: Duration | None = None


@dataclass(frozen=True)
class Aggregate:
    """`name = function(argument, *params)`; `user:f` is the user-defined aggregate f. `count`
    without argument counts rows. `companion` takes `argument`'s value from the row that aggregate
    `of` (a min, max, first or last) chose.
    """

    name: str
    function: str
    sql: str | None
    type: ColumnType
    params: tuple[float | int | str, ...] = ()
    of: str | None = None


@dataclass(frozen=True)
class Output:
    """One item of the select list, over plan names after aggregation (or source names in a stream
    without a window).
    """

    name: str
    sql: str
    type: ColumnType


@dataclass(frozen=True)
class Fill:
    """`values[i]` (SQL literal or None) belongs to `outputs[i]`; None = computed (`_wstart`, keys,
    constants).
    """

    mode: FillMode
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Target:
    """The result table. `column_of[i]` names the output that fills `columns[i]`; `tag_of[i]` is the
    index of the partition key that fills `tags[i]`, or `"group_id"` for the automatic tag. NULL
    fills columns and tags that have None. Without a result table it has the names of the stream,
    and says what results look like in events.
    """

    table_id: int
    database: str
    table: str
    columns: tuple[Column, ...]
    tags: tuple[Column, ...]
    column_of: tuple[str | None, ...]
    tag_of: tuple[int | Literal["group_id"] | None, ...]
    #: over the keys' plan names `_k0…`; without one, names are automatic
    subtable_sql: str | None = None
    key_column: str | None = None
    precision: Precision = "ms"
    #: automatic names are chosen by where they go (`partition.beside`); streams of before
    #: 2026-11-24 go on without
    beside: bool = False
    #: False: there is no result table (`table_id` is 0), results are in the events of NOTIFY only
    stored: bool = True


@dataclass(frozen=True)
class Notify:
    """`urls` empty: events go to Penstock's own subscribers only."""

    urls: tuple[str, ...]
    on: tuple[str, ...]
    history: bool = False
    on_failure: Literal["drop", "pause"] = "pause"
    #: name of the key that signs HTTP requests; empty: none
    signed_by: str = ""
    #: condition over result columns and keys (`event_condition`); empty: none
    where: str = ""


@dataclass(frozen=True)
class StreamPlan:
    stream_id: int
    database: str
    name: str
    sql: str
    source: Source
    #: where groups are finished: in the scan of their source partition, or behind the exchange.
    path: Literal["scan", "exchange"]
    where: str | None
    keys: tuple[Key, ...]
    window: Window | None
    trigger: Trigger
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    target: Target
    watermark: Duration = Duration(0, "a")
    ignore_expired: bool = True
    ignore_update: bool = True
    delete_mark: Duration | None = None
    idle_timeout: Duration | None = None
    fill_history: bool = False
    fill_history_async: bool = False
    fill: Fill = Fill("none")
    notify: Notify | None = None
    timezone: str = "UTC"
    #: user-defined functions that its expressions call, as they were when it was made.
    functions: tuple[UserFunction, ...] = ()
    #: an expression that fails on a row: dead-letter the row, or stop this stream.
    on_error: Literal["dead_letter", "stop"] = "dead_letter"
    #: quotas: result rows a second, beyond which it is throttled, and megabytes of state, beyond
    #: which it is stopped; 0: none.
    max_results: int = 0
    max_state: int = 0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StreamPlan:
        return typing.cast(StreamPlan, build(cls, json.loads(text)))


_WINDOWS: dict[str, type[Any]] = {c.kind: c for c in (Interval, Session, State, Event, Count)}


_TIMED = ("max_delay", "force_window_close", "continuous_window_close")


def needs_ticks(plan: StreamPlan) -> bool:
    """Return True when a stream's results depend on processing time."""
    return plan.trigger.kind in _TIMED or plan.idle_timeout is not None


def build(hint: Any, value: Any) -> Any:
    """Rebuild a value of type *hint* from its JSON form."""
    return _builder(hint)(value)


@functools.cache
def _builder(hint: Any) -> Callable[[Any], Any]:
    """Return the function that rebuilds a value of this type. Cached, because every service reads
    the whole catalog when it starts.
    """
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        # the types of its fields are looked into only when there is a value: a type may hold itself
        return functools.partial(_build_fields, hint)
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin is tuple:
        item = _builder(args[0])
        return lambda value: None if value is None else tuple(map(item, value))
    if origin in (typing.Union, types.UnionType):
        return functools.partial(_build_either, args)
    return lambda value: value


def _build_fields(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    builders = _field_builders(kind)
    return kind(**{k: builders[k](v) for k, v in value.items() if k in builders})


@functools.cache
def _field_builders(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _builder(hint) for name, hint in typing.get_type_hints(kind).items()}


def _build_either(choices: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if Interval in choices and (kind := _WINDOWS.get(value.get("kind", ""))) is not None:
        return build(kind, value)
    made = [c for c in choices if dataclasses.is_dataclass(c)]
    return build(made[0], value) if made else value
