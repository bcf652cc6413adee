"""User-defined functions: Python over Arrow, each in a process of its own that can reach nothing
but its pipe.
"""

from penstock.udf.function import UserFunction

__all__ = ["UserFunction"]
