"""Statements back to text, in one canonical form: `parse(render(x)) == [x]` for every statement."""

from penstock.sql.render import data, federation, principals, streams, tables
from penstock.sql.render.parts import name, render, value

__all__ = [
    "data",
    "federation",
    "name",
    "principals",
    "render",
    "streams",
    "tables",
    "value",
]
