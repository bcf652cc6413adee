"""Scalar functions, and the registry that holds them all.

An entry says its name, its parameters, its result type and how it is built in polars; its docstring
is the text of the function's line in docs/sql-functions.md. The compiler checks a call once, so
builders get what they asked for:

    number      numeric or BOOL, as it is        double    the same as Float64
    integer     an integer, as Int64             text      VARCHAR, NCHAR or a JSON value, as String
    time        TIMESTAMP or integer (ticks), or text in ISO form (parsed), as Int64 ticks
    bool        a condition                      unit      a duration literal such as 1h
    any         anything                         'literal' in front: must be written as a constant

A `?` behind makes a parameter optional, `+` says once or more (last only).

The DuckDB side stands beside the polars side. It is a form of `duckdb.py`, or `POLARS` where polars
computes the function in queries, too. A function without one says why it is of streams only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import polars as pl
from sqlglot import exp

from penstock.errors import ConfigError
from penstock.sql.functions.duckdb import DuckForm, polars_call
from penstock.sql.plan import Duration
from penstock.types import ColumnType

NULL = ColumnType("NULL")
BOOL = ColumnType("BOOL")
BIGINT = ColumnType("BIGINT")
DOUBLE = ColumnType("DOUBLE")
TIMESTAMP = ColumnType("TIMESTAMP")
#: longest VARCHAR, and what is taken where the length of a computed text is not known
MAX_TEXT = 65517
UNKNOWN_LENGTH = 4096
#: most arguments of a function whose last parameter repeats without end
NO_LIMIT = 1 << 20


@dataclass(frozen=True)
class Compiled:
    """An expression over a frame and the type of its values.

    `value` is set for literals, `duration` for `1h` and the like, `raw` is *expr* before infinite
    values became NULL.
    """

    expr: pl.Expr
    type: ColumnType
    literal: bool = False
    value: Any = None
    duration: Duration | None = None
    raw: pl.Expr | None = None


@dataclass(frozen=True)
class CompileScope:
    """Settings that an expression is compiled with, and how to complain about a place in it."""

    precision: str
    timezone: str
    refuse: Callable[..., NoReturn] = field(compare=False)


@dataclass(frozen=True)
class FunctionCall:
    """One checked call: `args` are coerced to what the parameters ask for."""

    function: str
    args: tuple[Compiled, ...]
    scope: CompileScope
    node: exp.Expression

    def __getitem__(self, index: int) -> pl.Expr:
        return self.args[index].expr

    def __len__(self) -> int:
        return len(self.args)

    def value(self, index: int, default: Any = None) -> Any:
        """Constant argument *index*, or *default* when it is left out."""
        return self.args[index].value if index < len(self.args) else default

    def refuse(self, message: str, *, hint: str = "") -> NoReturn:
        self.scope.refuse(self.node, message, code="E_FUNCTION_ARGUMENT", hint=hint)


@dataclass(frozen=True)
class Parameter:
    kind: str
    literal: bool
    optional: bool
    repeated: bool

    @property
    def shown(self) -> str:
        """As documentation shows it."""
        if self.optional:
            return f"[{self.kind}]"
        return f"{self.kind}, …" if self.repeated else self.kind

    @classmethod
    def parse(cls, text: str) -> Parameter:
        literal = text.startswith("literal ")
        name = text.removeprefix("literal ").rstrip("?+")
        return cls(name, literal, text.endswith("?"), text.endswith("+"))


@dataclass(frozen=True)
class _Polars:
    """The DuckDB side of a function that polars computes in queries, too."""


POLARS = _Polars()
ResultType = ColumnType | Callable[[Sequence[ColumnType], FunctionCall], ColumnType]


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    parameters: tuple[Parameter, ...]
    returns: ResultType
    build: Callable[[FunctionCall], pl.Expr]
    doc: str
    aliases: tuple[str, ...] = ()
    #: most arguments when the last parameter repeats
    at_most: int = NO_LIMIT
    #: how a query has it; None: not at all, for the reason in `streams_only`
    duckdb: DuckForm | None = None
    streams_only: str = ""
    #: with NULL in, NULL comes out, in any argument
    strict: bool = True

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments."""
        least = sum(1 for p in self.parameters if not p.optional)
        most = (
            self.at_most
            if self.parameters and self.parameters[-1].repeated
            else len(self.parameters)
        )
        return least, most

    @property
    def signature(self) -> str:
        """As documentation shows it: `round(number, [digits])`."""
        return f"{self.name}({', '.join(p.shown for p in self.parameters)})"


REGISTRY: dict[str, Function] = {}


