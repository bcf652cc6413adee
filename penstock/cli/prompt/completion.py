"""Completion: keywords, types and functions of the dialect, and the names that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from penstock.cli.prompt.names import Names
from penstock.cli.prompt.session import COMMANDS, Conversation
from penstock.cli.prompt.text import CursorPlace, place_of


class DialectCompleter(Completer):
    """Offers what can stand where the cursor is."""

    def __init__(self, session: Conversation, dialect: Mapping[str, Any], names: Names) -> None:
        """
        Args:
            dialect: what `GET /v1/dialect` says.
        """
        self._session = session
        self._names = names
        self._keywords = [*dialect.get("keywords", ()), *dialect.get("types", ())]
        self._functions = [
            (str(f["name"]), str(f["signature"]), str(f["doc"]))
            for f in dialect.get("functions", ())
        ]

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("\\"):
            yield from self._commands(before)
            return
        place = place_of(before, document.text)
        word = place.word.replace("`", "")
        for name, about, detail in self._find_offers(place, word):
            if name.lower().startswith(word.lower()):
                yield Completion(name, -len(place.word), display_meta=about, display=detail or name)

    def _find_offers(self, place: CursorPlace, word: str) -> Iterable[tuple[str, str, str]]:
        if place.kind == "database":
            yield from ((name, "database", "") for name in self._names.databases())
            return
        if place.kind == "table":
            database = self._session.client.database
            if database is not None:
                yield from ((name, "table", "") for name in self._names.tables(database))
            yield from ((name, "database", "") for name in self._names.databases())
            return
        if not word:
            return
        for table in place.tables:
            yield from ((name, table, "") for name in self._names.columns(table))
        yield from ((f"{name}(", doc, signature) for name, signature, doc in self._functions)
        yield from ((name, "", "") for name in self._keywords)

    def _commands(self, before: str) -> Iterator[Completion]:
        word, space, rest = before[1:].partition(" ")
        if not space:
            for name, command in COMMANDS.items():
                if name.startswith(word):
                    yield Completion(name, -len(word), display_meta=command.summary)
        elif word in ("d", "c"):
            database = self._session.client.database
            known = self._names.databases() if word == "c" else self._names.tables(database or "")
            for name in known:
                if name.startswith(rest):
                    yield Completion(name, -len(rest))
