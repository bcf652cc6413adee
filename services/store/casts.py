"""CAST in a query: what `penstock.sql.functions.convert` does, as DuckDB computes it.

DuckDB converts by itself where it gives the same. Where a macro can make it the same it is one, and
everything else is computed by polars. A conversion never fails on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql import nodes
from penstock.sql.compile import compile_expression
from penstock.sql.functions.base import BIGINT, DOUBLE
from penstock.sql.functions.duckdb import DuckForm, macro, polars_expression
from penstock.sql.relational import Binding, binding_of
from penstock.types import TIME_LIMITS, ColumnType
from services.store.binding import Context
from services.store.times import TICKS

#: functions from a time to ticks, and back
MOMENTS = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_REALS = ("FLOAT", "DOUBLE", "DECIMAL")
#: letters of the longest whole number, and of false
_LONGEST = {"BOOL": 5, "BIGINT": 20, "BIGINT UNSIGNED": 20}

#: a DOUBLE without its fraction, at the limits of BIGINT where it is beyond; NULL for NaN
_whole = macro(
    "whole",
    "(x) AS list_transform([x], lambda v: CASE WHEN isnan(v) THEN NULL"
    " WHEN v >= 9223372036854774784 THEN 9223372036854774784"
    " WHEN v <= -9223372036854775807 THEN -9223372036854775807 - 1"
    " ELSE TRY_CAST(trunc(v) AS BIGINT) END)[1]",
)
#: the lowest bits of a BIGINT, as a number without sign and with one
_low_bits = macro("low_bits", "(v, mask) AS v & mask")
_low_bits_signed = macro("low_bits_signed", "(v, half) AS xor(v & (2 * half - 1), half) - half")


def _moment_of(precision: str) -> DuckForm:
    """Return the form of a time of ticks; NULL where they are none."""
    low, high = TIME_LIMITS[precision]
    known = f"list_transform([t], lambda v: CASE WHEN v BETWEEN {low} AND {high} THEN v END)[1]"
    return macro(f"moment_{precision}", f"(t) AS {MOMENTS[precision]}({known})")


_moments = {precision: _moment_of(precision) for precision in TIME_LIMITS}


@dataclass(frozen=True)
class _Cast:
    """A value that differs from row to row, and the type that it gets."""

    value: exp.Expr
    given: ColumnType
    to: ColumnType
    #: its times have the unit of the result's
    context: Context


def rewrite_cast(node: exp.Cast, context: Context) -> exp.Expr:
    """Return a user's CAST as DuckDB computes it."""
    value = node.this.unnest()
    given = binding_of(value)
    made = binding_of(node)
    assert given is not None and made is not None  # the tree is bound
    if given.kind == "NULL":
        return as_type(exp.Null(), made)
    if is_constant(value):
        return _write(constant(node, made.precision, context.timezone), made)
    return convert_to(value, given, made, context)


def convert_to(value: exp.Expr, given: Binding, made: Binding, context: Context) -> exp.Expr:
    """Return a value that differs from row to row as another type; it is not NULL's."""
    if given == made:
        return as_type(value, made, tries=True)
    if given.kind == "TIMESTAMP" and made.kind != "TIMESTAMP":
        value = exp.Anonymous(this=TICKS[given.precision], expressions=[value])
        given = Binding(BIGINT, given.precision)
    elif not isinstance(value, exp.Column) and given.type.numeric:
        # DuckDB's own type may be another: its sums are HUGEINT
        value = as_type(value, given, tries=True)
    context = replace(context, precision=made.precision)
    return _FORMS[_group(made.type)](_Cast(value, given.type, made.type, context))


def is_constant(node: exp.Expr) -> bool:
    """Tell if *node* is a number, a text or a truth as it is written."""
    if isinstance(node, exp.Neg):
        node = node.this.unnest()
        return isinstance(node, exp.Literal) and not node.is_string
    return isinstance(node, exp.Literal | exp.Boolean)


def constant(node: exp.Cast, precision: str, timezone: str) -> Any:
    """Return the value of a CAST of a constant; a time's are ticks."""
    return compile_expression(node, {}, precision=precision, timezone=timezone).value


def as_type(node: exp.Expr, binding: Binding, *, tries: bool = False) -> exp.Expr:
    """Return *node* as DuckDB's own cast to a type. *tries*: what does not fit is NULL."""
    name = duck_type(binding.kind, binding.precision, str(binding.type))
    kind = exp.TryCast if tries else exp.Cast
    return kind(this=node, to=exp.DataType.build(name, dialect="duckdb", udt=True))


def _write(value: Any, made: Binding) -> exp.Expr:
    """Return a constant of a type as DuckDB reads it."""
    if isinstance(value, bytes):
        return nodes.BinaryLiteral(this=value.hex())
    if made.kind == "TIMESTAMP" and value is not None:
        low, high = TIME_LIMITS[made.precision]
        moment = _number(value) if low <= value <= high else exp.Null()
        return exp.Anonymous(this=MOMENTS[made.precision], expressions=[moment])
    if value is None:
        return as_type(exp.Null(), made)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str | Decimal):
        # a text of digits is read exactly
        return as_type(exp.Literal.string(str(value)), made)
    return as_type(_number(value), made)


