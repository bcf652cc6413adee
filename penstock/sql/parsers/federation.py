"""External streams and materialized views."""

from __future__ import annotations

from typing import Literal

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.stream import StreamParser
from penstock.sql.statements import CreateExternalStream, CreateView, Name, Statement, SteerView


class FederationParser(StreamParser):
    """Statements about what lies in other deployments."""

    def create_external_stream(self) -> Statement:
        """Behind `CREATE EXTERNAL STREAM`: `[IF NOT EXISTS] name [(columns)] SETTINGS key = value,
        …`
        """
        if_not_exists = self.if_not_exists()
        stream = self.name("a stream name")
        columns = self.columns() if self.sees_type(TokenType.L_PAREN) else None
        self.expect("SETTINGS")
        settings = self.list_of(self._setting)
        seen: set[str] = set()
        for key, _ in settings:
            if key in seen:
                self.fail(
                    f"{key} is given twice", code="E_OPTION_TWICE", index=len(self.tokens) - 1
                )
            seen.add(key)
        return CreateExternalStream(
            stream=stream, columns=columns, settings=settings, if_not_exists=if_not_exists
        )

    def _setting(self) -> tuple[str, str]:
        key = self.identifier("a setting").lower()
        self.expect_type(TokenType.EQ, '"="')
        if self.sees_type(TokenType.STRING):
            return key, self.string()
        if self.word() in ("TRUE", "FALSE"):
            self.index += 1
            return key, self.ahead(-1).text.lower()
        return key, str(self.integer("a string, a number, true or false"))

    def create_view(self) -> Statement:
        """Behind `CREATE MATERIALIZED VIEW`: `[IF NOT EXISTS] name [INTO target] [ON_ERROR
        STOP|DROP] AS SELECT …`
        """
        if_not_exists = self.if_not_exists()
        view = self.name("a view name")
        target: Name | None = None
        on_error: Literal["drop", "stop"] | None = None
        while (word := self.word()) in ("INTO", "ON_ERROR"):
            if (target if word == "INTO" else on_error) is not None:
                self.fail(f"{word} is given twice", code="E_OPTION_TWICE")
            self.index += 1
            if word == "INTO":
                target = self.name()
            else:
                on_error = (
                    "stop" if self.one_of(("STOP", "DROP"), "STOP or DROP") == "STOP" else "drop"
                )
        self.expect("AS")
        at = self.offset
        return CreateView(
            view=view,
            target=target,
            query=self.query(),
            if_not_exists=if_not_exists,
            on_error=on_error,
            query_offset=at,
        )

    def system(self) -> Statement:
        """`SYSTEM PAUSE | UNPAUSE | RESUME MATERIALIZED VIEW name [PERMANENT]`"""
        word = self.one_of(("PAUSE", "UNPAUSE", "RESUME"), "PAUSE, UNPAUSE or RESUME")
        action: Literal["pause", "resume"] = "pause" if word == "PAUSE" else "resume"
        self.expect("MATERIALIZED", "VIEW")
        view = self.name("a view name")
        if action == "pause" and self.take("PERMANENT"):
            self.notices.append(
                "PERMANENT: a pause lasts until RESUME in any case, over restarts too"
            )
        return SteerView(view=view, action=action)
