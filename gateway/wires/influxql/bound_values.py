"""Values that a request binds to `$name` in InfluxQL, as the tokens that stand there then: a value
can never become anything else than one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gateway.wires.influxql.lexer import LONGEST_TEXT, BoundTokens, BoundValues
from penstock.errors import SchemaError

#: before or behind the point of a number
_MOST_DIGITS = 38
_DURATION = re.compile(r"(?:[0-9]{1,19}(?:ns|us|ms|u|µ|s|m|h|d|w))+")


def read_bound(text: str) -> BoundValues:
    """Return what the parameter `params` binds: an object of JSON, name by name.

    Raises:
        SchemaError: it is none, or a value is none that InfluxDB takes.
    """
    if not text:
        return {}
    if len(text) > LONGEST_TEXT:
        raise SchemaError(
            "params is too long", code="E_TOO_LARGE", hint=f"at most {LONGEST_TEXT} characters"
        )
    try:
        found = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as wrong:
        raise _not_bindable(str(wrong)[:200]) from None
    if not isinstance(found, dict):
        raise _not_bindable("it is no object")
    return {name: _tokens_of(name, value) for name, value in found.items()}


def _tokens_of(name: str, value: Any) -> BoundTokens:
    if isinstance(value, dict):
        if len(value) != 1:
            raise _odd(name, "an object has exactly one entry")
        ((kind, inside),) = value.items()
        if kind not in _KINDS:
            raise _odd(name, f"an object is one of {', '.join(sorted(_KINDS))}")
        made = _KINDS[kind](inside)
    else:
        made = _text(value) or _number(value) or _truth(value)
    if made is None:
        raise _odd(name, "a value is a text, a number, a boolean or an object of one of these")
    return made


def _text(value: Any) -> BoundTokens | None:
    return (("text", value),) if isinstance(value, str) else None


def _name(value: Any) -> BoundTokens | None:
    return (("name", value),) if isinstance(value, str) else None


def _pattern(value: Any) -> BoundTokens | None:
    return (("pattern", value),) if isinstance(value, str) else None


def _truth(value: Any) -> BoundTokens | None:
    return (("word", str(value)),) if isinstance(value, bool) else None


def _number(value: Any) -> BoundTokens | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    exact = Decimal(value)
    if not -_MOST_DIGITS < exact.adjusted() < _MOST_DIGITS:
        return None
    # the reader takes no exponents
    number: BoundTokens = (("number", f"{abs(exact):f}"),)
    return (("sign", "-"), *number) if exact < 0 else number


def _whole(value: Any) -> BoundTokens | None:
    return _number(value) if isinstance(value, int) else None


def _duration(value: Any) -> BoundTokens | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        value = f"{value}ns"
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return (("duration", value),)
    return None


#: objects say what their only entry is
_KINDS: dict[str, Callable[[Any], BoundTokens | None]] = {
    "string": _text,
    "identifier": _name,
    "ident": _name,
    "regex": _pattern,
    "float": _number,
    "number": _number,
    "integer": _whole,
    "int": _whole,
    "duration": _duration,
    "boolean": _truth,
}


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _not_bindable(detail: str) -> SchemaError:
    return SchemaError("params is no object of JSON", code="E_BODY", detail=detail)


def _odd(name: str, why: str) -> SchemaError:
    return SchemaError(f'"{name[:64]}" cannot be bound: {why}', code="E_PARAMETER")
