"""CREATE STREAM and what manages streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.ddl import DdlParser
from penstock.sql.plan import Duration, Trigger, TriggerKind
from penstock.sql.source import mark
from penstock.sql.statements import (
    AlterStream,
    CreateStream,
    CreateTable,
    FlushStream,
    Name,
    NotifyClause,
    PauseStream,
    RecalculateStream,
    ResumeStream,
    Statement,
    StreamOptions,
    TargetColumn,
    TargetTag,
)
from penstock.sql.words import meant

_TRIGGERS: dict[str, TriggerKind] = {
    "AT_ONCE": "at_once",
    "WINDOW_CLOSE": "window_close",
    "MAX_DELAY": "max_delay",
    "FORCE_WINDOW_CLOSE": "force_window_close",
    "CONTINUOUS_WINDOW_CLOSE": "continuous_window_close",
}
_QUOTAS = ("MAX_RESULTS", "MAX_STATE")
_HIGHEST_QUOTA = 10**9
_OPTIONS = (
    "TRIGGER",
    "WATERMARK",
    "IGNORE",
    "DELETE_MARK",
    "FILL_HISTORY",
    "IDLE_TIMEOUT",
    "ON_ERROR",
    *_QUOTAS,
)


class StreamParser(DdlParser):
    """Statements about streams."""

    def create_stream(self, or_replace: bool) -> Statement:
        """Read the rest of `CREATE [OR REPLACE] STREAM`."""
        if_not_exists = self.if_not_exists()
        stream = self.name("a stream name")
        if self.sees_type(TokenType.L_PAREN) and not or_replace:
            return self._event_table(stream, if_not_exists)
        positions: dict[str, int] = {}
        options = self._options(positions)
        behind_options = self.index
        result = self._result(positions)
        query = self._from_alone() if not result and self.sees("FROM") else self._as(positions)
        notify = self._notify(positions) if self.sees("NOTIFY") else None
        if not result and notify is None and self.at_end:
            self.fail("this stream has neither INTO nor NOTIFY", index=behind_options)
        return CreateStream(
            stream=stream,
            query=query,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
            options=options,
            notify=notify,
            positions=positions,
            **result,
        )

    def _result(self, positions: dict[str, int]) -> dict[str, Any]:
        """Read `INTO table [(column, …)] [TAGS (…)] [SUBTABLE(…)]`. Return fields of the statement:
        none where a stream without a result table begins with its query.
        """
        if self.word() in ("AS", "FROM"):
            return {}
        positions["into"] = self.offset
        if not self.take("INTO"):
            self.fail(
                "expected a stream option or INTO",
                hint=meant(self.word() or self.token.text, (*_OPTIONS, "INTO")),
            )
        made: dict[str, Any] = {"target": self.name()}
        if self.sees_type(TokenType.L_PAREN):
            positions["columns"] = self.offset
            made["target_columns"] = self.list_in_parentheses(self._target_column)
        while self.word() in ("TAGS", "SUBTABLE"):
            if self._once("TAGS" if self.sees("TAGS") else "SUBTABLE", positions) == "TAGS":
                made["tags"] = self.list_in_parentheses(self._target_tag)
            else:
                self.open()
                made["subtable"] = self.condition()
                self.close()
        return made

    def _from_alone(self) -> exp.Query:
        """Read `FROM table [WHERE …] [PARTITION BY …] window`, which stands for the same behind
        `AS SELECT _wstart, count(*)`.
        """
        start = self.offset
        begin = exp.Column(this=exp.Identifier(this="_wstart", quoted=False))
        rows = exp.Anonymous(this="count", expressions=[exp.Star()])
        for item, text in ((begin, "_wstart"), (rows, "count(*)")):
            mark(item, start, start + len("FROM"))
            item.meta["sql"] = text
        select = exp.Select(expressions=[begin, rows])
        self._behind_list(select, start)
        self._write_out_windows(select, select.args.pop("windows", {}))
        return select

    def _as(self, positions: dict[str, int]) -> exp.Query:
        positions["as"] = self.offset
        self.expect("AS")
        return self.query()

    def _event_table(self, table: Name, if_not_exists: bool) -> Statement:
        """Read the columns of `CREATE STREAM name (…)`, which makes a table."""
        columns = self.event_columns()
        return CreateTable(
            table=table,
            columns=columns,
            if_not_exists=if_not_exists,
            options=self.table_options(),
            stream=True,
        )

    def _once(self, word: str, positions: dict[str, int], key: str = "") -> str:
        """Take *word*, which may come only once; note where."""
        key = key or word.lower()
        if key in positions:
            shown = key.upper().replace("IGNORE_", "IGNORE ")
            self.fail(
                f"{shown} is given twice (first found in line"
                f" {self.source.locate(positions[key])[0]})",
                code="E_OPTION_TWICE",
                hint="keep one of them",
            )
        positions[key] = self.offset
        self.index += 1
        return word

    def _options(self, positions: dict[str, int]) -> StreamOptions:
        """Options in any order, each once."""
        given: dict[str, Any] = {}
        while (word := self.word()) in _OPTIONS:
            if word == "IGNORE":
                if self.word(1) not in ("EXPIRED", "UPDATE"):
                    self.fail("expected IGNORE EXPIRED or IGNORE UPDATE", index=self.index + 1)
                key = f"ignore_{self.word(1).lower()}"
                self._once(word, positions, key)
                self.index += 1
                given[key] = self.flag()
                continue
            self._once(word, positions)
            if word == "TRIGGER":
                given["trigger"] = self._trigger()
            elif word == "FILL_HISTORY":
                given["fill_history"] = self.flag()
                given["fill_history_async"] = self.take("ASYNC")
            elif word == "ON_ERROR":
                given["on_error"] = self.one_of(("DROP", "STOP"), "DROP or STOP").lower()
            elif word in _QUOTAS:
                given[word.lower()] = self._quota()
            else:
                given[word.lower()] = self._time()
        return StreamOptions(**given)

    def _time(self) -> Duration:
        """A duration; a bare 0 counts as no time at all."""
        if self.sees_type(TokenType.NUMBER) and self.token.text == "0" and not self.unit_follows():
            self.index += 1
            return Duration(0, "a")
        return self.duration()

    def _quota(self) -> int:
        """A whole number; 0: no quota."""
        at = self.index
        given = self.integer()
        if given > _HIGHEST_QUOTA:
            self.fail(f"expected a number up to {_HIGHEST_QUOTA}", index=at)
        return given

    def _trigger(self) -> Trigger:
        kind = _TRIGGERS[self.one_of(_TRIGGERS, "a trigger")]
        if kind == "max_delay":
            return Trigger(kind, self._time())
        if kind == "continuous_window_close" and self.take("RECALCULATE"):
            return Trigger(kind, self._time())
        return Trigger(kind)

    def _target_column(self) -> TargetColumn:
        offset = self.offset
        return TargetColumn(self.identifier("a column name"), self._composite_key(), offset)

    def _target_tag(self) -> TargetTag:
        offset = self.offset
        name = self.identifier("a tag name")
        if self.sees_type(TokenType.COMMA) or self.sees_type(TokenType.R_PAREN):
            return TargetTag(name, offset=offset)
        kind = self.column_type()
        return TargetTag(name, kind, self.string() if self.take("COMMENT") else None, offset)

    def _notify(self, positions: dict[str, int]) -> NotifyClause:
        """`NOTIFY [('url', …)] ON ('event', …) [WHERE condition] [NOTIFY_HISTORY 0|1]
        [ON_FAILURE DROP|PAUSE] [SIGNED_BY 'key']`, the last three in any order
        """
        self._once("NOTIFY", positions)
        urls = self._addresses()
        self.expect("ON")
        events = self.list_in_parentheses(self._string_with_offset)
        where = self.condition() if self.take("WHERE") else None
        history: bool | None = None
        failure: Literal["drop", "pause"] | None = None
        signed_by: str | None = None
        while self.word() in ("NOTIFY_HISTORY", "ON_FAILURE", "SIGNED_BY"):
            option = self._once(self.word(), positions)
            if option == "NOTIFY_HISTORY":
                history = self.flag()
            elif option == "SIGNED_BY":
                signed_by = self.string()
            else:
                failure = (
                    "drop" if self.one_of(("DROP", "PAUSE"), "DROP or PAUSE") == "DROP" else "pause"
                )
        return NotifyClause(
            tuple(u for u, _ in urls),
            tuple(e.upper() for e, _ in events),
            history,
            failure,
            tuple(o for _, o in urls),
            tuple(o for _, o in events),
            signed_by,
            where,
        )

    def _addresses(self) -> Sequence[tuple[str, int]]:
        if not self.sees_type(TokenType.L_PAREN):
            return ()
        return self.list_in_parentheses(self._string_with_offset)

    def _string_with_offset(self) -> tuple[str, int]:
        offset = self.offset
        return self.string(), offset

    # ---------------------------------------------------------------- managing

    def _stream_if_exists(self) -> tuple[Name, bool]:
        """`STREAM [IF EXISTS] name`"""
        self.expect("STREAM")
        if_exists = self.if_exists()
        return self.name("a stream name"), if_exists

    def pause(self) -> Statement:
        stream, if_exists = self._stream_if_exists()
        return PauseStream(stream=stream, if_exists=if_exists)

    def resume(self) -> Statement:
        """`RESUME STREAM [IF EXISTS] [IGNORE UNTREATED] name`; IGNORE UNTREATED may also follow the
        name.
        """
        self.expect("STREAM")
        if_exists = self.if_exists()
        ignore = self.take("IGNORE", "UNTREATED")
        stream = self.name("a stream name")
        return ResumeStream(
            stream=stream,
            if_exists=if_exists,
            ignore_untreated=self.take("IGNORE", "UNTREATED") or ignore,
        )

    def flush(self) -> Statement:
        stream, if_exists = self._stream_if_exists()
        return FlushStream(stream=stream, if_exists=if_exists)

    def recalculate(self) -> Statement:
        self.expect("STREAM")
        stream = self.name("a stream name")
        self.expect("FROM")
        begin = self.value()
        return RecalculateStream(
            stream=stream, begin=begin, until=self.value() if self.take("TO") else None
        )

    def alter_stream(self) -> Statement:
        stream = self.name("a stream name")
        positions: dict[str, int] = {}
        options = self._options(positions)
        if not positions:
            self.fail(
                "expected a stream option", hint=meant(self.word() or self.token.text, _OPTIONS)
            )
        return AlterStream(stream=stream, options=options)
