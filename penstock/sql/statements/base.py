"""Parts that all statements share: names, literal values, and their place in a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.plan import Duration
from penstock.sql.source import Source


@dataclass(frozen=True)
class Name:
    """`[database.]name`, spelled as written; `offset` is where it stands."""

    name: str
    database: str | None = None
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class RelativeTime:
    """`now + 1s`: `base` is `now`, `today`, a number of ticks or an ISO string; each step is a sign
    and a duration.
    """

    base: str | int
    steps: tuple[tuple[Literal[1, -1], Duration], ...] = ()
    #: whether `base` is a string literal (else the words now and today, or ticks).
    literal: bool = False


#: A literal. Numbers that a float cannot hold exactly are Decimal; times are converted when the
#: column is known.
Value = None | bool | int | float | Decimal | str | bytes | RelativeTime


@dataclass(frozen=True)
class Placeholder:
    """`?` (without a name) or `:name` at [start, end) of a text, where a parameter goes."""

    name: str
    start: int
    end: int

    @property
    def shown(self) -> str:
        """As it is written."""
        return f":{self.name}" if self.name else "?"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Base: where the statement stands in which text."""

    source: Source = field(default=Source(), compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)
    #: options that were accepted and do nothing here, as one sentence each.
    notices: tuple[str, ...] = field(default=(), compare=False, repr=False)
    #: where parameters go, in order; none are left in what `penstock.sql.parse` returns.
    placeholders: tuple[Placeholder, ...] = field(default=(), compare=False, repr=False)

    @property
    def text(self) -> str:
        """The statement as written, without the semicolon."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.locate(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.start)[1]

    def error(
        self,
        message: str,
        at: int | exp.Expr | Name | None = None,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
    ) -> SqlSemanticError:
        """A semantic error (to raise) that points at an offset, a name or an expression; else at
        the statement.
        """
        if isinstance(at, Name):
            return self.source.semantic_error(
                message, at.offset, len(at.name), code=code, detail=detail, hint=hint
            )
        return self.source.semantic_error(
            message, self.start if at is None else at, code=code, detail=detail, hint=hint
        )
