"""What reading a message may raise, as one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from penstock.errors import PenstockError, SchemaError

#: what making columns of strange values may raise: anything, and the panic of a polars kernel,
#: which is no Exception
_FAILURES = (Exception, pl.exceptions.PanicException)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raise a SchemaError that says *what* for whatever is raised inside and is no PenstockError:
    the types of strangers are without number, and one that we cannot take costs its message alone.
    """
    try:
        yield
    except PenstockError:
        raise
    except _FAILURES as wrong:
        detail = f"{type(wrong).__name__}: {wrong}"[:200]
        raise SchemaError(what, code="E_MALFORMED", detail=detail) from None
