"""The SQL text layer: `parse` text into statements, `render` statements into canonical text."""

from penstock.sql.parser import parse, parse_one
from penstock.sql.render import render

__all__ = ["parse", "parse_one", "render"]
