"""The kinds of mutation: cosmic-ray's operators that make likely mistakes, and one of our own.

cosmic-ray turns a `+` into each of eleven other operators; most of these fail in any test. Here
each place gets the few mutants that somebody might have written by mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Keyword
from parso.tree import NodeOrLeaf

Position = tuple[int, int]

_ARITHMETIC = (
    "Add_Sub",
    "Sub_Add",
    "Mul_FloorDiv",
    "FloorDiv_Mul",
    "Div_Mul",
    "Mod_Mul",
    "BitOr_BitAnd",
    "BitAnd_BitOr",
    "LShift_RShift",
    "RShift_LShift",
)
_COMPARISONS = (
    "Eq_NotEq",
    "NotEq_Eq",
    "Lt_LtE",
    "Lt_GtE",
    "LtE_Lt",
    "LtE_Gt",
    "Gt_GtE",
    "Gt_LtE",
    "GtE_Gt",
    "GtE_Lt",
    "Is_IsNot",
    "IsNot_Is",
)
_OTHERS = (
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
)


class DropStatement(Operator):
    """Put `pass` for a statement that is there for its effect: a call, an assignment to an
    attribute or an item, `raise`, `del`. What a constructor sets is left alone: the first use of
    the object would fail.
    """

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[Position, Position]]:
        """Yield the place of *node* when it is such a statement."""
        if _has_an_effect(node) and not _in_a_constructor(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Return `pass`, as far indented as the statement."""
        return Keyword("pass", node.start_pos, prefix=node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> Sequence[Example]:
        """Return what cosmic-ray asks each operator for: code before and after."""
        return (Example("rows.clear()", "pass"), Example("raise Lost()", "pass"))


def _has_an_effect(node: NodeOrLeaf) -> bool:
    if node.parent is None or node.parent.type != "simple_stmt":
        return False
    if node.type == "expr_stmt":
        return node.children[0].type == "atom_expr"
    if node.type == "atom_expr":
        return node.get_last_leaf() == ")"
    return node.type in ("raise_stmt", "del_stmt")


def _in_a_constructor(node: NodeOrLeaf) -> bool:
    function = node.search_ancestor("funcdef")
    return function is not None and function.name.value == "__init__"


@cache
def operators() -> dict[str, Operator]:
    """Return all operators in use by their names."""
    names = (
        *(f"ReplaceBinaryOperator_{change}" for change in _ARITHMETIC),
        *(f"ReplaceComparisonOperator_{change}" for change in _COMPARISONS),
        *_OTHERS,
    )
    found = {name: get_operator(f"core/{name}")() for name in names}
    return {**found, DropStatement.__name__: DropStatement()}
