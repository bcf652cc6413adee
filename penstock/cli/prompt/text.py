"""Where statements that are being typed end, and which word the cursor is in. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

#: what a semicolon may hide in, and the semicolon itself
_PIECE = re.compile(
    r"""
    '(?:[^'\\]|\\.)*(?P<open1>'|\Z)
  | "(?:[^"\\]|\\.)*(?P<open2>"|\Z)
  | `[^`]*(?P<open3>`|\Z)
  | --[^\n]*
  | /\*(?:.*?)(?P<open4>\*/|\Z)
  | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[\w`]*\Z")
_TABLES = re.compile(r"\b(?:FROM|JOIN|INTO|DESCRIBE|DESC|TABLE)\s+([\w.`]+)", re.IGNORECASE)
_BEFORE_TABLE = re.compile(
    r"\b(?:FROM|JOIN|INTO|DESCRIBE|DESC|TABLE|STABLE)\s+[\w.`]*\Z", re.IGNORECASE
)
_BEFORE_DATABASE = re.compile(r"\b(?:USE|DATABASE)\s+[\w`]*\Z", re.IGNORECASE)
#: what people type who know other prompts, and the command that it means
_WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}


def command_of(text: str) -> str | None:
    """Return the command that *text* is, as one that begins with a backslash; None: it is SQL."""
    stripped = text.strip()
    if stripped.startswith("\\"):
        return stripped
    return _WORDS.get(stripped.rstrip(";").rstrip().lower())


def is_whole(text: str) -> bool:
    """Tell if *text* can be run: a command, nothing, or statements of which the last one ends with
    a semicolon outside of quotes and comments.
    """
    if not text.strip() or command_of(text) is not None:
        return True
    ends = 0
    for found in _PIECE.finditer(text):
        opened = [name for name in ("open1", "open2", "open3", "open4") if found[name] == ""]
        if opened:
            return False
        if found["end"]:
            ends = found.end()
    return ends > 0 and not _without_comments(text[ends:]).strip()


def split(text: str) -> list[str]:
    """Return the statements of *text*, each with its semicolon, if it has one. Pieces that say
    nothing are left out.
    """
    ends = [found.end() for found in _PIECE.finditer(text) if found["end"]]
    pieces = [text[start:end].strip() for start, end in pairwise([0, *ends, len(text)])]
    return [piece for piece in pieces if _without_comments(piece).rstrip(";").strip()]


def _without_comments(text: str) -> str:
    return _PIECE.sub(lambda m: "" if m[0].startswith(("--", "/*")) else m[0], text)


@dataclass(frozen=True)
class CursorPlace:
    """The cursor's: `word` before it, what kind of name it is (`table`, `database`, `any`), and the
    tables that the statement names.
    """

    word: str
    kind: str
    tables: tuple[str, ...]


def place_of(before: str, text: str) -> CursorPlace:
    """Return where the cursor is.

    Args:
        before: the text up to the cursor.
        text: the whole of it.
    """
    start = max((m.end() for m in _PIECE.finditer(before) if m["end"]), default=0)
    statement = before[start:]
    word = _WORD.search(statement)
    kind = "any"
    if _BEFORE_TABLE.search(statement):
        kind = "table"
    elif _BEFORE_DATABASE.search(statement):
        kind = "database"
    tables = dict.fromkeys(name.replace("`", "") for name in _TABLES.findall(text))
    return CursorPlace(word[0] if word is not None else "", kind, tuple(tables))
