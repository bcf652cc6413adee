"""Functions of a row and the rows before it in plain Python: what DuckDB's answers are compared to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

#: a value of one row, None for NULL
Value = Any
#: rows of one partition: (number of the row, time, value)
Rows = list[tuple[int, int, Value]]
#: number of a row → result
Results = dict[int, Value]


def whole(value: int | None) -> int | None:
    """A BIGINT, or NULL where it does not fit."""
    return value if value is not None and -(2**63) <= value < 2**63 else None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fits(value: Value) -> Value:
    return finite(value) if isinstance(value, float) else whole(value)


def diff(rows: Rows, ignore: int) -> Results:
    found: Results = {}
    before = None
    for place, (row, _, value) in enumerate(rows):
        step = None if value is None or before is None else fits(value - before)
        if ignore in (1, 3) and step is not None and step < 0:
            step = None
        if place and (ignore < 2 or step is not None):
            found[row] = step
        before = before if value is None else value
    return found


def derivative(rows: Rows, unit: int, ignore_negative: int) -> Results:
    found: Results = {}
    before: tuple[int, Any] | None = None
    for row, time, value in rows:
        if value is None:
            continue
        if before is not None:
            gap = time - before[0]
            change = float(value - before[1])
            if not (ignore_negative and gap and change < 0):
                found[row] = finite(change * unit / gap) if gap else None
        before = (time, value)
    return found


def csum(rows: Rows) -> Results:
    found: Results = {}
    total: Any = 0
    for row, _, value in rows:
        if value is not None:
            total += value
            found[row] = fits(total)
    return found


def mavg(rows: Rows, k: int) -> Results:
    found: Results = {}
    values: list[Any] = []
    for row, _, value in rows:
        if value is not None:
            values.append(value)
            if len(values) >= k:
                found[row] = float(sum(values[-k:])) / k
    return found


TESTS: dict[str, Callable[[Value, float], bool]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}


def states(rows: Rows, operator: str, limit: float, unit: int | None) -> Results:
    """statecount, or with a *unit* stateduration."""
    found: Results = {}
    count = 0
    start = 0
    for row, time, value in rows:
        if value is None:
            found[row] = None
        elif not TESTS[operator](value, limit):
            found[row] = -1
            count = 0
        else:
            start = time if count == 0 else start
            count += 1
            found[row] = count if unit is None else (time - start) // unit
    return found


def irate(rows: Rows) -> float | None:
    known = sorted((time, float(value)) for _, time, value in rows if value is not None)[-2:]
    if len(known) < 2:
        return 0.0 if known else None
    (t1, v1), (t2, v2) = known
    change = v2 - v1 if v2 >= v1 else v2
    return finite(change * 1000 / (t2 - t1)) if t2 > t1 else None


CALLS: list[tuple[str, str, Callable[[Rows], Results]]] = [
    *((f"diff({{}}, {n})", "iuxhb", lambda r, n=n: diff(r, n)) for n in range(4)),
    ("diff({})", "ix", lambda r: diff(r, 0)),
    ("derivative({}, 2s, 0)", "iuxhb", lambda r: derivative(r, 2000, 0)),
    ("derivative({}, 1m, 1)", "iuxhb", lambda r: derivative(r, 60_000, 1)),
    ("csum({})", "ixb", csum),
    *((f"mavg({{}}, {k})", "ixb", lambda r, k=k: mavg(r, k)) for k in (1, 2, 3, 9)),
    *(
        (f"statecount({{}}, '{o}', {limit})", "ixb", lambda r, o=o, n=limit: states(r, o, n, None))
        for o, limit in [("LT", 1), ("LE", 0.25), ("GT", -1.5), ("GE", 1), ("EQ", 1), ("NE", 0)]
    ),
    ("stateduration({}, 'gt', 0)", "ix", lambda r: states(r, "GT", 0, 1)),
    ("stateduration({}, 'LT', 2, 1s)", "iub", lambda r: states(r, "LT", 2, 1000)),
]
