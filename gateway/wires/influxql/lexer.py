"""Text of InfluxQL as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.errors import SqlSyntaxError

TokenKind = Literal["word", "name", "text", "number", "duration", "pattern", "sign", "end"]
#: longer texts are refused before anything is read
LONGEST_TEXT = 64 * 1024
_UNITS = {
    "ns": 1,
    "u": 10**3,
    "µ": 10**3,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 604_800 * 10**9,
}
_UNIT = "ns|us|ms|u|µ|s|m|h|d|w"
_TOKEN = re.compile(
    rf"""(?P<blank>\s+|--[^\n]*)
    |(?P<duration>(?:[0-9]{{1,19}}(?:{_UNIT}))+(?![A-Za-z0-9_.]))
    |(?P<number>[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |"(?P<name>(?:[^"\\]|\\.)*)"
    |'(?P<text>(?:[^'\\]|\\.)*)'
    |(?P<sign><=|>=|<>|!=|=~|!~|[=<>(),;.*+\-/%:])""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN = re.compile(r"\s*/((?:[^/\\\n]|\\.)*)/")
_PART = re.compile(rf"([0-9]+)({_UNIT})")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KINDS: dict[str, TokenKind] = {
    "word": "word",
    "name": "name",
    "text": "text",
    "number": "number",
    "duration": "duration",
    "sign": "sign",
}
#: behind these a slash begins a regular expression
_BEFORE_PATTERN = ("=~", "!~")


@dataclass(frozen=True)
class Token:
    """`text` is without quotes and escapes; `place` counts characters from 0."""

    kind: TokenKind
    text: str
    place: int


def tokens(text: str) -> list[Token]:
    """Return the tokens of *text*, an "end" last. Raises SqlSyntaxError."""
    if len(text) > LONGEST_TEXT:
        raise SqlSyntaxError(
            "the query is too long", code="E_TOO_LARGE", hint=f"at most {LONGEST_TEXT} characters"
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        token, at = _next(text, at, found)
        if token is not None:
            found.append(token)
    found.append(Token("end", "EOF", at))
    return found


def _next(text: str, at: int, before: list[Token]) -> tuple[Token | None, int]:
    if before and before[-1].kind == "sign" and before[-1].text in _BEFORE_PATTERN:
        pattern = _PATTERN.match(text, at)
        if pattern is None:
            at += len(text) - at - len(text[at:].lstrip())
            raise unexpected(text, Token("sign", text[at : at + 1], at), "regex")
        return Token("pattern", pattern[1].replace("\\/", "/"), at), pattern.end()
    match = _TOKEN.match(text, at)
    if match is None:
        raise unexpected(text, Token("sign", text[at : at + 1], at), "another token")
    kind = match.lastgroup or "blank"
    if kind == "blank":
        return None, match.end()
    inside = match[kind]
    if kind in ("name", "text"):
        inside = _ESCAPE.sub(_unescape, inside)
    return Token(_KINDS[kind], inside, at), match.end()


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def length_of(duration: str) -> int:
    """Return the nanoseconds of a duration such as 1h30m."""
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(duration))


def unexpected(text: str, token: Token, wanted: str) -> SqlSyntaxError:
    """Make the error of a token that does not belong there, in InfluxDB's words."""
    line = text.count("\n", 0, token.place) + 1
    column = token.place - (text.rfind("\n", 0, token.place) + 1) + 1
    words = f"error parsing query: found {token.text[:32]}, expected {wanted}"
    return SqlSyntaxError(f"{words} at line {line}, char {column}", line=line, column=column)
