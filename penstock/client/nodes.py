"""The nodes of stream tables as a client sees them: where they are, who leads, and asking them.

What is known of addresses stays known, so clients find the nodes without gateway and Redis once
they have seen them. A node that does not answer in time is passed over; nobody waits for a process
that sleeps.
"""

from __future__ import annotations

import json
import random
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from urllib3.exceptions import HTTPError
from websockets.sync.client import ClientConnection, connect

from penstock.client.http import Http
from penstock.client.line import Line
from penstock.errors import BusError, CatalogError, PenstockError, RemoteError
from penstock.remote_errors import error_of

if TYPE_CHECKING:
    import tenacity

#: seconds that a node may take to say who leads
ASK_SECONDS = 0.6


@dataclass(frozen=True)
class Leader:
    """The leader of a group; `url` is "" while nobody has said where that node is."""

    node: str
    url: str
    epoch: int


class Nodes:
    """Safe to use from several threads."""

    def __init__(
        self,
        fetch: Callable[[], dict[str, Any]],
        authorization: str,
        *,
        among_nodes: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """
        Args:
            fetch: asks the gateway for groups, nodes and tables.
            authorization: header for the nodes.
            among_nodes: use the addresses that nodes have for each other, not those for clients.
            context: checks the certificates of nodes that speak TLS; by default the machine's.
        """
        self._fetch = fetch
        self.authorization = authorization
        self._among_nodes = among_nodes
        self._lock = threading.Lock()
        self._urls: dict[str, str] = {}
        self._groups: list[dict[str, Any]] = []
        self._tables: dict[str, int] = {}
        self._context = context
        self._http = Http({"Authorization": authorization}, context)

    def close(self) -> None:
        self._http.close()

    # ---------------------------------------------------------------- what there is

    def refresh(self) -> dict[str, Any]:
        """Ask the gateway. Raises PenstockError."""
        found = self._fetch()
        with self._lock:
            self._urls |= {n: u for n, u in found["nodes"].items() if u}
            self._groups = found["groups"]
            self._tables = {k.lower(): v for k, v in found["tables"].items()}
        return found

    def groups(self) -> list[dict[str, Any]]:
        """Each group's `id`, `alias`, `members`, `learners`."""
        if not self._groups:
            self.refresh()
        return self._groups

    def group_of(self, table: str) -> int:
        """The group that keeps a stream table. Raises CatalogError."""
        if table.lower() not in self._tables:
            self.refresh()
        found = self._tables.get(table.lower())
        if found is None:
            raise CatalogError(
                f"{table} is no stream table of a group",
                code="E_NO_TABLE",
                hint="client.ha.create makes one",
            )
        return found

    def is_gone(self, table: str) -> bool:
        """Whether the gateway says that there is no such stream table, and not only a node that has
        just started.
        """
        try:
            self.refresh()
            self.group_of(table)
        except PenstockError as answer:
            return answer.code == "E_NO_TABLE"
        return False

    def group(self, wanted: int | str) -> dict[str, Any]:
        """A group by id or alias. Raises CatalogError."""
        for group in self.groups():
            if str(group["id"]) == str(wanted) or group["alias"] and group["alias"] == wanted:
                return group
        known = ", ".join(str(g["id"]) for g in self._groups)
        raise CatalogError(
            f"there is no group {wanted}", code="E_NO_GROUP", hint=f"groups are {known}"
        )

    def url(self, node: str) -> str:
        """Where the node called *node* is; `host:port` and URLs are taken as they are. Raises
        RemoteError.
        """
        if node.startswith("http"):
            return node.rstrip("/")
        if node not in self._urls:
            self.refresh()
        found = self._urls.get(node)
        if found is None:
            raise RemoteError(
                f"node {node} is not known",
                code="E_NO_NODE",
                hint="client.ha.groups() lists the nodes",
            )
        return found

    def members(self, group: int) -> list[str]:
        """Addresses of the nodes that have copies, those not known left out."""
        nodes = self.group(group)
        return [self._urls[n] for n in (*nodes["members"], *nodes["learners"]) if n in self._urls]

    # ---------------------------------------------------------------- asking

    def line(self, url: str, path: str, *, max_size: int) -> Line:
        """A WebSocket to the node at *url* that its user reads. Raises OSError, TimeoutError,
        WebSocketException.
        """
        return Line(url + path, self.authorization, context=self._context, max_size=max_size)

    def dial(self, url: str, path: str, **options: Any) -> ClientConnection:
        """A WebSocket to the node at *url*. Raises OSError, WebSocketException."""
        return connect(
            url.replace("http", "ws", 1) + path,
            additional_headers={"Authorization": self.authorization},
            compression=None,
            open_timeout=1.0,
            close_timeout=0.2,
            ping_interval=None,
            legacy=True,
            ssl=self._context if url.startswith("https") else None,
            **options,
        )

    def ask(
        self,
        url: str,
        path: str,
        body: dict[str, Any] | bytes | None = None,
        *,
        seconds: float = 10.0,
    ) -> Any:
        """GET without a body, else POST; the answer's JSON (bytes for anything else). Raises
        PenstockError.
        """
        try:
            if body is None:
                answer = self._http.request("GET", url + path, timeout=seconds)
            else:
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                answer = self._http.request("POST", url + path, timeout=seconds, body=content)
        except HTTPError as broken:
            raise RemoteError(
                f"the node at {url} cannot be reached",
                code="E_NODE_DOWN",
                detail=type(broken).__name__,
            ) from broken
        if answer.headers.get("content-type", "").startswith("application/json"):
            said = answer.json()
            if not answer.is_success:
                raise error_of(said["error"], answer.status)
            return said
        if not answer.is_success:
            raise RemoteError(f"the node at {url} answered with status {answer.status}")
        return answer.content

    def ask_any(
        self, urls: Iterable[str], path: str, body: dict[str, Any] | bytes | None = None
    ) -> Any:
        """The answer of the first node that gives one. Raises PenstockError: the last one's."""
        failed: PenstockError = RemoteError(
            "no node is known", code="E_NODE_DOWN", hint="`penstock up --nodes 3` starts some"
        )
        for url in urls:
            try:
                return self.ask(url, path, body, seconds=3.0)
            except PenstockError as error:
                if error.code not in ("E_NODE_DOWN", "E_NO_TABLE"):
                    raise
                failed = error
        raise failed

    def leader(self, group: int, *, avoid: str = "", of_all: bool = False) -> Leader | None:
        """Find who leads, as the first node knows that names one; None when none does.

        Args:
            avoid: where nobody is asked, and who is not believed to lead while another is named.
            of_all: ask every node and take the newest epoch. A node that has not heard of a change
                yet names who led before.
        """
        urls = self.members(group)
        if not urls:
            self.refresh()
            urls = self.members(group)
        random.shuffle(urls)
        best: Leader | None = None
        for url in sorted(urls, key=lambda u: u == avoid):
            if url == avoid and len(urls) > 1:
                continue
            try:
                answer = self.ask(url, "/v1/node", seconds=ASK_SECONDS)
            except PenstockError:
                continue
            named = self._learn(answer["groups"], group)
            if named is not None and (best is None or named.epoch > best.epoch):
                best = named
            if best is not None and best.url != avoid and not of_all:
                return best
        return best

    def _learn(self, groups: Sequence[Mapping[str, Any]], wanted: int) -> Leader | None:
        """Take addresses from what a node says of its groups. Return the newest leader that it
        names of the *wanted* one.
        """
        best: Leader | None = None
        key = "urls" if self._among_nodes else "client_urls"
        for group in groups:
            with self._lock:
                self._urls |= {node: url for node, url in group[key].items() if url}
            name = group["leader"]
            if group["id"] != wanted or not name:
                continue
            if best is None or group["epoch"] > best.epoch:
                best = Leader(name, self._urls.get(name, ""), group["epoch"])
        return best


def outcome_unknown(rows: int, detail: str) -> BusError:
    """The error of writes that got no answer in all the time there was."""
    hint = "they may or may not be written; a key column or reading the table's end tells"
    return BusError(f"{rows} writes have no answer", detail=detail, hint=hint)


def patience_is_over(state: tenacity.RetryCallState) -> NoReturn:
    """What tenacity does at the end of attempts of one write: the same as an error. Raises
    BusError.
    """
    last = state.outcome.exception() if state.outcome is not None else None
    raise outcome_unknown(
        1, f"{last.code}: {last.message}" if isinstance(last, PenstockError) else ""
    ) from last
