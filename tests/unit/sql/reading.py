"""Parsers set on a text, and refusals as values, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from penstock.errors import SqlError
from penstock.sql.dialect import tokenize
from penstock.sql.parsers.cursor import TokenCursor
from penstock.sql.source import Source

Parser = TypeVar("Parser", bound=TokenCursor)


def reader(kind: type[Parser], text: str) -> Parser:
    """A parser of class *kind* at the first token of *text*."""
    return kind(tokenize(text), Source(text))


def read(kind: type[Parser], text: str, rule: Callable[[Parser], Any]) -> Any:
    """What *rule* makes of *text*, all of which it must read."""
    parser = reader(kind, text)
    found = rule(parser)
    parser.expect_end()
    return found


def refusal(call: Callable[[], Any]) -> SqlError:
    """The error that *call* ends with."""
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def refused(call: Callable[[], Any]) -> tuple[str, int, int, str]:
    """Code, line, column and message of the error that *call* ends with."""
    error = refusal(call)
    return error.code, error.line, error.column, error.message
