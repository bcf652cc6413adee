"""HTTP requests over connections that are kept, through the proxies of the environment."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader

#: connections to one server that are kept between requests
_KEPT = 20
#: a connection that nobody used for so long is not used again: it may be gone without a word
_IDLE_SECONDS = 5.0


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: urllib3.HTTPHeaderDict
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """Return the body as JSON. Raises ValueError: it is none."""
        return json.loads(self.content)

    def values(self, name: str) -> tuple[str, ...]:
        """Return all values of a header, which may be in lines of their own or behind commas."""
        lines = self.headers.getlist(name)
        return tuple(value.strip() for line in lines for value in line.split(","))


class Http:
    """Safe to use from several threads. Follows no redirects and tries nothing twice."""

    def __init__(
        self,
        headers: Mapping[str, str],
        context: ssl.SSLContext | None = None,
        *,
        direct: bool = False,
    ) -> None:
        """
        Args:
            headers: of every request.
            context: checks certificates; by default against the machine's authorities.
            direct: through no proxy, whatever the environment says.
        """
        self._headers = dict(headers)
        self._context = context
        self._direct = direct
        self._lock = threading.Lock()
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._last_use = 0.0

    def request(
        self,
        method: str,
        url: str,
        *,
        timeout: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer, whatever its status.

        Args:
            timeout: seconds to wait for the connection, and for each piece of the answer.

        Raises:
            urllib3.exceptions.HTTPError: there is none.
        """
        manager = self._manager(url)
        try:
            response = manager.request(
                method,
                url,
                body=body,
                headers={**self._headers, **(headers or {})},
                timeout=timeout,
                retries=False,
                redirect=False,
            )
        except HTTPError:
            raise
        except ValueError as wrong:  # of Python's own HTTP, about headers
            raise InvalidHeader(str(wrong)) from wrong
        return Answer(response.status, response.headers, response.data)

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        with self._lock:
            managers = list(self._managers.values())
            self._managers = {}
        for manager in managers:
            manager.clear()

    def _manager(self, url: str) -> urllib3.PoolManager:
        """Return what keeps the connections for *url*, without those that rested for too long."""
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.netloc}"
        now = time.monotonic()
        with self._lock:
            rested = now - self._last_use > _IDLE_SECONDS
            self._last_use = now
            manager = self._managers.get(server)
            if manager is None:
                manager = self._open(parts.scheme, parts.hostname or "")
                self._managers[server] = manager
            elif rested:
                manager.clear()
        return manager

    def _open(self, scheme: str, host: str) -> urllib3.PoolManager:
        options: dict[str, Any] = {"maxsize": _KEPT, "ssl_context": self._context}
        proxies = {} if self._direct or proxy_bypass(host) else getproxies()
        proxy = proxies.get(scheme) or proxies.get("all")
        if not proxy:
            return urllib3.PoolManager(**options)
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        login = {}
        if address.username:
            secret = f"{unquote(address.username)}:{unquote(address.password or '')}"
            login = urllib3.make_headers(proxy_basic_auth=secret)
        return urllib3.ProxyManager(address.geturl(), proxy_headers=login, **options)
