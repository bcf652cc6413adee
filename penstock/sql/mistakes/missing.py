"""Parts that are missing: operands, commas, and words that a clause or statement goes on with."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

#: words that an expression or a name follows
_LEADING = (
    "SELECT",
    "DISTINCT",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "ON",
    "HAVING",
    "BY",
    "AS",
    "FROM",
    "JOIN",
    "INTO",
    "TABLE",
)
#: words that begin or join clauses, and are hardly meant as names
_CLAUSE = (
    "SELECT",
    "FROM",
    "WHERE",
    "PARTITION",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "SLIMIT",
    "AND",
    "OR",
    "UNION",
    "JOIN",
    "ON",
    "BY",
)
#: beginning of a message → hint
_EXPECTED = {
    "expected ON": "write JOIN name ON condition, or CROSS JOIN name",
    "expected END": "a CASE ends with END: CASE WHEN a > 1 THEN 2 ELSE 3 END",
    "expected AND": "write BETWEEN low AND high",
}
_STREAM_OPTIONS = (
    "TRIGGER",
    "WATERMARK",
    "IGNORE",
    "FILL_HISTORY",
    "DELETE_MARK",
    "ON_ERROR",
    "IDLE_TIMEOUT",
    "MAX_RESULTS",
    "MAX_STATE",
)
_OPERANDS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)
_COMPARISONS = (
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
)
_RIGHTS = {"SELECT": "READ", "INSERT": "WRITE", "UPDATE": "WRITE", "DELETE": "WRITE"}


def _operand(place: Place) -> SqlSyntaxError | None:
    """A clause where an expression or a name should be."""
    word = place.word()
    if "found the reserved word" not in place.error.message or word not in _CLAUSE:
        return None
    if place.word(-1) not in _LEADING and place.kind(-1) is TokenType.VAR:
        return None
    if place.kind(1) not in _OPERANDS or place.word(1) in _CLAUSE:  # it is meant as a name
        return None
    return place.hinted(f"something is missing in front of {word}; a name is written `{word}`")


def _word(place: Place) -> SqlSyntaxError | None:
    """The word that goes on with an expression."""
    for beginning, hint in _EXPECTED.items():
        if place.says(beginning):
            return place.hinted(hint)
    if place.says("expected AS,", "expected AS "):
        if _is_late_option(place):
            return _before_into(place)
        cast = any(token.text.upper() == "CAST" for token in place.tokens[: place.index])
        return place.hinted("write CAST(value AS type)" if cast else "write AS SELECT …")
    if place.word(-1) == "IN" and place.says('expected "("'):
        return place.hinted("write IN (1, 2, 3)")
    return None


def _behind_the_end(place: Place) -> SqlSyntaxError | None:
    """What cannot follow, because something before it is missing."""
    if not place.says("the statement should end here"):
        return None
    word = place.word()
    if word == "NOT" and place.word(1) == "NULL":
        return place.hinted("write IS NOT NULL")
    if word == "OFFSET":
        return place.hinted("OFFSET stands behind LIMIT: LIMIT 100 OFFSET 5")
    if _is_late_option(place):
        return _before_into(place)
    if place.kind(1) in _COMPARISONS and _has_condition(place):
        return place.hinted("join two conditions with AND or OR")
    return None


def _is_late_option(place: Place) -> bool:
    return place.word() in _STREAM_OPTIONS and place.tokens[0].text.upper() == "CREATE"


def _before_into(place: Place) -> SqlSyntaxError:
    return place.hinted(f"a stream's options stand before INTO: CREATE STREAM s {place.word()} …")


def _has_condition(place: Place) -> bool:
    return any(token.text.upper() in ("WHERE", "HAVING", "ON") for token in place.tokens)


def _kind_of_object(place: Place) -> SqlSyntaxError | None:
    """DROP, ALTER and GRANT without their words."""
    near = "did you mean" in place.error.hint
    if place.says("expected what to drop") and place.kind() is TokenType.VAR and not near:
        return place.hinted(f"write DROP TABLE {place.shown()}, or what else it is")
    if place.says("expected COLUMN or TAG") and place.kind() is TokenType.VAR:
        return place.hinted(f"write {place.word(-1)} COLUMN {place.shown()}")
    if place.says("expected a right") and place.word() in _RIGHTS:
        return place.hinted(f"the right is called {_RIGHTS[place.word()]}")
    return None


def _brackets(place: Place) -> SqlSyntaxError | None:
    """A name in brackets."""
    if place.kind() is not TokenType.L_BRACKET or not place.says("expected a"):
        return None
    return place.hinted("names stand in backticks: `a b`")


def _anything(place: Place) -> SqlSyntaxError | None:
    """A hint for what nothing else explains."""
    if place.error.hint:
        return None
    if place.kind() is TokenType.SENTINEL:
        return place.hinted("the statement is not complete")
    if place.says('expected "," or ")"'):
        return place.hinted("a comma or an operator may be missing in front of it")
    if place.says("the statement should end here"):
        return place.hinted("a comma, an operator or a keyword may be missing in front of it")
    return None


MISSING = (_operand, _word, _behind_the_end, _kind_of_object, _brackets)
LAST = (_anything,)
