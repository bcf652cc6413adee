"""An external stream made of a followed table: SQL, windows and views read it from then on."""

from __future__ import annotations

from typing import Protocol

from penstock.errors import RemoteError
from penstock.link import external
from penstock.link.mirror_content import MirrorContent
from penstock.link.remote_request import RemoteRequest, RemoteTarget


class Executes(Protocol):
    """A connection to a deployment, as far as a table needs it."""

    def execute(self, sql: str, /) -> object:
        """Run a statement. Raises PenstockError."""


def make_external(
    connection: Executes,
    name: str,
    target: RemoteTarget,
    request: RemoteRequest,
    content: MirrorContent,
) -> None:
    """Make external stream *name* of the table at *target*. Raises PenstockError."""
    if request.options.where:
        raise RemoteError(
            "an external stream has no filter of its own",
            hint="write the condition behind WHERE, where it is read",
        )
    description = content.description
    if not description.name:
        raise RemoteError(f"nobody has seen {target.shown} yet", hint="wait until it is live")
    columns = None
    if request.options.columns or request.definition is not None:
        columns = request.columns(description)
    connection.execute(external.statement(name, target.replicas, description, columns))
