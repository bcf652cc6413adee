"""What a prompt runs (statements, and commands that begin with a backslash), and what it prints."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from penstock.cli.options import Form
from penstock.cli.output import write
from penstock.cli.prompt.text import command_of, split
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.client.connection import Connection

#: rows of a table that are shown; `\o csv` shows all
_SHOWN_ROWS = 1_000
_USE = re.compile(r"\s*USE\s+`?(?P<name>[^`;\s]+)`?\s*;?\s*\Z", re.IGNORECASE)
_FORMS = ("table", "vertical", "csv", "json", "ndjson", "markdown")
_WATCH_SECONDS = 2.0
_CLEAR = "\x1b[2J\x1b[H"


class Leave(Exception):
    """The prompt is to end."""


@dataclass
class Conversation:
    """One prompt's: where it is, how it prints, and what it ran last."""

    client: Connection
    out: TextIO
    form: Form = "table"
    timing: bool = False
    last: str = ""
    #: ends `\\watch` early; Ctrl-C does the same by an exception
    halt: threading.Event = field(default_factory=threading.Event)

    def run(self, text: str) -> None:
        """Run what was typed: one command, or statements one after another until one fails. Errors
        are printed.

        Raises:
            Leave: the user wants to.
            KeyboardInterrupt: while a statement ran; its answer is not waited for.
        """
        command = command_of(text)
        try:
            if command is not None:
                self._command(command)
                return
            for statement in split(text):
                self._statement(statement)
        except PenstockError as error:
            print(error, file=self.out)

    # ---------------------------------------------------------------- statements

    def _statement(self, text: str) -> None:
        self.last = text
        started = time.monotonic()
        result = self.client.query(text)
        took = time.monotonic() - started
        used = _USE.match(text)
        if used is not None:
            self.client.database = used["name"]
        rows = result.table
        if rows.column_names == ["affected_rows"]:
            count = int(rows.column(0)[0].as_py())
            print("done" if count == 0 else f"{_rows(count)} written", file=self.out)
        else:
            self._show(rows)
        for notice in result.notices:
            print(f"notice: {notice}", file=self.out)
        if self.timing:
            print(f"{took * 1000:.1f} ms", file=self.out)

    def _show(self, rows: object) -> None:
        import pyarrow as pa

        assert isinstance(rows, pa.Table)
        cut = self.form in ("table", "vertical", "markdown")
        write(rows.slice(0, _SHOWN_ROWS) if cut else rows, self.form, self.out)
        if not cut:
            return
        more = f", the first {_SHOWN_ROWS:,} shown" if rows.num_rows > _SHOWN_ROWS else ""
        print(f"({_rows(rows.num_rows)}{more})", file=self.out)

    # ---------------------------------------------------------------- commands

    def _command(self, typed: str) -> None:
        word, _, rest = typed[1:].partition(" ")
        command = COMMANDS.get(word)
        if command is None:
            print(f"there is no command \\{word}; \\? lists them", file=self.out)
            return
        command.run(self, rest.strip().rstrip(";").strip())

    def describe(self, name: str) -> None:
        if name:
            self._statement(f"DESCRIBE {name}")
            return
        database = self._require_database()
        if database is not None:
            self._statement(
                "SELECT stable_name AS name, 'supertable' AS kind"
                f" FROM information_schema.ins_stables WHERE db_name = {_quote(database)}"
                " UNION ALL SELECT table_name, 'table' FROM information_schema.ins_tables"
                f" WHERE db_name = {_quote(database)} AND type = 'NORMAL_TABLE' ORDER BY name"
            )

    def streams(self, _: str) -> None:
        database = self._require_database()
        if database is not None:
            self._statement("SHOW STREAMS")

    def databases(self, _: str) -> None:
        self._statement("SHOW DATABASES")

    def use(self, name: str) -> None:
        if name:
            self._statement(f"USE {name}")
        else:
            print(self.client.database or "no database; \\c NAME takes one", file=self.out)

    def watch(self, seconds: str) -> None:
        """Run the last statement again and again until Ctrl-C."""
        try:
            pause = float(seconds) if seconds else _WATCH_SECONDS
        except ValueError:
            pause = 0.0
        if not 0.1 <= pause <= 86_400:
            print("\\watch takes seconds, 0.1 or more: \\watch 2", file=self.out)
            return
        if not self.last:
            print("\\watch repeats the last statement, and there is none yet", file=self.out)
            return
        self.halt.clear()
        while True:
            if self.out.isatty():
                self.out.write(_CLEAR)
            print(f"every {pause:g} s, Ctrl-C ends it: {self.last}", file=self.out)
            self._statement(self.last)
            self.out.flush()
            if self.halt.wait(pause):
                return

    def switch_timing(self, _: str) -> None:
        self.timing = not self.timing
        print(f"times are {'shown' if self.timing else 'not shown'}", file=self.out)

    def switch_vertical(self, _: str) -> None:
        self.form = "table" if self.form == "vertical" else "vertical"
        print(f"rows are written as {self.form}", file=self.out)

    def choose_form(self, form: str) -> None:
        known = next((f for f in _FORMS if f == form), None)
        if known is None:
            print(f"\\o takes {', '.join(_FORMS)}; it is {self.form}", file=self.out)
        else:
            self.form = known  # type: ignore[assignment]

    def leave(self, _: str) -> None:
        raise Leave

    def help(self, _: str) -> None:
        width = max(len(command.usage) for command in COMMANDS.values())
        for command in dict.fromkeys(COMMANDS.values()):
            print(f"{command.usage:<{width}}  {command.summary}", file=self.out)
        print("statements end with a semicolon; Ctrl-C drops what is typed", file=self.out)

    def _require_database(self) -> str | None:
        if self.client.database is None:
            print("which database? USE name; takes one, \\l lists them", file=self.out)
        return self.client.database


@dataclass(frozen=True)
class Command:
    """Something that is said to the prompt, not to the mesh."""

    usage: str
    summary: str
    run: Callable[[Conversation, str], None]


COMMANDS = {
    "d": Command("\\d [NAME]", "tables of the database, or columns of one", Conversation.describe),
    "l": Command("\\l", "databases", Conversation.databases),
    "c": Command("\\c [NAME]", "take a database, or say which it is", Conversation.use),
    "streams": Command("\\streams", "streams of the database", Conversation.streams),
    "watch": Command(
        "\\watch [SECONDS]", "run the last statement again every 2 seconds", Conversation.watch
    ),
    "timing": Command(
        "\\timing", "show how long statements take, or not", Conversation.switch_timing
    ),
    "x": Command("\\x", "a line for each value, or a table again", Conversation.switch_vertical),
    "o": Command("\\o FORM", "write rows as " + ", ".join(_FORMS), Conversation.choose_form),
    "?": Command("\\?", "this list", Conversation.help),
    "q": Command("\\q", "leave; so do exit and Ctrl-D", Conversation.leave),
}


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
