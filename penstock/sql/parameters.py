"""Parameters: a value for each placeholder of a statement, put into its tree as a literal.

A value is never text of a statement: the tree that comes out is the one that was read, with a
literal of the value's type in each placeholder's place, so quoting is no question here. Refused:
placeholders where a value would change what a statement does (ORDER BY and GROUP BY, which take a
number as a column's place), and values of types that SQL has no literals for.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.rows.parameters import Moment, Parameters
from penstock.sql import nodes
from penstock.sql import statements as st
from penstock.sql.parsers.cursor import MAX_DIGITS
from penstock.sql.source import mark

S = TypeVar("S", bound=st.Statement)
_CODE = "E_PARAMETER"
#: values by the offset of the placeholder that they are for
_Values = dict[int, st.Value]
_TAKES = "SELECT, INSERT, DELETE and EXPLAIN SELECT take parameters"
_TYPES = (
    'null, booleans, numbers, text, {"$bytes": "00ff"}, {"$decimal": "1.50"} and'
    ' {"$timestamp": "2026-03-01T09:00:00Z"} can be bound'
)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})?)?(Z|[+-]\d\d(?::?\d\d)?)?"
)
_MOST_ROWS = 2**63
#: clauses in which a number is the place of a column
_PLACES = (exp.Ordered, exp.Group, nodes.PartitionBy)


def bind(statement: S, parameters: Parameters | None, timezone: str) -> S:
    """Return *statement* with *parameters* in the place of its placeholders.

    Args:
        statement: as it was read.
        parameters: a list for `?`, a mapping for `:name`.
        timezone: of times that have none.

    Raises:
        SqlSemanticError: they do not fit the placeholders, or one has no literal.
    """
    holders = statement.placeholders
    if not holders:
        if parameters:
            raise _error(
                statement,
                None,
                f"the statement has no placeholders for {_count(len(parameters), 'parameter')}",
                "write ? or :name where the values go",
            )
        return statement
    bound = _bind(statement, _values(statement, parameters, timezone))
    if bound is None:
        raise _error(statement, holders[0], "this statement takes no parameters", _TAKES)
    return replace(bound, placeholders=())


def _bind(statement: S, values: _Values) -> S | None:
    """Return the statement with its values; None: it takes none."""
    made: st.Statement | None = None
    if isinstance(statement, st.Query):
        made = _bind_query(statement, values)
    elif isinstance(statement, st.InsertSelect):
        made = replace(statement, select=_bind_query(statement.select, values))
    elif isinstance(statement, st.Insert):
        made = replace(statement, parts=tuple(_bind_part(p, values) for p in statement.parts))
    elif isinstance(statement, st.Delete) and statement.where is not None:
        made = replace(statement, where=_fill(statement, statement.where, values))
    elif isinstance(statement, st.Explain) and isinstance(statement.statement, st.Query):
        inner = replace(statement.statement, placeholders=statement.placeholders)
        made = replace(statement, statement=_bind_query(inner, values))
    return made  # type: ignore[return-value]


def _bind_query(statement: st.Query, values: _Values) -> st.Query:
    query = _fill(statement, statement.query, values)
    assert isinstance(query, exp.Query)
    return replace(statement, query=query, placeholders=())


def _bind_part(part: st.InsertPart, values: _Values) -> st.InsertPart:
    def put(row: tuple[Any, ...]) -> tuple[st.Value, ...]:
        return tuple(values[v.start] if isinstance(v, st.Placeholder) else v for v in row)

    return replace(part, rows=tuple(map(put, part.rows)), tag_values=put(part.tag_values))


# ---------------------------------------------------------------- which value goes where


def _values(statement: st.Statement, parameters: Parameters | None, timezone: str) -> _Values:
    holders = statement.placeholders
    odd = next((h for h in holders if bool(h.name) != bool(holders[0].name)), None)
    if odd is not None:
        hint = "write all of them as ?, or all as :name"
        raise _error(statement, odd, "? and :name are mixed", hint)
    if parameters is None:
        hint = "send a value for each: the field parameters of POST /v1/query, or query(sql, […])"
        words = f"there are no parameters for {_count(len(holders), 'placeholder')}"
        raise _error(statement, holders[0], words, hint)
    if holders[0].name:
        given = _by_name(statement, parameters)
    else:
        given = _in_order(statement, parameters)
    return {
        holder.start: _value_for_insert(statement, holder, value, timezone)
        for holder, value in zip(holders, given, strict=True)
    }


def _in_order(statement: st.Statement, parameters: Parameters) -> list[Any]:
    holders = statement.placeholders
    if isinstance(parameters, Mapping):
        hint = "send a list, or write :name"
        raise _error(statement, holders[0], "? takes parameters in a list, not by name", hint)
    count = len(parameters)
    if count != len(holders):
        few = count < len(holders)
        wanted = _count(len(holders), "placeholder")
        words = f"too {'few' if few else 'many'} parameters: {count} for {wanted}"
        raise _error(statement, holders[count] if few else holders[-1], words)
    return list(parameters)


def _by_name(statement: st.Statement, parameters: Parameters) -> list[Any]:
    holders = statement.placeholders
    if not isinstance(parameters, Mapping):
        hint = 'send {"name": value, …}, or write ?'
        raise _error(statement, holders[0], ":name takes parameters by name, not a list", hint)
    names = {holder.name for holder in holders}
    for holder in holders:
        if holder.name not in parameters:
            hint = _nearest(holder.name, parameters)
            raise _error(statement, holder, f"there is no parameter {holder.name}", hint)
    for name in parameters:
        if name not in names:
            words = f"too many parameters: the statement has no :{name[:64]}"
            raise _error(statement, holders[-1], words, _nearest(name, names))
    return [parameters[holder.name] for holder in holders]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"


# ---------------------------------------------------------------- values as literals


def _value_for_insert(
    statement: st.Statement, holder: st.Placeholder, value: Any, timezone: str
) -> st.Value:
    """Return the value as INSERT has it."""
    if value is None or isinstance(value, bool | bytes):
        return value
    if isinstance(value, Moment):
        return _moment(statement, holder, value, timezone)
    problem = _problem(value)
    if problem:
        raise _error(statement, holder, f"the value of {holder.shown} {problem}", _TYPES)
    kept: st.Value = value
    return kept


def _problem(value: Any) -> str:
    """Say why a value cannot be bound; "": it can."""
    if isinstance(value, int | Decimal):
        number = Decimal(value) if isinstance(value, int) else value
        fits = number.is_finite() and _digits(number) <= MAX_DIGITS
        return "" if fits else f"is no number of at most {MAX_DIGITS} digits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "is not finite"
    if isinstance(value, str):
        return "" if _is_unicode(value) else "has half a character"
    named = type(value).__name__
    if isinstance(value, dict | list):
        named = "an object" if isinstance(value, dict) else "a list"
    return f"is {named}, which cannot be bound"


def _digits(number: Decimal) -> int:
    """Count the digits that a number has when it is written without an exponent."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + max(exponent, 0), -exponent)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _moment(
    statement: st.Statement, holder: st.Placeholder, moment: Moment, timezone: str
) -> st.RelativeTime:
    """Return a time with its zone, so that it is the same whoever reads it."""
    match = _TIME.fullmatch(moment.text)
    try:
        if match is None:
            raise ValueError(moment.text)
        day, clock, fraction, offset = match.groups()
        at = datetime.fromisoformat(f"{day} {clock or '00:00'}{offset or ''}")
        if at.tzinfo is None:
            at = at.replace(tzinfo=ZoneInfo("UTC" if timezone in ("Z", "") else timezone))
        at = at.astimezone(UTC)
    except (ValueError, OverflowError, KeyError, OSError) as wrong:  # KeyError: there is no zone
        words = f"the value of {holder.shown} is no time in the zone {timezone[:64]}"
        hint = "write it as 2026-03-01T09:00:00.123456789Z; without a zone it is in the request's"
        raise _error(statement, holder, words, hint) from wrong
    text = f"{at.replace(tzinfo=None).isoformat(sep=' ')}{fraction or ''}+00:00"
    return st.RelativeTime(text, (), literal=True)


