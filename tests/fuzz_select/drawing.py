"""What is known while one SELECT is drawn."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fuzz_select.draw_expressions import ExpressionDrawer
from tests.fuzz_select.tree import Column, Expression, Source


@dataclass
class Drawing:
    expressions: ExpressionDrawer
    source: Source
    #: rows of a group have different times
    in_time_order: bool = False
    in_window: bool = False
    #: columns must have exact values, because somebody compares them
    exact: bool = False

    @property
    def dice(self) -> random.Random:
        return self.expressions.dice


def is_tbname(node: Expression) -> bool:
    return isinstance(node, Column) and node.name == "tbname"
