"""Windows as others write them: TUMBLE, SESSION of a gap alone, GROUP BY in front, patterns."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

_WINDOWS = ("INTERVAL", "SESSION", "STATE_WINDOW", "EVENT_WINDOW", "COUNT_WINDOW")
#: functions of tables that others have in front of FROM's end
_TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE")
#: windows by the names that others give them
_OTHER_NAMES = {
    "SESSION_WINDOW": "SESSION(ts, 30m)",
    "TUMBLE": "INTERVAL(5m)",
    "TUMBLING": "INTERVAL(5m)",
    "TUMBLING_WINDOW": "INTERVAL(5m)",
    "HOP": "INTERVAL(5m) SLIDING(1m)",
    "HOPPING": "INTERVAL(5m) SLIDING(1m)",
    "HOPPING_WINDOW": "INTERVAL(5m) SLIDING(1m)",
    "SLIDING_WINDOW": "INTERVAL(5m) SLIDING(1m)",
}


def _behind_groups(place: Place) -> SqlSyntaxError | None:
    """`GROUP BY tbname INTERVAL(5m)`"""
    if place.word() not in _WINDOWS or "stands in the wrong place" not in place.error.message:
        return None
    words = [token.text.upper() for token in place.tokens[: place.index]]
    if "GROUP" not in words:
        return None
    return place.hinted(
        f"beside a window write PARTITION BY in place of GROUP BY: PARTITION BY … {place.word()}(…)"
    )


def _of_another_name(place: Place) -> SqlSyntaxError | None:
    """`SESSION_WINDOW(ts, 30m)`"""
    name = place.word(-1)
    if name not in _OTHER_NAMES or place.kind() is not TokenType.L_PAREN:
        return None
    if not place.says("the statement should end"):
        return None
    return place.mistake(f"there is no window {name}", f"write {_OTHER_NAMES[name]}", -1)


def _function_of_a_table(place: Place) -> SqlSyntaxError | None:
    """`FROM TUMBLE(meters, ts, INTERVAL '5' MINUTE)`"""
    opened = place.last_opened()
    if not opened or place.tokens[opened - 1].text.upper() not in _TABLE_FUNCTIONS:
        return None
    return place.hinted(
        "write the window behind the table: FROM name PARTITION BY … INTERVAL(5m) SLIDING(1m)"
    )


def _gap_alone(place: Place) -> SqlSyntaxError | None:
    """`SESSION(30m)`"""
    opened = place.last_opened()
    if not opened or place.tokens[opened - 1].text.upper() != "SESSION":
        return None
    if place.kind() is not TokenType.R_PAREN or not place.says('expected ","'):
        return None
    return place.hinted("name the time column first: SESSION(ts, 30m)")


def _step_of_a_count(place: Place) -> SqlSyntaxError | None:
    """`COUNT_WINDOW(10) SLIDING(2)`"""
    if place.word() != "SLIDING" or "COUNT_WINDOW" not in place.source.text.upper():
        return None
    if not place.says("SLIDING is given twice"):
        return None
    return place.mistake(
        "SLIDING goes with INTERVAL", "COUNT_WINDOW takes its step itself: COUNT_WINDOW(10, 2)"
    )


def _events_in_parentheses(place: Place) -> SqlSyntaxError | None:
    """`EVENT_WINDOW(START WITH a > 1 END WITH a < 1)`"""
    if place.word(-1) != "EVENT_WINDOW" or place.kind() is not TokenType.L_PAREN:
        return None
    return place.hinted("leave the parentheses out: EVENT_WINDOW START WITH a > 1 END WITH a < 1")


def _pattern(place: Place) -> SqlSyntaxError | None:
    """`FROM meters MATCH_RECOGNIZE (…)`"""
    if place.word(-1) != "MATCH_RECOGNIZE" or not place.says("the statement should end"):
        return None
    return place.mistake(
        "there is no MATCH_RECOGNIZE",
        "EVENT_WINDOW START WITH a END WITH b is from one condition to the next, STATE_WINDOW(a)"
        " are neighbours with one value",
        -1,
    )


WINDOWS = (
    _behind_groups,
    _of_another_name,
    _function_of_a_table,
    _gap_alone,
    _step_of_a_count,
    _events_in_parentheses,
    _pattern,
)
