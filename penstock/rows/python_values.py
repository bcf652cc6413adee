"""Python values as values of columns: what the gateway takes from JSON and the client from lists,
by the same rules.

Nothing is rounded away but the digits behind those that a DECIMAL has, nothing cut or guessed: each
function raises ValueError, or decimal's InvalidOperation, for what does not fit.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

#: bytes in JSON are an object with this key alone, and hexadecimal digits
BYTES = "$bytes"
#: enough digits for any DECIMAL while it is rounded
_WIDE = Context(prec=80)


def text(value: Any) -> str:
    """Return *value*, which must be text."""
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def binary(value: Any) -> bytes:
    r"""Return bytes; text is taken as UTF-8, or as hexadecimal digits behind `\x`, as in SQL."""
    if isinstance(value, bytes):
        return value
    spelled = text(value)
    return bytes.fromhex(spelled[2:]) if spelled[:2] in ("\\x", "\\X") else spelled.encode()


def decimal(value: Any, precision: int, scale: int) -> Decimal:
    """Return *value* rounded to *scale* digits behind the point, and at most *precision* in all;
    halves go away from zero.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(value)
    number = Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    if not number.is_finite() or number.adjusted() >= precision - scale:
        raise ValueError(value)
    return number
