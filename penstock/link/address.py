"""The address of a deployment's federation service, and the error for a link that is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import RemoteError

if TYPE_CHECKING:
    from penstock.outbound.reach import Reach

DEFAULT_PORT = 7707
DEFAULT_TLS_PORT = 7708


class LinkLost(RemoteError):
    """The link broke, or could not be made: another try may find it."""

    code = "E_LINK_LOST"


@dataclass(frozen=True)
class Address:
    """Host and port of a deployment's federation service, and the user to log in as. Never printed
    with its password.
    """

    host: str
    port: int
    user: str = "root"
    password: str = ""
    secure: bool = False
    #: certificates to trust besides the system's (a PEM file)
    ca_file: str | None = None
    #: where links may go; by default anywhere
    allowed: Reach | None = None

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({self.user}@{self.shown}{' secure' if self.secure else ''})"
