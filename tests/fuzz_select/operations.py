"""Operations and their meaning in plain Python: functions are those of `tests/sql/plain_*.py`,
operators are written here.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.sql.compile import compile_expression
from tests.fuzz_select.kinds import TEXT, WHOLE, kind_of_column
from tests.fuzz_select.ordering import compare, conjunction, disjunction, is_in, negation
from tests.fuzz_select.tree import Compute, Operation
from tests.sql.plain_numbers import CHOICES, NUMBERS, Case
from tests.sql.plain_text import OPERATORS, TEXTS, like
from tests.sql.plain_times import TIMES
from tests.sql.rows import COLUMNS

_MASK = 2**64
#: these are about the moment of the statement, or make texts that nothing should be done with
_LEFT_OUT = re.compile(r"now|today|70000|to_json")
#: their last digits differ from one library to the next
_ROUGH = re.compile(r"(a?cos|a?sin|a?tan|exp|ln|log|pow|power|degrees|radians)\(")
#: a text, or the name of a column
_WORDS = re.compile(r"'(?:[^'\\]|\\.|'')*'|\b(?:[a-z]|ts)\b")
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DURATIONS = {"30s": 30_000, "5m": 300_000, "2h": 7_200_000, "1d": 86_400_000}


def _of_case(case: Case) -> Operation:
    """Return the operation that a case of `tests/sql` tries with columns."""
    text, plain = case
    columns: list[str] = []

    def place(found: re.Match[str]) -> str:
        name = found.group()
        if name.startswith("'"):
            return name
        if name not in columns:
            columns.append(name)
        return f"{{{columns.index(name)}}}"

    template = _WORDS.sub(place, text)
    names = tuple(columns)
    return Operation(
        template if template.endswith(")") else f"({template})",
        tuple(kind_of_column(name) for name in names),
        compile_expression(text, COLUMNS).type.kind,
        lambda values, zone: plain(dict(zip(names, values, strict=True)), zone),
        rough=_ROUGH.match(text) is not None,
    )


def _functions() -> list[Operation]:
    cases = [*NUMBERS, *CHOICES, *TEXTS, *OPERATORS, *TIMES]
    return [_of_case(case) for case in cases if not _LEFT_OUT.search(case[0])]


# ---------------------------------------------------------------- operators


def _known(compute: Callable[..., Any]) -> Compute:
    """NULL where an operand is."""
    return lambda values, zone: None if None in values else compute(*values)


def arithmetic(symbol: str, left: str, right: str) -> Operation:
    """Arithmetic of numbers, which gives DOUBLE; what is no finite number is NULL."""

    def compute(a: float, b: float) -> float | None:
        try:
            found = _ARITHMETIC[symbol](float(a), float(b))
        except (ArithmeticError, ValueError):
            return None
        return found if math.isfinite(found) else None

    return Operation(f"({{0}} {symbol} {{1}})", (left, right), "DOUBLE", _known(compute))


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": math.fmod,
}


def _signed(bits: int) -> int:
    bits %= _MASK
    return bits - _MASK if bits >= _MASK // 2 else bits


def bits(symbol: str, left: str, right: str) -> Operation:
    combine = operator.and_ if symbol == "&" else operator.or_
    return Operation(
        f"({{0}} {symbol} {{1}})",
        (left, right),
        "BIGINT",
        _known(lambda a, b: _signed(combine(int(a), int(b)))),
    )


def _moving() -> list[Operation]:
    """Times and what moves them."""
    made = [
        Operation(
            f"({{0}} {sign} {text})",
            ("TIMESTAMP",),
            "TIMESTAMP",
            _known(lambda t, by=by, sign=sign: t + by if sign == "+" else t - by),
        )
        for text, by in _DURATIONS.items()
        for sign in "+-"
    ]
    plus = Operation(
        "({0} + {1})", ("TIMESTAMP", "SMALL"), "TIMESTAMP", _known(lambda t, by: t + by)
    )
    minus = Operation(
        "({0} - {1})", ("TIMESTAMP", "TIMESTAMP"), "BIGINT", _known(lambda a, b: a - b)
    )
    return [*made, plus, minus]


def comparison(symbol: str, left: str, right: str) -> Operation:
    def compute(values: Sequence[Any], _: str) -> bool | None:
        found = compare(*values)
        return None if found is None else _COMPARISONS[symbol](found, 0)

    return Operation(f"({{0}} {symbol} {{1}})", (left, right), "BOOL", compute)


def bare(operation: Operation) -> Operation:
    """Return an operation without the parentheses around it."""
    return replace(operation, text=operation.text[1:-1])


SYMBOLS = tuple(_COMPARISONS)


def between(value: str, low: str, high: str, *, negated: bool) -> Operation:
    def compute(values: Sequence[Any], _: str) -> bool | None:
        above = compare(values[0], values[1])
        below = compare(values[0], values[2])
        inside = conjunction(
            [None if above is None else above >= 0, None if below is None else below <= 0]
        )
        return negation(inside) if negated else inside

    text = f"({{0}} {'NOT ' if negated else ''}BETWEEN {{1}} AND {{2}})"
    return Operation(text, (value, low, high), "BOOL", compute)


def in_list(kinds: tuple[str, ...], *, negated: bool) -> Operation:
    """`x IN (a, b …)`; *kinds* begin with that of x."""

    def compute(values: Sequence[Any], _: str) -> bool | None:
        found = is_in(values[0], list(values[1:]))
        return negation(found) if negated else found

    listed = ", ".join(f"{{{i}}}" for i in range(1, len(kinds)))
    text = f"({{0}} {'NOT ' if negated else ''}IN ({listed}))"
    return Operation(text, kinds, "BOOL", compute)


def is_null(kind: str, *, negated: bool) -> Operation:
    return Operation(
        f"({{0}} IS {'NOT ' if negated else ''}NULL)",
        (kind,),
        "BOOL",
        lambda values, zone: (values[0] is None) != negated,
    )


def like_pattern(pattern: str, *, negated: bool) -> Operation:
    """`x LIKE pattern`; a backslash takes what follows as it is."""
    written = pattern.replace("\\", "\\\\").replace("'", "''")
    return Operation(
        f"({{0}} {'NOT ' if negated else ''}LIKE '{written}')",
        ("VARCHAR",),
        "BOOL",
        _known(lambda text: like(text, pattern) != negated),
    )


def case(kind: str, *, otherwise: bool) -> Operation:
    """`CASE WHEN a THEN b WHEN c THEN d [ELSE e] END`."""

    def compute(values: Sequence[Any], _: str) -> Any:
        for condition, value in ((values[0], values[1]), (values[2], values[3])):
            if condition is True:
                return value
        return values[4] if otherwise else None

    last = " ELSE {4}" if otherwise else ""
    kinds = ("BOOL", kind, "BOOL", kind) + ((kind,) if otherwise else ())
    text = f"CASE WHEN {{0}} THEN {{1}} WHEN {{2}} THEN {{3}}{last} END"
    return Operation(text, kinds, kind, compute)


def simple_case(of: str, kind: str) -> Operation:
    """`CASE x WHEN a THEN b ELSE c END`."""
    return Operation(
        "CASE {0} WHEN {1} THEN {2} ELSE {3} END",
        (of, of, kind, kind),
        kind,
        lambda values, zone: values[2] if compare(values[0], values[1]) == 0 else values[3],
    )


def if_of(kind: str) -> Operation:
    """`if(condition, a, b)`."""
    kinds = ("BOOL", kind, kind)
    return Operation("if({0}, {1}, {2})", kinds, kind, lambda v, z: v[1 if v[0] else 2])


def choices(kind: str) -> list[Operation]:
    """Functions that choose between values of one kind."""
    return [
        Operation(
            "coalesce({0}, {1})",
            (kind, kind),
            kind,
            lambda v, z: v[1] if v[0] is None else v[0],
        ),
        Operation(
            "if({0}, {1}, {2})", ("BOOL", kind, kind), kind, lambda v, z: v[1 if v[0] else 2]
        ),
        Operation(
            "nullif({0}, {1})",
            (kind, kind),
            kind,
            lambda v, z: None if compare(*v) == 0 else v[0],
        ),
        Operation(
            "nvl2({0}, {1}, {2})",
            ("BOOL", kind, kind),
            kind,
            lambda v, z: v[2] if v[0] is None else v[1],
        ),
    ]


LOGIC = [
    Operation("({0} AND {1})", ("BOOL", "BOOL"), "BOOL", lambda v, z: conjunction(list(v))),
    Operation("({0} OR {1})", ("BOOL", "BOOL"), "BOOL", lambda v, z: disjunction(list(v))),
    Operation("(NOT {0})", ("BOOL",), "BOOL", lambda v, z: negation(v[0])),
]
_NEGATIVE = Operation("(- {0})", ("DOUBLE",), "DOUBLE", _known(operator.neg))


def _by_result() -> dict[str, list[Operation]]:
    found: defaultdict[str, list[Operation]] = defaultdict(list)
    for made in [*_functions(), *_moving(), *LOGIC, _NEGATIVE]:
        found[made.result].append(made)
    for kind in (*WHOLE, *TEXT, "DOUBLE", "FLOAT", "BOOL", "TIMESTAMP"):
        found[kind] += choices(kind)
    return dict(found)


#: kind → operations that give it, but for those that are made for the kinds of their operands
BY_RESULT = _by_result()
