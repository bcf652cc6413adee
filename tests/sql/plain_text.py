"""Functions of text in plain Python, from the words of the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.sql.plain_numbers import Case, Row, of

_MAX = 65_517


def _char(*codes: int | None) -> str | None:
    raw = b""
    for code in codes:
        if code is not None:
            low = code % 2**32
            raw += low.to_bytes(max(1, (low.bit_length() + 7) // 8), "big")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _substr(text: str, position: int, length: int | None = None) -> str:
    start = position - 1 if position > 0 else len(text) + position
    if position == 0 or start < 0:
        return ""
    return text[start:] if length is None else text[start : start + max(0, length)]


def _before(text: str, between: str, count: int) -> str:
    parts = text.split(between)
    if count >= 0:
        return between.join(parts[:count])
    return between.join(parts[max(0, len(parts) + count) :])


def _place(items: list[str], matches: Callable[[str], bool]) -> int:
    return next((i for i, item in enumerate(items, 1) if matches(item)), 0)


def like(text: str, pattern: str) -> bool:
    """Match letter by letter; a backslash takes `%`, `_` and itself as they are."""
    if not pattern:
        return not text
    head = pattern[0]
    if head == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    rest = pattern[1:]
    if head == "\\" and rest and rest[0] in "%_\\":
        head, rest = rest[0], rest[1:]
        return text[:1] == head and like(text[1:], rest)
    if not text:
        return False
    return head in ("_", text[0]) and like(text[1:], rest)


def _strip(text: str, what: str, front: bool, end: bool) -> str:
    while front and text.startswith(what):
        text = text[len(what) :]
    while end and text.endswith(what):
        text = text[: -len(what)]
    return text


def _find(what: str, text: str) -> int:
    return text.find(what) + 1


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _chars(row: Row, _: str) -> str | None:
    return _char(row["n"], 65)


TEXTS: list[Case] = [
    ("ascii(s)", of(lambda t: t.encode()[0] if t else 0, "s")),
    ("char(n, 65)", _chars),
    ("char(50089)", lambda r, z: "é"),
    ("char_length(s)", of(len, "s")),
    ("character_length(s)", of(len, "s")),
    ("length(s)", of(lambda t: len(t.encode()), "s")),
    ("concat(s, p)", of(lambda a, b: a + b, "s", "p")),
    ("concat_ws('-', s, p)", of(lambda a, b: f"{a}-{b}", "s", "p")),
    ("concat_ws(w, s, p)", of(lambda w, a, b: a + w + b, "w", "s", "p")),
    ("lower(s)", of(str.lower, "s")),
    ("upper(s)", of(str.upper, "s")),
    ("ltrim(s)", of(lambda t: t.lstrip(" "), "s")),
    ("rtrim(s)", of(lambda t: t.rstrip(" "), "s")),
    ("trim(s)", of(lambda t: t.strip(" "), "s")),
    ("trim(BOTH 'x' FROM s)", of(lambda t: _strip(t, "x", True, True), "s")),
    ("trim(LEADING 'ab' FROM s)", of(lambda t: _strip(t, "ab", True, False), "s")),
    ("trim(TRAILING 'xx' FROM s)", of(lambda t: _strip(t, "xx", False, True), "s")),
    ("substr(s, 2)", of(lambda t: _substr(t, 2), "s")),
    ("substr(s, n)", of(_substr, "s", "n")),
    ("substring(s, n, 2)", of(lambda t, n: _substr(t, n, 2), "s", "n")),
    ("substr(s, -2, n)", of(lambda t, n: _substr(t, -2, n), "s", "n")),
    ("substring_index(s, 'x', n)", of(lambda t, n: _before(t, "x", n), "s", "n")),
    ("substring_index(s, ',', -2)", of(lambda t: _before(t, ",", -2), "s")),
    ("position(p IN s)", of(_find, "p", "s")),
    ("position('b' IN s)", of(lambda t: _find("b", t), "s")),
    ("replace(s, 'x', '')", of(lambda t: _replace(t, "x", ""), "s")),
    ("replace(s, p, 'zz')", of(lambda t, o: _replace(t, o, "zz"), "s", "p")),
    ("replace(s, 'a', '\\\\')", of(lambda t: _replace(t, "a", "\\"), "s")),
    ("repeat(s, n)", of(lambda t, n: t * max(0, n), "s", "n")),
    ("repeat(s, 70000)", of(lambda t: t * (_MAX // max(1, len(t.encode()))), "s")),
    ("find_in_set(p, s)", of(lambda p, t: _place(t.split(","), lambda e: e == p), "p", "s")),
    ("find_in_set('b', s, 'x')", of(lambda t: _place(t.split("x"), lambda e: e == "b"), "s")),
    ("like_in_set('a%', s)", of(lambda t: _place(t.split(","), lambda e: e[:1] == "a"), "s")),
    (
        "like_in_set('a\\\\_b', s, 'x')",
        of(lambda t: _place(t.split("x"), lambda e: e == "a_b"), "s"),
    ),
    (
        "regexp_in_set('^a|b$', s)",
        of(lambda t: _place(t.split(","), lambda e: bool(re.search(r"^a|b\Z", e))), "s"),
    ),
    ("to_json(s)", of(str, "s")),
]
#: operators on text that a registry has no entry for
OPERATORS: list[Case] = [
    (f"s LIKE '{written}'", of(lambda t, pattern=pattern: like(t, pattern), "s"))
    for written, pattern in (
        ("a\\\\_b", "a\\_b"),
        ("a\\_b", "a\\_b"),
        ("a_b", "a_b"),
        ("%\\\\%", "%\\%"),
        ("50\\%", "50\\%"),
        ("%b%", "%b%"),
        ("_%_", "_%_"),
        ("a\\\\\\\\b", "a\\\\b"),
        ("", ""),
    )
]
