"""Functions of numbers and choices in plain Python, from the words of the documentation."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

Row = dict[str, Any]
#: an expression, and what it is in a row, in a time zone
Case = tuple[str, Callable[[Row, str], Any]]
_RANGES = {"TINYINT": 8, "INT": 32, "BIGINT": 64}


def of(compute: Callable[..., Any], *columns: str) -> Callable[[Row, str], Any]:
    """Return what computes a value from columns; NULL where one of them is NULL."""

    def value(row: Row, _: str) -> Any:
        given = [row[c] for c in columns]
        return None if None in given else compute(*given)

    return value


def real(compute: Callable[..., float], *columns: str) -> Callable[[Row, str], Any]:
    """Return the same for doubles: what mathematics does not define, or overflows, is NULL."""

    def value(*given: float) -> float | None:
        try:
            found = compute(*map(float, given))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return found if math.isfinite(found) else None

    return of(value, *columns)


def _fitting(value: int, kind: str) -> int | None:
    if kind == "BIGINT UNSIGNED":
        return value if 0 <= value < 2**64 else None
    limit = 2 ** (_RANGES[kind] - 1)
    return value if -limit <= value < limit else None


def _whole(compute: Callable[..., int], kind: str, *columns: str) -> Callable[[Row, str], Any]:
    return of(lambda *given: _fitting(compute(*given), kind), *columns)


def _odd(compute: Callable[..., float]) -> Callable[..., float]:
    """Keep NaN and infinities as they are."""
    return lambda x, *more: x if not math.isfinite(x) else compute(x, *more)


def _sign(x: float) -> float:
    return x if math.isnan(x) or x == 0 else math.copysign(1, x)


def _half_away(x: float) -> float:
    return float(Decimal(x).to_integral_value(ROUND_HALF_UP))


def _at(digits: int, rounding: str) -> Callable[[float], float]:
    def compute(x: float) -> float:
        scale = 10.0 ** abs(digits)
        moved = x * scale if digits >= 0 else x / scale
        if not math.isfinite(moved):
            return x
        whole = float(Decimal(moved).to_integral_value(rounding))
        return whole / scale if digits >= 0 else whole * scale

    return _odd(compute)


def _whole_at(value: int, digits: int, rounding: str) -> int:
    unit = int(10 ** max(0, -digits))
    return int((Decimal(value) / unit).to_integral_value(rounding)) * unit


def _log(x: float, base: float) -> float:
    """Divide two logarithms, each of which must be a number itself."""
    if math.inf in (x, base):
        raise ValueError("no finite logarithm")
    return math.log(x) / math.log(base)


def _crc(value: object) -> int:
    return zlib.crc32(str(value).encode())


def _larger(a: float, b: float) -> float:
    return b if math.isnan(b) or b > a else a


def _smaller(a: float, b: float) -> float:
    return b if math.isnan(a) or b < a else a


def _first(*columns: str) -> Callable[[Row, str], Any]:
    return lambda row, _: next((row[c] for c in columns if row[c] is not None), None)


def _nullif(row: Row, _: str) -> Any:
    return None if row["i"] is not None and row["i"] == row["n"] else row["i"]


def _fmod(left: float | None, right: float | None) -> float | None:
    return real(math.fmod, "d", "x")({"d": left, "x": right}, "")


def _large_and_back(value: float) -> float:
    return value * 1e300 * 1e300 / 1e300 / 1e300


NUMBERS: list[Case] = [
    ("acos(d)", real(math.acos, "d")),
    ("asin(d)", real(math.asin, "d")),
    ("atan(d)", lambda r, z: None if r["d"] is None or math.isnan(r["d"]) else math.atan(r["d"])),
    ("cos(x)", real(math.cos, "x")),
    ("sin(x)", real(math.sin, "x")),
    ("tan(x)", real(math.tan, "x")),
    ("exp(d)", real(math.exp, "d")),
    ("ln(d)", real(math.log, "d")),
    ("sqrt(d)", real(math.sqrt, "d")),
    ("sqrt(i)", real(math.sqrt, "i")),
    ("sqrt(o)", real(math.sqrt, "o")),
    ("degrees(d)", real(math.degrees, "d")),
    ("radians(d)", real(math.radians, "d")),
    ("pi()", lambda r, z: math.pi),
    ("log(d)", real(math.log, "d")),
    ("log(d, 2)", real(lambda x: _log(x, 2), "d")),
    ("log(d, x)", real(_log, "d", "x")),
    ("pow(d, 2)", real(lambda x: math.pow(x, 2), "d")),
    ("power(x, n)", real(math.pow, "x", "n")),
    ("mod(d, x)", real(math.fmod, "d", "x")),
    ("mod(i, n)", real(math.fmod, "i", "n")),
    ("abs(d)", of(abs, "d")),
    ("abs(f)", of(abs, "f")),
    ("abs(y)", _whole(abs, "TINYINT", "y")),
    ("abs(b)", _whole(abs, "BIGINT", "b")),
    ("abs(u)", of(abs, "u")),
    ("abs(o)", of(int, "o")),
    ("sign(d)", of(_sign, "d")),
    ("sign(y)", of(lambda v: (v > 0) - (v < 0), "y")),
    ("ceil(d)", of(_odd(lambda x: float(math.ceil(x))), "d")),
    ("ceiling(u)", of(int, "u")),
    ("floor(d)", of(_odd(lambda x: float(math.floor(x))), "d")),
    ("floor(f)", of(_odd(lambda x: float(math.floor(x))), "f")),
    ("round(d)", of(_odd(_half_away), "d")),
    ("round(b)", of(int, "b")),
    ("round(d, 1)", of(_at(1, ROUND_HALF_UP), "d")),
    ("round(d, -2)", of(_at(-2, ROUND_HALF_UP), "d")),
    ("round(i, -1)", _whole(lambda v: _whole_at(v, -1, ROUND_HALF_UP), "INT", "i")),
    ("round(b, n)", _whole(lambda v, n: _whole_at(v, n, ROUND_HALF_UP), "BIGINT", "b", "n")),
    ("truncate(d, 1)", of(_at(1, ROUND_DOWN), "d")),
    ("trunc(d, -1)", of(_at(-1, ROUND_DOWN), "d")),
    (
        "truncate(u, n)",
        _whole(lambda v, n: _whole_at(v, n, ROUND_DOWN), "BIGINT UNSIGNED", "u", "n"),
    ),
    ("d + x", real(lambda a, b: a + b, "d", "x")),
    ("d * x", real(lambda a, b: a * b, "d", "x")),
    ("d / x", real(lambda a, b: a / b, "d", "x")),
    ("x - d * (1e308 + 1e308)", lambda r, z: None),
    ("(d * 1e300) * 1e300 / 1e300 / 1e300", real(_large_and_back, "d")),
    ("isnull(d % x)", lambda r, z: _fmod(r["d"], r["x"]) is None),
    ("-i", of(lambda v: -float(v), "i")),
    ("-(d)", of(lambda v: -v, "d")),
    ("-o", of(lambda v: -float(v), "o")),
    ("i % n", real(math.fmod, "i", "n")),
    ("b % 7 + 9223372036854775807", real(lambda v: math.fmod(v, 7) + 2.0**63, "b")),
    ("-7 % 3", lambda r, z: -1.0),
    ("2 + 3 * 4 - 1", lambda r, z: 13.0),
    ("i & 3", of(lambda v: v & 3, "i")),
    ("y | o", of(lambda a, b: a | int(b), "y", "o")),
    ("u | 1", of(lambda v: (v | 1) - 2**64 if v >= 2**63 else v | 1, "u")),
    ("crc32(s)", of(_crc, "s")),
    ("crc32(b)", of(_crc, "b")),
]


def _text_or(row: Row, text: str) -> str | None:
    if row["n"] is not None and row["n"] > 0:
        return text
    return None if row["i"] is None else str(row["i"])


def _case_of_types(row: Row, _: str) -> int | None:
    if row["n"] == 1:
        return 2
    return 3 if row["n"] is not None and row["n"] == row["o"] else None


CHOICES: list[Case] = [
    (
        "coalesce(d, x, 0.5)",
        lambda r, z: _first("d", "x")(r, z) if _first("d", "x")(r, z) is not None else 0.5,
    ),
    ("ifnull(s, p)", _first("s", "p")),
    ("nvl(b, i)", _first("b", "i")),
    ("nvl2(d, s, p)", lambda r, z: r["p"] if r["d"] is None else r["s"]),
    ("if(n > 2, s, p)", lambda r, z: r["s"] if r["n"] is not None and r["n"] > 2 else r["p"]),
    ("if(o, i, n)", lambda r, z: r["i"] if r["o"] else r["n"]),
    ("nullif(i, n)", _nullif),
    ("ifnull(o, d)", lambda r, z: r["d"] if r["o"] is None else float(r["o"])),
    ("coalesce(n, s)", lambda r, z: r["s"] if r["n"] is None else str(r["n"])),
    ("coalesce(ts, n)", _first("ts", "n")),
    ("greatest(o, f)", of(lambda a, b: b if math.isnan(b) else max(float(a), b), "o", "f")),
    ("nullif(s, n)", lambda r, z: None if r["n"] is not None and r["s"] == str(r["n"]) else r["s"]),
    ("CASE WHEN n > 0 THEN 'p' ELSE i END", lambda r, z: _text_or(r, "p")),
    ("CASE n WHEN '1' THEN 2 WHEN o THEN 3 END", _case_of_types),
    ("isnull(d)", lambda r, z: r["d"] is None),
    ("isnotnull(s)", lambda r, z: r["s"] is not None),
    ("greatest(d, x)", of(_larger, "d", "x")),
    ("greatest(i, n, 3)", of(lambda a, b: max(a, b, 3), "i", "n")),
    ("least(d, x)", of(_smaller, "d", "x")),
    ("least(s, p)", of(lambda a, b: min(a, b, key=lambda t: t.encode()), "s", "p")),
]
