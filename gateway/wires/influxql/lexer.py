"""Text of InfluxQL as tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.errors import SqlSyntaxError

TokenKind = Literal["word", "name", "text", "number", "duration", "pattern", "sign", "end"]
#: what stands for a value that a request binds: kinds and texts of tokens
BoundTokens = tuple[tuple[TokenKind, str], ...]
BoundValues = Mapping[str, BoundTokens]
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
    |\$(?:(?P<bound>[A-Za-z_][A-Za-z0-9_]*)|"(?P<bound_name>(?:[^"\\]|\\.)*)")
    |(?P<sign><=|>=|<>|!=|=~|!~|[=<>(),;.*+\-/%:])""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)*)/")
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


def tokens(text: str, bound: BoundValues | None = None) -> list[Token]:
    """Return the tokens of *text*, an "end" last; `$name` is what *bound* has for it. Raises
    SqlSyntaxError.
    """
    if len(text) > LONGEST_TEXT:
        raise SqlSyntaxError(
            "the query is too long", code="E_TOO_LARGE", hint=f"at most {LONGEST_TEXT} characters"
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        at = _next(text, at, found, bound or {})
    found.append(Token("end", "EOF", at))
    return found


def _next(text: str, at: int, found: list[Token], bound: BoundValues) -> int:
    """Add what stands at *at* to the tokens that are *found*; return the place behind it."""
    wants_pattern = bool(found) and found[-1].kind == "sign" and found[-1].text in _BEFORE_PATTERN
    match = _TOKEN.match(text, at)
    kind = match.lastgroup if match is not None else None
    if match is not None and kind == "blank":
        return match.end()
    if match is not None and kind in ("bound", "bound_name"):
        name = match["bound"] or _ESCAPE.sub(_unescape, match["bound_name"])
        made = _bound_tokens(text, Token("sign", name, at), bound)
        if (made[0].kind == "pattern") != wants_pattern:
            raise unexpected(text, made[0], "regex" if wants_pattern else "a value")
        found += made
        return match.end()
    if wants_pattern:
        pattern = _PATTERN.match(text, at)
        if pattern is None:
            raise unexpected(text, Token("sign", text[at : at + 1], at), "regex")
        found.append(Token("pattern", pattern[1].replace("\\/", "/"), at))
        return pattern.end()
    if match is None or kind is None:
        raise unexpected(text, Token("sign", text[at : at + 1], at), "another token")
    inside = match[kind]
    if kind in ("name", "text"):
        inside = _ESCAPE.sub(_unescape, inside)
    found.append(Token(_KINDS[kind], inside, at))
    return match.end()


def _bound_tokens(text: str, named: Token, bound: BoundValues) -> list[Token]:
    """Return what is bound to the name of *named*, in its place. Raises SqlSyntaxError."""
    if named.text not in bound:
        line, column = _place_of(text, named)
        raise SqlSyntaxError(
            f"missing parameter: {named.text[:64]}",
            hint='send it with params={"name": value}',
            line=line,
            column=column,
        )
    return [Token(kind, inside, named.place) for kind, inside in bound[named.text]]


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def length_of(duration: str) -> int:
    """Return the nanoseconds of a duration such as 1h30m."""
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(duration))


def unexpected(text: str, token: Token, wanted: str) -> SqlSyntaxError:
    """Make the error of a token that does not belong there, in InfluxDB's words."""
    line, column = _place_of(text, token)
    words = f"error parsing query: found {token.text[:32]}, expected {wanted}"
    return SqlSyntaxError(f"{words} at line {line}, char {column}", line=line, column=column)


def _place_of(text: str, token: Token) -> tuple[int, int]:
    """Return line and column of a token, from 1."""
    line = text.count("\n", 0, token.place) + 1
    return line, token.place - (text.rfind("\n", 0, token.place) + 1) + 1
