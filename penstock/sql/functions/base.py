"""What a scalar function is, and the registry that holds them all.

An entry says its name, its parameters, its result type and how it is built in polars; its docstring
is the text of the function's line in docs/sql.md. Whoever compiles expressions checks a call here
once, so builders get what they asked for:

    number      numeric or BOOL, as it is        double    the same as Float64
    integer     an integer, as Int64             text      VARCHAR, NCHAR or a JSON value, as String
    time        TIMESTAMP or integer (ticks), or text in ISO form (parsed), as Int64 ticks
    bool        a condition                      unit      a duration literal such as 1h
    any         anything                         'literal' in front: must be written as a constant

A `?` behind makes a parameter optional, `+` says once or more (last only).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import polars as pl
from sqlglot import exp

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
class Scope:
    """What an expression is compiled against, and how to complain about a place in it."""

    precision: str
    timezone: str
    refuse: Callable[..., NoReturn] = field(compare=False)


@dataclass(frozen=True)
class Call:
    """One checked call: `args` are coerced to what the parameters ask for."""

    function: str
    args: tuple[Compiled, ...]
    scope: Scope
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

    @classmethod
    def parse(cls, text: str) -> Parameter:
        literal = text.startswith("literal ")
        name = text.removeprefix("literal ").rstrip("?+")
        return cls(name, literal, text.endswith("?"), text.endswith("+"))


ResultType = ColumnType | Callable[[Sequence[ColumnType], Call], ColumnType]


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    parameters: tuple[Parameter, ...]
    returns: ResultType
    build: Callable[[Call], pl.Expr]
    doc: str
    aliases: tuple[str, ...] = ()
    #: most arguments when the last parameter repeats
    at_most: int = 1 << 20

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
        shown = [
            f"[{p.kind}]" if p.optional else f"{p.kind}, …" if p.repeated else p.kind
            for p in self.parameters
        ]
        return f"{self.name}({', '.join(shown)})"


REGISTRY: dict[str, Function] = {}


def scalar(
    name: str,
    parameters: str,
    returns: ResultType,
    *,
    aliases: tuple[str, ...] = (),
    at_most: int = 1 << 20,
) -> Callable[[Callable[[Call], pl.Expr]], Callable[[Call], pl.Expr]]:
    """Register the decorated builder as scalar function *name*; its docstring documents it."""

    def register(build: Callable[[Call], pl.Expr]) -> Callable[[Call], pl.Expr]:
        parsed = tuple(Parameter.parse(p.strip()) for p in parameters.split(",") if p.strip())
        group = build.__module__.rsplit(".", 1)[-1]
        made = Function(
            name, group, parsed, returns, build, (build.__doc__ or "").strip(), aliases, at_most
        )
        for key in (name, *aliases):
            REGISTRY[key] = made
        return build

    return register


def same(types: Sequence[ColumnType], call: Call) -> ColumnType:
    """Result type: that of the first argument (BOOL counts as a number: INT)."""
    first = types[0]
    if first.kind == "BOOL":
        return ColumnType("INT")
    return DOUBLE if first == NULL else first


def common(types: Sequence[ColumnType]) -> ColumnType | None:
    """The type that can hold values of all *types*; None when there is none. NULL fits
    everywhere.
    """
    known = [t for t in types if t != NULL]
    if not known:
        return NULL
    if all(t == known[0] for t in known):
        return known[0]
    if all(t.kind in ("VARCHAR", "NCHAR", "JSON") for t in known):
        kind = "NCHAR" if any(t.kind == "NCHAR" for t in known) else "VARCHAR"
        return ColumnType(kind, length=max(text_length(t) for t in known))
    if all(t.kind == "VARBINARY" for t in known):
        return ColumnType("VARBINARY", length=max(t.length for t in known))
    if all(t.kind in ("TIMESTAMP", "BIGINT", "INT", "SMALLINT", "TINYINT") for t in known) and any(
        t == TIMESTAMP for t in known
    ):
        return TIMESTAMP
    if all(t.numeric or t.kind == "BOOL" for t in known):
        return _common_number([t for t in known if t.kind != "BOOL"])
    if any(t.kind in ("VARCHAR", "NCHAR", "JSON") for t in known) and not any(
        t.kind == "VARBINARY" for t in known
    ):
        return text_type(known, max(text_length(t) for t in known))
    return None


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _common_number(known: list[ColumnType]) -> ColumnType:
    if any(not t.integer or t.kind == "DECIMAL" for t in known):
        return DOUBLE
    unsigned = [t for t in known if "UNSIGNED" in t.kind]
    bits = max(_BITS[t.kind.removesuffix(" UNSIGNED")] for t in known)
    if len(unsigned) == len(known):
        return next(ColumnType(f"{k} UNSIGNED") for k, b in _BITS.items() if b == bits)
    if unsigned:
        bits = max(bits, 2 * max(_BITS[t.kind.removesuffix(" UNSIGNED")] for t in unsigned))
    return DOUBLE if bits > 64 else next(ColumnType(k) for k, b in _BITS.items() if b == bits)


def text_type(types: Sequence[ColumnType], length: int) -> ColumnType:
    """VARCHAR of *length*, or NCHAR when one of *types* is."""
    kind = "NCHAR" if any(t.kind == "NCHAR" for t in types) else "VARCHAR"
    return ColumnType(kind, length=max(1, min(length, MAX_TEXT)))


def text_length(kind: ColumnType) -> int:
    return kind.length if kind.sized else 32 if kind.kind != "JSON" else UNKNOWN_LENGTH


def typed(value: Compiled, kind: ColumnType) -> Compiled:
    """*value* seen as another type, without conversion."""
    return replace(value, type=kind)
