"""Commas, parentheses, quotes and operators."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place
from penstock.sql.words import RESERVED, quote_name, quote_string

_CLOSES = (TokenType.R_PAREN, TokenType.SENTINEL)
#: operators of other dialects, word → what to write instead
_OPERATORS = {
    "ILIKE": "lower(a) LIKE 'text%'",
    "RLIKE": "a MATCH 'expression'",
    "REGEXP": "a MATCH 'expression'",
    "SIMILAR": "a MATCH 'expression'",
    "GLOB": "a LIKE 'text%'",
    "XOR": "(a OR b) AND NOT (a AND b)",
    "DIV": "floor(a / b)",
    "FETCH": "LIMIT 5",
}

#: joins that have a side
_SIDED = ("ASOF", "WINDOW", "SEMI", "ANTI")


def _comma(place: Place) -> SqlSyntaxError | None:
    """A comma behind the last item."""
    if place.kind(-1) is not TokenType.COMMA or not place.says("expected"):
        return None
    word = place.word()
    if place.kind() not in _CLOSES and (word not in RESERVED or place.kind(1) is TokenType.L_PAREN):
        return None
    return place.mistake("there is a comma too many", "leave it out, or write what follows it", -1)


def _equals(place: Place) -> SqlSyntaxError | None:
    """`==`, `::` and `||`"""
    if place.kind() is TokenType.EQ and place.kind(-1) is TokenType.EQ:
        return place.mistake("== is no operator", "write = for equal, <> or != for unequal", -1)
    if place.kind() is TokenType.COLON and place.kind(1) is TokenType.COLON:
        kind = place.word(2) or "INT"
        return place.mistake(":: is no operator", f"write CAST({place.shown(-1)} AS {kind})")
    if place.kind() is TokenType.PIPE and place.kind(-1) is TokenType.PIPE:
        return place.mistake("|| is no operator", "write concat(a, b)", -1)
    return None


def _operator(place: Place) -> SqlSyntaxError | None:
    """Operators and clauses that other dialects have."""
    if not place.says("the statement should end", 'expected "," or ")"'):
        return None
    for n in (0, -1):
        word = place.word(n)
        if word in _OPERATORS:
            return place.mistake(f"there is no {word}", f"write {_OPERATORS[word]}", n)
    if place.word(-1) == "TOP" and place.word(-2) == "SELECT":
        return place.mistake(
            "there is no TOP in front of columns",
            f"write LIMIT {place.shown()} at the end of the query",
            -1,
        )
    return None


def _string_as_name(place: Place) -> SqlSyntaxError | None:
    """A string where a name stands."""
    named = place.says("expected") and " name" in place.error.message.split(",")[0]
    if not named or place.shown()[:1] not in ("'", '"'):
        return None
    text = place.shown()[1:-1]
    return place.hinted(f"text in quotes is no name: write {quote_name(text)}" if text else "")


def _name_as_string(place: Place) -> SqlSyntaxError | None:
    """A name where a string stands."""
    if not place.says("expected a string", "expected a value", "expected a key"):
        return None
    if place.kind() not in (TokenType.VAR, TokenType.IDENTIFIER) or place.word() in RESERVED:
        return None
    return place.hinted(f"text stands in quotes: {quote_string(place.shown())}")


def _quote_inside(place: Place) -> SqlSyntaxError | None:
    """A string that ends in the middle of a word."""
    if place.kind(-1) is not TokenType.STRING or not place.touches() or not place.word():
        return None
    quote = place.source.text[place.offset(-1)]
    return place.mistake(
        "a quote is missing or too many in the string that begins here",
        f"a {quote} within a string is written {quote}{quote}",
        -1,
    )


def _parenthesis(place: Place) -> SqlSyntaxError | None:
    """A parenthesis that is not closed where a clause or the end follows, or never opened."""
    if place.kind() is TokenType.R_PAREN and place.says("the statement should end"):
        return place.hinted("no parenthesis is open here: leave ) out, or write ( where it begins")
    if not place.says('expected "," or ")"'):
        return None
    if place.kind() is not TokenType.SENTINEL and place.word() not in RESERVED:
        return None
    opened = place.last_opened()
    if opened is None:
        return None
    line, column = place.source.locate(place.start + place.tokens[opened].start)
    return place.hinted(f"write ): the parenthesis of line {line}, column {column} is still open")


def _group_by_window(place: Place) -> SqlSyntaxError | None:
    """`GROUP BY INTERVAL(5m)`"""
    windows = ("INTERVAL", "SESSION", "STATE_WINDOW", "COUNT_WINDOW")
    if place.word() not in windows or "is no function here" not in place.error.message:
        return None
    return place.hinted(f"a window is a clause of its own: FROM … {place.word()}(…), no GROUP BY")


def _side_of_a_join(place: Place) -> SqlSyntaxError | None:
    """`ASOF JOIN` without LEFT or RIGHT"""
    word = place.word()
    if word not in _SIDED or place.word(1) != "JOIN":
        return None
    if not place.says("the statement should end", 'expected "," or ")"'):
        return None
    return place.mistake(
        f"{word} JOIN does not say whose rows it keeps",
        f"write LEFT {word} JOIN, or RIGHT {word} JOIN",
    )


def _by(place: Place) -> SqlSyntaxError | None:
    """GROUP, ORDER or PARTITION without BY."""
    return place.hinted(f"write {place.word(-1)} BY") if place.says("expected BY") else None


CLAUSES = (
    _group_by_window,
    _side_of_a_join,
    _by,
    _comma,
    _equals,
    _operator,
    _quote_inside,
    _string_as_name,
    _name_as_string,
    _parenthesis,
)
