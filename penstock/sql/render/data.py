"""Text of statements that write, read and describe rows."""

from __future__ import annotations

from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.render.parts import name, parenthesis, render, value, words
from penstock.sql.words import quote_name, quote_string


def _part(part: st.InsertPart) -> str:
    using = None
    if part.stable is not None:
        names = parenthesis(map(quote_name, part.tag_names)) if part.tag_names is not None else None
        using = words(
            "USING", name(part.stable), names, "TAGS", parenthesis(map(value, part.tag_values))
        )
    columns = parenthesis(map(quote_name, part.columns)) if part.columns is not None else None
    return words(
        name(part.table),
        using,
        columns,
        "VALUES",
        " ".join(parenthesis(map(value, row)) for row in part.rows),
    )


@render.register
def _(s: st.Insert) -> str:
    return "INSERT INTO " + " ".join(map(_part, s.parts))


@render.register
def _(s: st.InsertSelect) -> str:
    columns = parenthesis(map(quote_name, s.columns)) if s.columns is not None else None
    return words("INSERT INTO", name(s.table), columns, render(s.select))


@render.register
def _(s: st.Delete) -> str:
    return words(
        "DELETE FROM", name(s.table), None if s.where is None else f"WHERE {to_sql(s.where)}"
    )


@render.register
def _(s: st.Query) -> str:
    return to_sql(s.query)


@render.register
def _(s: st.Describe) -> str:
    return f"DESCRIBE {name(s.table)}"


@render.register
def _(s: st.Show) -> str:
    what = (quote_name(s.database) + "." if s.database is not None else "") + s.what
    return words("SHOW", what, None if s.like is None else f"LIKE {quote_string(s.like)}")


@render.register
def _(s: st.ShowTags) -> str:
    return f"SHOW TAGS FROM {name(s.table)}"


@render.register
def _(s: st.ShowTableTags) -> str:
    columns = ", ".join(map(name, s.columns))
    return words("SHOW TABLE TAGS", columns or None, "FROM", name(s.stable))


@render.register
def _(s: st.ShowDistribution) -> str:
    return f"SHOW TABLE DISTRIBUTED {name(s.table)}"


@render.register
def _(s: st.ShowIndexes) -> str:
    return f"SHOW INDEXES FROM {name(s.table)}"


@render.register
def _(s: st.ShowCreate) -> str:
    return f"SHOW CREATE {s.kind.upper()} {name(s.name)}"
