"""Types at the nodes of a bound tree, where they outlive copies of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from penstock.types import ColumnType

_KEY = "binding"
_ALIAS = "alias"


@dataclass(frozen=True)
class Binding:
    """The type of an expression; `precision` is the unit of its ticks where it is a TIMESTAMP."""

    type: ColumnType
    precision: str = "ms"

    @property
    def kind(self) -> str:
        return self.type.kind

    def __deepcopy__(self, memo: dict[int, Any]) -> Binding:
        """Return itself: trees are copied often, and it never changes."""
        return self


def note(node: exp.Expr, binding: Binding) -> None:
    """Say what *node* is bound to."""
    node.meta[_KEY] = binding


def binding_of(node: object) -> Binding | None:
    """Return what *node* is bound to; None where nobody has bound it."""
    found = node.meta.get(_KEY) if isinstance(node, exp.Expr) else None
    return found if isinstance(found, Binding) else None


def note_alias(column: exp.Column) -> None:
    """Say that *column* is a name that the select list gives to an expression."""
    column.meta[_ALIAS] = True


def is_alias(column: exp.Column) -> bool:
    """Tell if *column* is a name that the select list gives to an expression."""
    return bool(column.meta.get(_ALIAS))
