"""A connection as the standard has it, over the client's own."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client import connection as client
from penstock.client.connection_options import ConnectionOptions
from penstock.dbapi.cursor import Cursor
from penstock.dbapi.errors import InterfaceError, standard_errors


class Connection:
    """Makes cursors. Use it in a `with`, or `close` it."""

    def __init__(self, penstock: client.Connection) -> None:
        #: the client's connection, which can do more: write frames, subscribe
        self.penstock = penstock
        self.closed = False

    def cursor(self) -> Cursor:
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: every statement has taken effect when it returns."""
        self._check()

    def rollback(self) -> None:
        """Do nothing: there are no transactions, and what was written stays."""
        self._check()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.penstock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")


def connect(
    url: str = "http://127.0.0.1:7700",
    *,
    user: str = "root",
    password: str = "",
    database: str | None = None,
    token: str | None = None,
    options: ConnectionOptions | None = None,
) -> Connection:
    """Connect to a gateway; arguments are those of `penstock.connect`.

    Raises:
        OperationalError: user or password is wrong, or nobody answers.
    """
    with standard_errors():
        return Connection(
            client.connect(
                url,
                user=user,
                password=password,
                database=database,
                token=token,
                options=options,
            )
        )
