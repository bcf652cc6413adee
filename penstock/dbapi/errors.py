"""The standard's exceptions. Each one's cause is the PenstockError that it stands for, whose code,
place and hint are in its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import CatalogError, PenstockError, SchemaError, SqlError


class Warning(Exception):  # noqa: A001 - the standard's name
    """Something worth knowing; never raised."""


class Error(Exception):
    """Base of all errors."""


class InterfaceError(Error):
    """Wrong use of the module: a closed cursor, no result to fetch."""


class DatabaseError(Error):
    """The mesh refused or failed."""


class DataError(DatabaseError):
    """A value does not fit its column or placeholder."""


class OperationalError(DatabaseError):
    """Not the program's fault: no connection, no right, too much at once."""


class IntegrityError(DatabaseError):
    """Never raised: a row with the key of another replaces it."""


class InternalError(DatabaseError):
    """A fault of Penstock."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or names what there is not."""


class NotSupportedError(DatabaseError):
    """The standard has it, and Penstock has not."""


def kind_of(error: PenstockError) -> type[DatabaseError]:
    """Return the standard's kind of *error*."""
    if error.code == "E_PARAMETER" or isinstance(error, SchemaError):
        return DataError
    if isinstance(error, SqlError | CatalogError):
        return ProgrammingError
    return InternalError if error.code == "E_INTERNAL" else OperationalError


@contextmanager
def standard_errors() -> Iterator[None]:
    """Raise the standard's exceptions for Penstock's."""
    try:
        yield
    except PenstockError as error:
        raise kind_of(error)(str(error)) from error
