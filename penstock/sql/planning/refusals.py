"""Every statement that CREATE STREAM refuses: key, clause, reason and way out. docs/errors.md is
made from this table. A SELECT with a window is planned as a stream is, and refused in words about
queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from penstock.sql.statements import CreateStream, Name


@dataclass(frozen=True)
class Refusal:
    """`reason` and `way_out` may have {fields} that the caller fills. `in_query` has both for a
    SELECT, where they differ.
    """

    clause: str
    reason: str
    way_out: str
    in_query: tuple[str, str] | None = None


REFUSALS: dict[str, Refusal] = {
    "E_UNSUPPORTED_QUERY": Refusal("AS SELECT", "{what}", "{hint}"),
    "E_GROUP_BY": Refusal(
        "GROUP BY",
        "a stream groups by window and partition, not with GROUP BY",
        "write PARTITION BY {columns} and a window such as INTERVAL(10s)",
        in_query=(
            "rows are grouped by window and partition already",
            "write PARTITION BY {columns} in front of the window",
        ),
    ),
    "E_HAVING": Refusal(
        "HAVING",
        "a stream publishes every window, HAVING would have to take results back",
        "filter the rows with WHERE, the results with a second stream over the result table, or the"
        " events with NOTIFY (…) ON (…) WHERE",
    ),
    "E_NONWINDOW_TRIGGER": Refusal(
        "TRIGGER",
        "without a window every row is its own result, so only AT_ONCE has a meaning",
        "write TRIGGER AT_ONCE, or add a window such as INTERVAL(10s)",
    ),
    "E_NONWINDOW_AGG": Refusal(
        "AS SELECT",
        "{function}() needs a window that says over which rows",
        "add a window such as INTERVAL(10s), SESSION(ts, 10s) or COUNT_WINDOW(10)",
    ),
    "E_EVENT_NEEDS_TBNAME": Refusal(
        "EVENT_WINDOW",
        "rows of many tables have no common order to find start and end in",
        "add PARTITION BY tbname",
    ),
    "E_COUNT_NEEDS_TBNAME": Refusal(
        "COUNT_WINDOW",
        "rows of many tables have no common order to be counted in",
        "add PARTITION BY tbname",
    ),
    "E_STATE_NEEDS_TBNAME": Refusal(
        "STATE_WINDOW",
        "rows of many tables have no common order in which a state lasts",
        "add PARTITION BY tbname",
    ),
    "E_WINDOW_ON_COMPOSITE_KEY": Refusal(
        "{window}",
        "{table} has a composite key, so several rows may share a time and have no order",
        "use INTERVAL or SESSION",
    ),
    "E_COUNT_WATERMARK": Refusal(
        "WATERMARK",
        "COUNT_WINDOW must wait for late rows, they would shift every window behind them",
        "write WATERMARK with a time above 0, such as WATERMARK 10s",
    ),
    "E_COUNT_IGNORE_EXPIRED": Refusal(
        "IGNORE EXPIRED",
        "a row later than the watermark would shift every window behind it",
        "leave IGNORE EXPIRED at 1 and choose a longer WATERMARK",
    ),
    "E_COUNT_SIZE": Refusal(
        "COUNT_WINDOW", "a window of {size} rows is not possible", "write 2 to 2147483647 rows"
    ),
    "E_COUNT_SLIDING": Refusal(
        "COUNT_WINDOW", "windows of {size} rows cannot slide by {sliding}", "write 1 to {size} rows"
    ),
    "E_FWC_FILL_HISTORY": Refusal(
        "FILL_HISTORY",
        "FORCE_WINDOW_CLOSE goes by the clock, and history has no clock",
        "leave FILL_HISTORY at 0, or use TRIGGER WINDOW_CLOSE",
    ),
    "E_FWC_IGNORE_EXPIRED": Refusal(
        "IGNORE EXPIRED",
        "FORCE_WINDOW_CLOSE computes each window once, late rows cannot be added",
        "leave IGNORE EXPIRED at 1, or use TRIGGER WINDOW_CLOSE",
    ),
    "E_FWC_IGNORE_UPDATE": Refusal(
        "IGNORE UPDATE",
        "FORCE_WINDOW_CLOSE computes each window once, updates cannot be seen",
        "leave IGNORE UPDATE at 1, or use TRIGGER WINDOW_CLOSE",
    ),
    "E_FWC_SLIDING": Refusal(
        "SLIDING",
        "FORCE_WINDOW_CLOSE takes windows that do not overlap",
        "leave SLIDING out, or use TRIGGER WINDOW_CLOSE",
    ),
    "E_FWC_WINDOW": Refusal(
        "TRIGGER",
        "FORCE_WINDOW_CLOSE goes by the clock, and only INTERVAL windows have ends on the clock",
        "use INTERVAL(…), or TRIGGER WINDOW_CLOSE or MAX_DELAY",
    ),
    "E_FWC_FILL_MODE": Refusal(
        "FILL",
        "FORCE_WINDOW_CLOSE does not know the next window, so FILL({mode}) has nothing to go by",
        "use FILL(NONE), FILL(NULL), FILL(VALUE, …) or FILL(PREV)",
    ),
    "E_FWC_NEEDS_TBNAME": Refusal(
        "TRIGGER",
        "FORCE_WINDOW_CLOSE over many tables needs a result per table",
        "add PARTITION BY tbname",
    ),
    "E_CWC_WINDOW": Refusal(
        "TRIGGER",
        "CONTINUOUS_WINDOW_CLOSE recomputes windows later, which INTERVAL alone allows",
        "use INTERVAL(…), or TRIGGER WINDOW_CLOSE",
    ),
    "E_CWC_RECALC_MIN": Refusal(
        "RECALCULATE", "a recalculation every {given} is too often", "write 10m or more"
    ),
    "E_MAX_DELAY_MIN": Refusal(
        "TRIGGER", "MAX_DELAY {given} is too short", "write 5s or more, or TRIGGER AT_ONCE"
    ),
    "E_FORBIDDEN_FUNC": Refusal(
        "AS SELECT",
        "{function}() is not possible in a stream: {why}",
        "instead: {instead}",
        in_query=("{function}() is not possible with a window: {why}", "instead: {instead}"),
    ),
    "E_SUBTABLE_TYPE": Refusal(
        "SUBTABLE", "a table's name must be VARCHAR, this is {type}", "write CAST(… AS VARCHAR(64))"
    ),
    "E_SUBTABLE_COLUMN": Refusal(
        "SUBTABLE",
        "{name} is not in PARTITION BY, so one result table could have several names",
        "{hint}",
    ),
    "E_TAG_NOT_IN_PARTITION": Refusal("TAGS", "{name} is no name from PARTITION BY", "{hint}"),
    "E_TARGET_EXISTS": Refusal(
        "TAGS",
        "{table} exists already, its tags have types",
        "write the names only: TAGS({names}), or choose another table",
    ),
    "E_TARGET_NOT_STABLE": Refusal(
        "INTO",
        "{table} is {kind}, but results go into child tables of a supertable",
        "name a supertable, or a table that does not exist yet",
    ),
    "E_TARGET_COLUMNS": Refusal("INTO", "{what}", "{hint}"),
    "E_TARGET_TAGS": Refusal("TAGS", "{what}", "{hint}"),
    "E_TARGET_NO_TS": Refusal(
        "INTO",
        "the column list leaves out {name}, the time column of {table}",
        "add {name} to the list",
    ),
    "E_TARGET_IN_USE": Refusal(
        "INTO",
        "stream {stream} writes into {table} already",
        "choose another table, or drop that stream first",
    ),
    "E_TARGET_IS_SOURCE": Refusal(
        "INTO", "{table} is the source of this stream; it would feed itself", "choose another table"
    ),
    "E_TABLE_NOT_EXIST": Refusal("{clause}", "there is no table {table}", "{hint}"),
    "E_DATABASE_NOT_EXIST": Refusal(
        "{clause}", "there is no database {database}", "create it first: CREATE DATABASE {database}"
    ),
    "E_NO_DATABASE": Refusal(
        "{clause}",
        "{table} has no database in front and none is in use",
        "write database.{table}, or USE one",
    ),
    "E_TIMEZONE": Refusal(
        "CREATE STREAM",
        "{timezone} is no time zone that is known here",
        "use a name such as Asia/Kolkata",
    ),
    "E_STREAM_DATABASE": Refusal(
        "CREATE STREAM",
        "a stream belongs to the database of its source, {database}",
        "write CREATE STREAM {name}",
    ),
    "E_SLIDING_GT_INTERVAL": Refusal(
        "SLIDING",
        "SLIDING({sliding}) is longer than INTERVAL({size}), rows in between would be lost",
        "write SLIDING of {size} or less",
    ),
    "E_SLIDING_TOO_SMALL": Refusal(
        "SLIDING",
        "with SLIDING({sliding}) a row would be in more than {most} windows of {size}",
        "slide by a longer time",
    ),
    "E_SLIDING_UNIT": Refusal(
        "SLIDING",
        "windows of {size} cannot slide by {sliding}",
        "use months or years for both, or for neither",
    ),
    "E_INTERVAL_TOO_SMALL": Refusal(
        "INTERVAL", "INTERVAL({size}) is too short", "write 10a (10 ms) or more"
    ),
    "E_INTERVAL_PRECISION": Refusal(
        "{clause}",
        "{given} is no whole number of ticks of {precision} database {database}",
        "use a coarser unit, or a database with a finer PRECISION",
    ),
    "E_OFFSET_GE_INTERVAL": Refusal(
        "INTERVAL",
        "the offset {offset} is not shorter than INTERVAL({size})",
        "write an offset below {size}",
    ),
    "E_OFFSET_AUTO": Refusal(
        "INTERVAL",
        "AUTO takes the offset from the query's time range, and a stream has none",
        "write the offset, such as INTERVAL({size}, 5s)",
    ),
    "E_OFFSET_UNIT": Refusal(
        "INTERVAL",
        "the offset {offset} does not fit INTERVAL({size})",
        "months and years go with months and years",
    ),
    "E_SESSION_COLUMN": Refusal(
        "SESSION", "a session goes by the time column {name}", "write SESSION({name}, {tol})"
    ),
    "E_SESSION_GAP": Refusal(
        "SESSION", "{tol} is no possible gap", "write a fixed time above 0, such as 10s"
    ),
    "E_STATE_TYPE": Refusal(
        "STATE_WINDOW",
        "a state is an integer, BOOL or text, not {type}",
        "use CASE WHEN … THEN 1 ELSE 0 END to make a state of it",
    ),
    "E_STATE_COLUMN": Refusal(
        "STATE_WINDOW",
        "{name} is {what}, so it never changes within a table",
        "choose a column that changes",
    ),
    "E_EVENT_CONDITION": Refusal(
        "EVENT_WINDOW", "{what}", "write a comparison such as voltage < 0"
    ),
    "E_FILL_WINDOW": Refusal(
        "FILL",
        "only INTERVAL windows have gaps that can be filled",
        "leave FILL out, or use INTERVAL(…)",
    ),
    "E_FILL_VALUES": Refusal(
        "FILL",
        "{given} values for {wanted} columns to fill",
        "give one per column in order; _wstart, _wend, partition keys and constants take none",
    ),
    "E_DURATION": Refusal("{clause}", "{given} is not possible here", "{hint}"),
    "E_DUPLICATE_COLUMN": Refusal(
        "{clause}",
        "two result columns are called {name}",
        "give one of them another name: expression AS name",
    ),
    "E_RESERVED_NAME": Refusal(
        "{clause}",
        "{name} is a name that Penstock uses itself",
        "give it another name: {name} AS other_name",
    ),
    "E_NAME_LENGTH": Refusal(
        "{clause}", "the name has {bytes} bytes, the limit is {limit}", "choose a shorter name"
    ),
    "E_RESULT_TOO_LONG": Refusal(
        "INTO",
        "column {name} would be converted from {type}, longer than {limit} bytes",
        "shorten it with CAST(… AS VARCHAR(…)) or substr(…)",
    ),
    "E_VTABLE_WATERMARK": Refusal(
        "WATERMARK", "late rows of a virtual table are not put right", "leave WATERMARK at 0"
    ),
    "E_VTABLE_DISORDER": Refusal(
        "IGNORE {option}",
        "late rows, updates and deletes of a virtual table are not put right",
        "leave IGNORE {option} at 1",
    ),
    "E_VTABLE_FILL_HISTORY": Refusal(
        "FILL_HISTORY", "a virtual table's history cannot be computed", "leave FILL_HISTORY at 0"
    ),
    "E_VTABLE_TRIGGER": Refusal(
        "TRIGGER", "{trigger} is not possible over a virtual table", "use AT_ONCE or WINDOW_CLOSE"
    ),
    "E_VTABLE_COUNT_WINDOW": Refusal(
        "COUNT_WINDOW",
        "rows of a virtual table are merged from several and cannot be counted",
        "use INTERVAL, SESSION, STATE_WINDOW or EVENT_WINDOW",
    ),
    "E_NOTIFY_URL": Refusal(
        "NOTIFY", "{what}", "write ws://host:port/path, https://host/path or kafka://topic"
    ),
    "E_NOTIFY_KEY": Refusal(
        "SIGNED_BY",
        "{what}",
        "SIGNED_BY 'name' signs requests to http:// and https:// addresses with the key in"
        " secrets/notify/{database}/name",
    ),
    "E_NOTIFY_EVENT": Refusal(
        "NOTIFY", "there is no event '{event}'", "write 'WINDOW_OPEN', 'WINDOW_CLOSE' or both"
    ),
    "E_NOTIFY_WHERE": Refusal("NOTIFY … WHERE", "{what}", "{hint}"),
    "E_NOTIFY_WINDOW": Refusal(
        "NOTIFY",
        "events are those of windows, and this stream has none",
        "add a window such as INTERVAL(10s), or write INTO and subscribe to the result's rows",
    ),
    "E_NOTIFY_ONLY": Refusal(
        "{clause}",
        "it adds to the result table, not to the events of NOTIFY, and without INTO there is none",
        "{hint}",
    ),
}


#: clauses of CREATE STREAM → what a SELECT calls them
_IN_QUERY = {"AS SELECT": "SELECT", "CREATE STREAM": "SELECT", "INTO": "SELECT", "TAGS": "SELECT"}


def refuse(
    statement: CreateStream, key: str, at: int | exp.Expr | Name | None = None, **fields: object
) -> NoReturn:
    """Raise refusal *key*, pointing at an offset, node or name."""
    refusal = REFUSALS[key]
    clause = refusal.clause.format(**fields)
    reason, way_out = refusal.reason, refusal.way_out
    if statement.of_query:
        clause = _IN_QUERY.get(clause, clause)
        reason, way_out = refusal.in_query or (reason, way_out)
    raise statement.error(
        f"{clause}: {reason.format(**fields)}",
        at,
        code=key,
        hint=way_out.format(**fields),
    )
