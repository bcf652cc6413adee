"""OTLP requests to the collector: HTTP, one request a connection. Redirects and proxies are not
followed, and no more than the status of an answer is looked at.
"""

from __future__ import annotations

import gzip
import http.client
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from penstock.runtime import tls
from penstock.telemetry import otlp
from penstock.telemetry.exporter import CollectorError
from penstock.telemetry.options import TraceOptions
from penstock.telemetry.span import Span, Value

#: answers that ask for the same request later
_AGAIN = frozenset((429, 502, 503, 504))
_LONGEST_RETRY_AFTER_S = 300.0
_MOST_ANSWER = 64 << 10


class Collector:
    """Sends spans to where the options say."""

    def __init__(
        self, options: TraceOptions, resource: Mapping[str, Value], scope: tuple[str, str]
    ) -> None:
        """Raises ConfigError: the certificate cannot be used."""
        parts = urlsplit(options.endpoint)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._path = parts.path or "/"
        self._encrypted: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._encrypted = tls.client(options.certificate)
        self._timeout = options.timeout
        self._gzip = options.gzip
        self._resource = resource
        self._scope = scope
        self._headers = {
            "User-Agent": f"penstock/{scope[1]}",
            **dict(options.headers),
            "Content-Type": "application/x-protobuf",
            "Connection": "close",
        }
        if self._gzip:
            self._headers["Content-Encoding"] = "gzip"

    def __call__(self, spans: Sequence[Span]) -> None:
        """Have *spans* taken. Raises CollectorError."""
        body = otlp.request(self._resource, self._scope, spans)
        connection = self._connection()
        try:
            connection.request(
                "POST", self._path, gzip.compress(body) if self._gzip else body, self._headers
            )
            answer = connection.getresponse()
            answer.read(_MOST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise CollectorError(f"no answer: {reason}", again=True) from None
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise CollectorError(
                f"HTTP status {answer.status}",
                again=answer.status in _AGAIN,
                retry_after=_seconds(answer.headers.get("Retry-After", "")),
            )

    def _connection(self) -> http.client.HTTPConnection:
        if self._encrypted is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout, context=self._encrypted
        )


def _seconds(text: str) -> float:
    """Return how long an answer asks to be left alone, where it says seconds."""
    if not (text.isascii() and text.isdigit()):
        return 0.0
    return min(float(text[:9]), _LONGEST_RETRY_AFTER_S)