# ---------------------------------------------------------------- literals in a tree


def _fill(statement: st.Statement, tree: exp.Expr, values: _Values) -> exp.Expr:
    """Return *tree* with literals in the place of its placeholders."""
    root = exp.Paren(this=tree.copy())
    found = list(root.find_all(nodes.Placeholder))
    places = {node.meta["start"] for node in found}
    for holder in statement.placeholders:
        if holder.start not in places:
            raise _error(statement, holder, "a parameter cannot stand here", _TAKES)
    for node in found:
        _check_place(statement, node, values[node.meta["start"]])
        literal = _literal(values[node.meta["start"]])
        if isinstance(node.parent, exp.JSONExtract) and isinstance(literal, exp.Neg):
            literal = exp.Paren(this=literal)
        mark(literal, node.meta["start"], node.meta["end"])
        node.replace(literal)
    filled: exp.Expr = root.this.pop()
    return filled


def _check_place(statement: st.Statement, node: exp.Expr, value: st.Value) -> None:
    around = node.parent
    while isinstance(around, exp.Paren | exp.Neg | exp.Alias):
        around = around.parent
    if isinstance(around, _PLACES):
        raise statement.error(
            "a parameter cannot name a column or its place",
            node,
            code=_CODE,
            hint="write the column into the text",
        )
    counts = isinstance(around, exp.Limit | exp.Offset) or node.arg_key in ("slimit", "soffset")
    if counts and (type(value) is not int or not 0 <= value < _MOST_ROWS):
        raise statement.error("a number of rows is a whole number, 0 or more", node, code=_CODE)


def _literal(value: st.Value) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bytes):
        return nodes.BinaryLiteral(this=value.hex())
    if isinstance(value, st.RelativeTime):
        text = exp.Literal.string(str(value.base))
        return exp.Cast(this=text, to=nodes.TypeName(this="TIMESTAMP"))
    return _number(value)


def _number(value: int | float | Decimal) -> exp.Expr:
    if isinstance(value, float):
        text = repr(value).lstrip("-")
        # with an exponent it is binary floating point, without one it would be decimal
        text += "" if "e" in text else "e0"
    else:
        text = f"{value:f}".lstrip("-") if isinstance(value, Decimal) else str(abs(value))
    literal = exp.Literal.number(text)
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    return exp.Neg(this=literal) if negative else literal


def _error(
    statement: st.Statement, holder: st.Placeholder | None, message: str, hint: str = ""
) -> SqlSemanticError:
    start = statement.start if holder is None else holder.start
    length = 1 if holder is None else holder.end - holder.start
    return statement.source.semantic_error(message, start, length, code=_CODE, hint=hint)
