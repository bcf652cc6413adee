"""Texts that ask the same of different child tables: a wall of dashboards has a panel for each
device. They have one plan, for what is planned is a query of the supertable's columns.

This is no parser. What is taken for a name is only one if the query has a child table of that name,
and if no more of the plan depends on it than which rows are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.sql.functions.duckdb import Macro
from penstock.sql.query_texts import OTHER, QueryText
from services.store.plans import AskedText, KnownQuery
from services.store.resolve import ResolvedTable

#: (database, name) → what a query means by it
Find = Callable[[str, str], ResolvedTable | None]
#: names that are read as they are written: others are in quotes, or of upper case
_NAME = "[a-z_][a-z0-9_]*"
_FROM = re.compile(rf"\b(?i:from)\s+(?:(?P<home>{_NAME})\.)?(?P<name>{_NAME})\b(?![.(])")


@dataclass(frozen=True)
class AskedQuery:
    """A text as its plan is found by it: where `child` is set, `text` is what all texts have that
    ask the same of a child table of that supertable.

    Args:
        child: the child table, named once, behind the only FROM of a table.
        names: its database and name.
    """

    text: AskedText
    child: ResolvedTable | None = None
    names: tuple[str, str] | None = None

    @classmethod
    def of(cls, asked: AskedText, find: Find) -> AskedQuery:
        """Read a text as one of any child table, where it is one."""
        place = _find_name(asked.text)
        if place is None or not _is_alone(asked.text, place[1]["name"]):
            return cls(asked)
        piece, match = place
        names = match["home"] or asked.database, match["name"]
        found = find(*names)
        if found is None or found.child is None or found.table.kind != "stable":
            return cls(asked)
        between = list(asked.text.between)
        start, end = match.span("name")
        # no text has a NUL outside of quotes
        between[piece] = f"{between[piece][:start]}\0{found.table.id}{between[piece][end:]}"
        shared = replace(asked, text=replace(asked.text, between=tuple(between)))
        return cls(shared, found, names)

    def share(self, known: KnownQuery) -> KnownQuery | None:
        """Return the plan of the query as one that `fit` takes; None: it says more of the child
        table than which rows are read.
        """
        if self.names is None:
            return known
        name = self.names[1]
        plan = known.plan
        if known.tables.get(self.names) != self.child:
            return None
        # a function that polars computes knows places in the text, and those are others
        if not all(isinstance(helper, Macro) for helper in plan.helpers):
            return None
        if any(output.name.lower() == name for output in plan.outputs):
            return None
        if any(f"'{name}'" in text for text in plan.texts):
            return None
        return replace(known, child=self.names)

    def fit(self, known: KnownQuery) -> KnownQuery:
        """Return a plan that was made for one child table as the plan for this one."""
        first = known.child
        if self.child is None or self.names is None or first is None:
            return known
        readings = [
            replace(reading, found=self.child) if reading.found == known.tables[first] else reading
            for reading in known.plan.readings
        ]
        tables = {names: found for names, found in known.tables.items() if names != first}
        return replace(
            known,
            plan=replace(known.plan, readings=tuple(readings)),
            tables=tables | {self.names: self.child},
            child=self.names,
        )


def _find_name(text: QueryText) -> tuple[int, re.Match[str]] | None:
    """Return the piece of *text* with its only FROM of a table, and where that is."""
    found = [
        (number, match)
        for number, piece in enumerate(text.between)
        for match in _FROM.finditer(piece)
    ]
    return found[0] if len(found) == 1 else None


def _is_alone(text: QueryText, name: str) -> bool:
    """Tell if *name* is in a text once only, also in quotes."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    quoted = (
        literal for literal, kind in zip(text.literals, text.kinds, strict=True) if kind == OTHER
    )
    return sum(len(word.findall(piece)) for piece in (*text.between, *quoted)) == 1
