"""Functions that no stream may use."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions import FORBIDDEN, RANDOM
from penstock.sql.planning.refusals import refuse
from penstock.sql.statements import CreateStream


def check_functions(statement: CreateStream, tree: exp.Expr) -> None:
    """Refuse the first call in *tree* of what needs other rows than a stream has, or differs from
    run to run.
    """
    for call in tree.find_all(exp.Anonymous):
        name = str(call.this).lower()
        if name in FORBIDDEN:
            why, instead = FORBIDDEN[name]
            refuse(statement, "E_FORBIDDEN_FUNC", call, function=name, why=why, instead=instead)
        if name in RANDOM:
            refuse(
                statement,
                "E_FORBIDDEN_FUNC",
                call,
                function=name,
                why="each run would give another result",
                instead="crc32(…) of something that differs from row to row",
            )
