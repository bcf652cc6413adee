"""`python -m penstock.sql.reference`: write the tables of the SQL pages and of docs/errors.md that
are made from the code.

Owns the places between `<!-- NAME -->` and `<!-- /NAME -->` in those pages and leaves the text
around them alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from penstock.errors import ConfigError
from penstock.sql.functions import (
    AGGREGATES,
    FORBIDDEN,
    QUERY_FUNCTIONS,
    REGISTRY,
    SERIES,
    WINDOW_FUNCTIONS,
)
from penstock.sql.functions.query import GROUPS
from penstock.sql.planning.refusals import REFUSALS
from penstock.types import ColumnType

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("sql-functions.md", "sql-series.md", "sql-refusals.md", "errors.md")
_GROUPS = {
    "math": "Numbers",
    "text": "Text",
    "time": "Time",
    "convert": "Conversion",
    "conditional": "Choice",
}
_FIELD = re.compile(r"\{(\w+)\}")


def scalars() -> str:
    """Scalar functions by group; where a function has several names the others stand behind it."""
    parts = []
    for group, title in _GROUPS.items():
        rows = []
        for name, function in REGISTRY.items():
            if function.group == group and name == function.name:
                also = (
                    f" (also {', '.join(f'`{a}`' for a in function.aliases)})"
                    if function.aliases
                    else ""
                )
                returns = (
                    str(function.returns)
                    if isinstance(function.returns, ColumnType)
                    else "by arguments"
                )
                meaning = " ".join(function.doc.split())
                if function.streams_only:
                    meaning += f" Only in streams: {function.streams_only}."
                rows.append((f"`{function.signature}`{also}", returns, meaning))
        parts.append(f"**{title}**\n\n{_table(('function', 'gives', 'meaning'), sorted(rows))}")
    return "\n".join(parts)


def aggregates() -> str:
    """Aggregates and selection functions."""
    return _table(
        ("function", "meaning"), ((f"`{f.signature}`", f.doc) for f in AGGREGATES.values())
    )


def query_side() -> str:
    """Functions of the dialect that only a query has, with the reason."""
    rows = []
    for name, function in QUERY_FUNCTIONS.items():
        if name == function.name:
            also = "".join(f" (also `{a}`)" for a in function.aliases)
            rows.append((f"`{function.signature}`{also}", function.doc, function.reason))
    return _table(("function", "meaning", "not in a stream, because"), rows)


def over_functions() -> str:
    """Functions that are written with OVER, with the reason why a stream has none."""
    rows = ((f"`{f.signature}`", f.doc, f.reason) for f in WINDOW_FUNCTIONS.values())
    return _table(("function", "meaning", "not in a stream, because"), rows)


def series() -> str:
    """Functions of a row and the rows before it, with the reason why a stream has none of them."""
    rows = []
    for name, function in SERIES.items():
        if name == function.name:
            also = "".join(f" (also `{a}`)" for a in function.aliases)
            shown = (f"`{function.signature}`{also}", function.rows, function.gives, function.doc)
            rows.append((*shown, function.reason))
    return _table(("function", "rows", "gives", "value", "not in a stream, because"), rows)


def query_functions() -> str:
    """Functions that only a query has."""
    return _table(
        ("group", "functions"),
        ((group, ", ".join(f"`{n}`" for n in names)) for group, names in GROUPS.items()),
    )


def functions_refused() -> str:
    """Functions of TDengine that a stream cannot have."""
    return _table(
        ("function", "not in a stream, because", "instead"),
        ((f"`{n}`", why, way) for n, (why, way) in FORBIDDEN.items()),
    )


def refusals() -> str:
    """Return the table of what CREATE STREAM refuses."""
    rows = (
        (f"`{code}`", _readable(r.clause), _readable(r.reason), _readable(r.way_out))
        for code, r in REFUSALS.items()
    )
    return _table(("code", "clause", "reason", "way out"), rows)


def refusal_codes() -> str:
    """Codes of the refusals, for the page of all codes."""
    return ", ".join(f"`{code}`" for code in REFUSALS) + "\n"


SECTIONS: dict[str, Callable[[], str]] = {
    "scalars": scalars,
    "aggregates": aggregates,
    "query side": query_side,
    "over functions": over_functions,
    "query functions": query_functions,
    "series": series,
    "forbidden": functions_refused,
    "refusals": refusals,
    "refusal codes": refusal_codes,
}


def fill(page: str) -> str:
    """Return *page* with every section made anew.

    Raises:
        ConfigError: it opens a section that is not closed or not known.
    """
    opened = set(re.findall(r"<!-- ([a-z ]+) -->", page))
    for name in sorted(opened):
        if name not in SECTIONS or f"<!-- /{name} -->" not in page:
            raise ConfigError(
                f"section {name} is unknown or not closed",
                hint=f"sections are {', '.join(SECTIONS)}",
            )
        before, _, rest = page.partition(f"<!-- {name} -->")
        _, _, after = rest.partition(f"<!-- /{name} -->")
        page = f"{before}<!-- {name} -->\n{SECTIONS[name]()}<!-- /{name} -->{after}"
    return page


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def _readable(text: str) -> str:
    """A message's text with its fields in italics; a text that is one field says that the message
    has it.
    """
    return "(the message says)" if _FIELD.fullmatch(text) else _FIELD.sub(r"*\1*", text)


if __name__ == "__main__":
    for name in PAGES:
        path = DOCS / name
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
