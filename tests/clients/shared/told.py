"""What every Python program here does: answer commands of its standard input as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def options() -> dict[str, Any]:
    """Return what the program was told of the mesh."""
    found: dict[str, Any] = json.loads(sys.argv[1])
    return found


def value(word: str) -> Any:
    """Return the value that `kind:text` is."""
    kind, _, text = word.partition(":")
    if kind == "null":
        return None
    if kind == "time":
        return datetime.fromisoformat(text)
    read = {"int": int, "double": float, "bool": lambda t: t == "true", "text": str}
    return read[kind](text)


def shown(found: Any) -> str:
    """Return the text that stands in JSON for a value that JSON has not."""
    if isinstance(found, datetime):
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
    if isinstance(found, date):
        return found.isoformat()
    if isinstance(found, bytes | bytearray | memoryview):
        return bytes(found).hex()
    if isinstance(found, Decimal):
        return str(found)
    raise TypeError(f"no text for {type(found).__name__} {found!r}")


def say(answer: Any) -> None:
    print(json.dumps(answer, default=shown), flush=True)


def serve(
    connect: Callable[[], str],
    commands: Mapping[str, Callable[..., Any]],
    code_of: Callable[[Exception], Any],
) -> None:
    """Connect, tell the server's version, and do what standard input says until it ends."""

    def answer(work: Callable[..., Any], *words: str) -> bool:
        try:
            say({"answer": work(*words)})
        except Exception as wrong:
            say({"error": code_of(wrong) or type(wrong).__name__, "message": str(wrong)})
            return False
        return True

    if not answer(connect):
        return
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        answer(commands[name], *words)
