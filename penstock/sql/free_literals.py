"""Literals that are free: their values differ from run to run of one plan.

In a tree a free literal is a literal with a number noted at it, and some value that stands for all.
Printers write its number instead of the value. Whoever makes another literal of it passes the
number on.
"""

from __future__ import annotations

from sqlglot import exp

_NUMBER = "free_literal"


def mark_free(literal: exp.Expr, number: int) -> None:
    """Note that *literal* is the free one of a number, from 1."""
    literal.meta[_NUMBER] = number


def free_number(node: exp.Expr) -> int | None:
    """Return the number of a free literal; None: *node* is none."""
    number: int | None = node.meta.get(_NUMBER)
    return number


def pass_on(literal: exp.Expr, made: exp.Expr) -> exp.Expr:
    """Return *made*, which is written instead of *literal*: as free as that."""
    number = free_number(literal)
    if number is not None:
        mark_free(made, number)
    return made