def scalar(
    name: str,
    parameters: str,
    returns: ResultType,
    *,
    duckdb: DuckForm | _Polars | None = None,
    streams_only: str = "",
    strict: bool = True,
    aliases: tuple[str, ...] = (),
    at_most: int = NO_LIMIT,
) -> Callable[[Callable[[FunctionCall], pl.Expr]], Callable[[FunctionCall], pl.Expr]]:
    """Register the decorated builder as scalar function *name*; its docstring documents it.

    Raises:
        ConfigError: it has no DuckDB side and no reason for that, or both.
    """
    if (duckdb is None) == (not streams_only):
        raise ConfigError(
            f"function {name} needs a DuckDB side, or the reason why it has none",
            hint="give duckdb=… or streams_only='…'",
        )
    parsed = tuple(Parameter.parse(p.strip()) for p in parameters.split(",") if p.strip())
    if isinstance(duckdb, _Polars):
        constants = tuple(i for i, p in enumerate(parsed) if p.literal or p.kind == "unit")
        duckdb = polars_call(name, constants)

    def register(build: Callable[[FunctionCall], pl.Expr]) -> Callable[[FunctionCall], pl.Expr]:
        made = Function(
            name=name,
            group=build.__module__.rsplit(".", 1)[-1],
            parameters=parsed,
            returns=returns,
            build=build,
            doc=(build.__doc__ or "").strip(),
            aliases=aliases,
            at_most=at_most,
            duckdb=duckdb,
            streams_only=streams_only,
            strict=strict,
        )
        for key in (name, *aliases):
            REGISTRY[key] = made
        return build

    return register


def same(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    """Result type: that of the first argument (BOOL counts as a number: INT)."""
    first = types[0]
    if first.kind == "BOOL":
        return ColumnType("INT")
    return DOUBLE if first == NULL else first


def common(types: Sequence[ColumnType]) -> ColumnType | None:
    """Return the type that can hold values of all *types*, or None when there is none. NULL fits
    everywhere.
    """
    known = [t for t in types if t != NULL]
    if not known:
        return NULL
    if len(set(known)) == 1:
        return known[0]
    kinds = {t.kind for t in known}
    if "VARBINARY" in kinds:
        return _common_binary(known)
    if kinds & _TEXT_KINDS:
        return _common_text(known)
    if "TIMESTAMP" in kinds:
        return TIMESTAMP if kinds <= _TIME_KINDS else None
    return _common_number(known)


_TEXT_KINDS = {"VARCHAR", "NCHAR", "JSON"}
#: kinds that meet a TIMESTAMP as ticks
_TIME_KINDS = {"TIMESTAMP", "BIGINT", "INT", "SMALLINT", "TINYINT"}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_BY_BITS = {bits: kind for kind, bits in _BITS.items()}


def _common_text(known: list[ColumnType]) -> ColumnType:
    length = max(map(text_length, known))
    if any(not t.text for t in known):
        return text_type(known, length)
    kind = "NCHAR" if any(t.kind == "NCHAR" for t in known) else "VARCHAR"
    return ColumnType(kind, length=length)


def _common_binary(known: list[ColumnType]) -> ColumnType | None:
    if any(t.kind != "VARBINARY" for t in known):
        return None
    return ColumnType("VARBINARY", length=max(t.length for t in known))


def _common_number(types: list[ColumnType]) -> ColumnType:
    known = [t for t in types if t.kind != "BOOL"]
    if not all(t.integer for t in known):
        return DOUBLE
    unsigned = [t for t in known if "UNSIGNED" in t.kind]
    bits = max(map(_bits, known))
    if len(unsigned) == len(known):
        return ColumnType(f"{_BY_BITS[bits]} UNSIGNED")
    if unsigned:
        bits = max(bits, 2 * max(map(_bits, unsigned)))
    return DOUBLE if bits > 64 else ColumnType(_BY_BITS[bits])


def _bits(kind: ColumnType) -> int:
    return _BITS[kind.kind.removesuffix(" UNSIGNED")]


def text_type(types: Sequence[ColumnType], length: int) -> ColumnType:
    """VARCHAR of *length*, or NCHAR when one of *types* is."""
    kind = "NCHAR" if any(t.kind == "NCHAR" for t in types) else "VARCHAR"
    return ColumnType(kind, length=max(1, min(length, MAX_TEXT)))


def text_length(kind: ColumnType) -> int:
    """Return how long a value of *kind* may be as text."""
    if kind.sized:
        return kind.length
    return UNKNOWN_LENGTH if kind.kind == "JSON" else 32