def _number(value: float) -> exp.Expr:
    size = exp.Literal.number(repr(abs(value)))
    return exp.Neg(this=size) if value < 0 else size


# ---------------------------------------------------------------- by the type that is made


def _by_polars(cast: _Cast) -> exp.Expr:
    """Return the cast as a stream computes it."""
    to = nodes.TypeName(this=str(cast.to))
    make = partial(_cast_node, to)
    return polars_expression("cast", make, cast.value, cast.given, cast.context)


def _cast_node(to: exp.Expr, column: exp.Column) -> exp.Expr:
    return exp.Cast(this=column, to=to)


def _native(cast: _Cast) -> exp.Expr:
    return as_type(cast.value, Binding(cast.to, cast.context.precision), tries=cast.to.integer)


def _to_bool(cast: _Cast) -> exp.Expr:
    if not cast.given.numeric:
        return _by_polars(cast)
    return exp.Paren(this=exp.NEQ(this=cast.value, expression=exp.Literal.number(0)))


def _to_real(cast: _Cast) -> exp.Expr:
    if cast.to.kind == "DECIMAL" or not (cast.given.numeric or cast.given.kind == "BOOL"):
        return _by_polars(cast)
    too_large = cast.to.kind == "FLOAT" and cast.given.kind in _REALS
    return _by_polars(cast) if too_large else _native(cast)


def _to_time(cast: _Cast) -> exp.Expr:
    if cast.given.kind == "TIMESTAMP":
        return _native(cast)
    if cast.given.text:
        return _by_polars(cast)
    return moment_within_bounds(_bigint(cast), cast.context)


def moment_within_bounds(ticks: exp.Expr, context: Context) -> exp.Expr:
    """Return ticks as a time of the context's precision; NULL where they are none."""
    return _moments[context.precision]([ticks], context)


def _to_integer(cast: _Cast) -> exp.Expr:
    large = "BIGINT UNSIGNED" in (cast.given.kind, cast.to.kind)
    if cast.given.kind == "BOOL" or _holds(cast.to, cast.given):
        return _native(cast)
    if large or not cast.given.numeric:
        return _by_polars(cast)
    bits = _BITS[cast.to.kind.removesuffix(" UNSIGNED")]
    whole = _bigint(cast)
    if bits < 64:
        signed = "UNSIGNED" not in cast.to.kind
        limit = exp.Literal.number(2 ** (bits - 1) if signed else 2**bits - 1)
        whole = (_low_bits_signed if signed else _low_bits)([whole, limit], cast.context)
    return as_type(whole, Binding(cast.to))


def _bigint(cast: _Cast) -> exp.Expr:
    """Return a number as BIGINT, without its fraction."""
    if cast.given.kind not in _REALS:
        return as_type(cast.value, Binding(BIGINT), tries=True)
    return _whole([as_type(cast.value, Binding(DOUBLE))], cast.context)


def _holds(to: ColumnType, given: ColumnType) -> bool:
    """Tell if one integer type has every value of another."""
    if not given.integer:
        return False
    unsigned = "UNSIGNED" in given.kind
    bits = _BITS[to.kind.removesuffix(" UNSIGNED")]
    needed = _BITS[given.kind.removesuffix(" UNSIGNED")]
    if unsigned == ("UNSIGNED" in to.kind):
        return bits >= needed
    return unsigned and bits > needed


def _to_text(cast: _Cast) -> exp.Expr:
    if cast.given.integer or cast.given.kind == "BOOL":
        longest = _LONGEST.get(cast.given.kind, _LONGEST["BIGINT"])
        return _cut(_native(cast), cast.to.length) if cast.to.length < longest else _native(cast)
    if not cast.given.sized or not cast.given.text:
        return _by_polars(cast)
    fits = isinstance(cast.value, exp.Column) and cast.given.length <= cast.to.length
    if fits and cast.given.kind in (cast.to.kind, "VARCHAR"):
        return cast.value
    # NCHAR counts characters, which DuckDB does, too
    return _cut(cast.value, cast.to.length) if cast.to.kind == "NCHAR" else _by_polars(cast)


def _cut(text: exp.Expr, length: int) -> exp.Expr:
    return exp.Anonymous(this="left", expressions=[text, exp.Literal.number(length)])


def _group(kind: ColumnType) -> str:
    if kind.integer:
        return "integer"
    return "text" if kind.text else kind.kind


_FORMS: dict[str, Callable[[_Cast], exp.Expr]] = {
    "integer": _to_integer,
    "text": _to_text,
    "BOOL": _to_bool,
    "FLOAT": _to_real,
    "DOUBLE": _to_real,
    "DECIMAL": _to_real,
    "TIMESTAMP": _to_time,
    "VARBINARY": _by_polars,
}
