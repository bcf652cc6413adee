"""Common mistakes in statements: what was meant, and what to write instead.

The grammar says where a text stops being the dialect. This package looks at that place once more,
only after the error, and knows what people bring along: typing errors, other dialects, shells and
word processors. A file holds the mistakes of one kind, each a function from a place to a better
error, or None.
"""

from penstock.sql.mistakes.explain import explain
from penstock.sql.mistakes.unclosed import unclosed

__all__ = ["explain", "unclosed"]
