"""Values of the one row that an aggregate chooses, as DuckDB picks them.

Each macro has the forms `(c, x)`, `(c, x, ts)` and `(c, x, ts, tb)`: `c` is the value, `x` what the
aggregate is computed of, `ts` the time of the row and `tb` its table. Of several rows the key tells
which it is, so that everything picked is of one row.
"""

from __future__ import annotations

from penstock.sql.functions.duck_aggregates import NAN
from penstock.sql.functions.duckdb import PREFIX, DuckForm, Macro, macro

#: falls while time goes on
_FALLING = Macro(
    f"{PREFIX}falling",
    (
        "(x TIMESTAMP_MS) AS -epoch_ms(x)",
        "(x TIMESTAMP) AS -epoch_us(x)",
        "(x TIMESTAMP_NS) AS -epoch_ns(x)",
    ),
)
_COUNTS = f"x IS NOT NULL AND NOT {NAN.name}(x)"


def _pick(name: str, function: str, keys: dict[str, str], condition: str = _COUNTS) -> DuckForm:
    """Return the form that picks `c`.

    Args:
        name: of the aggregate.
        function: of DuckDB's that finds the key.
        keys: parameters behind `c` and `x`, and the key of them.
        condition: on rows that may be chosen.
    """
    forms = (
        f"(c, x{parameters}) AS {function}(c, CASE WHEN {condition} THEN {key} END)"
        for parameters, key in keys.items()
    )
    return macro(f"row_of_{name}", *forms, calls=(NAN, _FALLING))


_TIMES = {", ts": "ts", ", ts, tb": "row(ts, tb)"}
_LEAST = {"": "x", ", ts": "row(x, ts)", ", ts, tb": "row(x, ts, tb)"}
_MOST = {
    "": "x",
    ", ts": f"row(x, {_FALLING.name}(ts))",
    ", ts, tb": f"row(x, {_FALLING.name}(ts), tb)",
}
#: by the aggregate that chooses the row
ROW_VALUES: dict[str, DuckForm] = {
    "first": _pick("first", "arg_min_null", _TIMES),
    "last": _pick("last", "arg_max_null", _TIMES),
    "last_row": _pick("last_row", "arg_max_null", _TIMES, "true"),
    "min": _pick("min", "arg_min_null", _LEAST),
    "max": _pick("max", "arg_max_null", _MOST),
}
