"""Functions of a SELECT that choose rows of each partition. In an expression, a call is the value
of its first argument in a chosen row.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.functions.aggregate import FORBIDDEN
from penstock.sql.functions.duckdb import Arguments, QueryScope
from penstock.sql.functions.query_function import QueryFunction

_MOST = 100
_MOST_SAMPLES = 1000


def _value(args: Arguments, _: QueryScope) -> exp.Expr:
    return args[0]


@dataclass(frozen=True)
class RowChooser(QueryFunction):
    """A function that chooses rows."""

    #: what the first argument must be: number or any
    kind: str = "any"
    #: lowest and highest value of each constant behind the first argument
    limits: tuple[tuple[int, int], ...] = ()
    #: whether it cannot do without the time of each row
    by_time: bool = False

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments that the DuckDB side is given: the binder adds the time."""
        return self.least, self.at_most + 1


def _chooser(
    name: str,
    signature: str,
    doc: str,
    limits: tuple[tuple[int, int], ...],
    *,
    kind: str = "any",
    optional: int = 0,
    by_time: bool = False,
) -> RowChooser:
    return RowChooser(
        name,
        signature,
        doc,
        _value,
        FORBIDDEN[name][0],
        least=1 + len(limits) - optional,
        at_most=1 + len(limits),
        kind=kind,
        limits=limits,
        by_time=by_time,
    )


#: by name
ROW_CHOOSERS: dict[str, RowChooser] = {
    function.name: function
    for function in (
        _chooser(
            "top",
            "top(number, k)",
            f"The k largest values (1 to {_MOST}), each with its row; of equal ones the earliest.",
            ((1, _MOST),),
            kind="number",
        ),
        _chooser(
            "bottom",
            "bottom(number, k)",
            f"The k smallest values (1 to {_MOST}), each with its row; of equal ones the earliest.",
            ((1, _MOST),),
            kind="number",
        ),
        _chooser(
            "unique",
            "unique(any)",
            "Each value once, NULL too, with the earliest row that has it.",
            (),
            by_time=True,
        ),
        _chooser(
            "tail",
            "tail(any, k, [skipped])",
            f"The last k rows (1 to {_MOST}) in time before the last skipped ones (0 to {_MOST}),"
            " with NULL.",
            ((1, _MOST), (0, _MOST)),
            optional=1,
            by_time=True,
        ),
        _chooser(
            "sample",
            "sample(any, k)",
            f"k rows (1 to {_MOST_SAMPLES}) with a value, chosen at random.",
            ((1, _MOST_SAMPLES),),
        ),
    )
}
