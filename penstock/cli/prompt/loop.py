"""The loop of a prompt: a line editor whose Enter ends a statement that is whole, and runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from penstock.cli.prompt.completion import DialectCompleter
from penstock.cli.prompt.names import Names
from penstock.cli.prompt.session import Conversation, Leave
from penstock.cli.prompt.text import is_whole
from penstock.client.connection import Connection
from penstock.errors import PenstockError

#: words that stand beside a secret, and addresses with a password in them
_SECRET = re.compile(r"\bpass|\bsecret|\btoken|://[^/\s]*@", re.IGNORECASE)
_GREETING = "statements end with a semicolon; \\? lists commands, Ctrl-D leaves"


def run(
    client: Connection,
    out: TextIO,
    history_file: Path | None,
    *,
    terminal: tuple[Input, Output] | None = None,
) -> None:
    """Read and run statements until the user leaves.

    Args:
        history_file: where what was typed is kept; None keeps it for this prompt alone.
        terminal: what to read keys from and draw on, by default the process's.
    """
    session = Conversation(client, out)
    names = Names(lambda sql, parameters: client.query(sql, parameters).rows)
    editor = _editor(session, _dialect(client), names, _history(history_file), terminal)
    print(f"{client.url}: {_GREETING}", file=out)
    while True:
        try:
            text = editor.prompt(lambda: f"{client.database or 'penstock'}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            session.run(text)
        except KeyboardInterrupt:
            print("stopped", file=out)
        except Leave:
            return
        names.forget()


def _editor(
    session: Conversation,
    dialect: dict[str, object],
    names: Names,
    history: History,
    terminal: tuple[Input, Output] | None,
) -> PromptSession[str]:
    source, screen = terminal or (None, None)
    return PromptSession(
        multiline=True,
        prompt_continuation=lambda width, *_: "… ".rjust(width),
        completer=DialectCompleter(session, dialect, names),
        complete_while_typing=False,
        complete_in_thread=True,
        reserve_space_for_menu=6,
        auto_suggest=AutoSuggestFromHistory(),
        history=history,
        key_bindings=_bindings(),
        enable_history_search=True,
        input=source,
        output=screen,
    )


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER) & Condition(_can_run))
    def run_statement(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _can_run() -> bool:
    """Tell if what is typed is whole and the cursor behind it, so that Enter runs it."""
    buffer = get_app().current_buffer
    return is_whole(buffer.text) and not buffer.document.text_after_cursor.strip()


def _dialect(client: Connection) -> dict[str, object]:
    """Return what the gateway says of the dialect; nothing of an older one that does not know."""
    try:
        return client.dialect()
    except PenstockError:
        return {}


class _OpenHistory(FileHistory):
    """A file without the statements that hold a password or a token."""

    def store_string(self, string: str) -> None:
        if _SECRET.search(string) is None:
            super().store_string(string)


def _history(file: Path | None) -> History:
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return _OpenHistory(str(file))
