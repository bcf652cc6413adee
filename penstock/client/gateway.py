"""HTTP requests to one gateway as one user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError

from penstock.basic_auth import basic_header
from penstock.client.http import Answer, Http
from penstock.errors import AuthError, PenstockError, RemoteError
from penstock.remote_errors import error_of
from penstock.runtime import tls

JSON = "application/json"


def authorization(user: str, password: str, token: str | None = None) -> str:
    """Return the header that stands for a user: by the token if there is one, else by password."""
    if token is not None:
        return f"Bearer {token}"
    return basic_header(user, password)


class Gateway:
    """Safe to use from several threads."""

    def __init__(
        self,
        url: str,
        authorization: str,
        *,
        timeout: float = 60.0,
        ca: str | Path | None = None,
        direct: bool = False,
    ) -> None:
        """
        Args:
            url: `http://host:port` or `https://host:port`; without a scheme it is `http`.
            authorization: header of every request.
            timeout: seconds that a request may take.
            ca: PEM file of authorities to trust besides the machine's own.
            direct: through no proxy, whatever the environment says.
        """
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self.authorization = authorization
        self.timeout = timeout
        #: checks certificates; None for plain HTTP
        self.context = tls.client(ca) if self.url.startswith("https") else None
        self._http = Http({"Authorization": authorization}, self.context, direct=direct)

    def get(self, path: str) -> Answer:
        """Return the answer to a GET. Raises PenstockError."""
        return self._send("GET", path)

    def post(
        self,
        path: str,
        body: bytes = b"",
        kind: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer to a POST of *body*, of content type *kind*. Raises PenstockError."""
        content_type = {"Content-Type": kind} if kind else {}
        return self._send("POST", path, body, {**(headers or {}), **content_type})

    def close(self) -> None:
        self._http.close()

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        try:
            answer = self._http.request(
                method, self.url + path, timeout=self.timeout, body=body, headers=headers
            )
        except HTTPError as broken:
            raise self._no_answer(broken) from _innermost(broken)
        if not answer.is_success:
            raise _error_of(answer)
        return answer

    def _no_answer(self, broken: HTTPError) -> RemoteError:
        late = isinstance(broken, ConnectTimeoutError | ReadTimeoutError)
        # which is a ConnectTimeoutError, too
        if late and not isinstance(broken, NewConnectionError):
            return RemoteError(
                "the gateway does not answer in time",
                code="E_TIMEOUT",
                detail=f"{self.timeout:g} s",
            )
        return RemoteError(
            f"the gateway at {self.url} cannot be reached",
            detail=type(broken).__name__,
            hint="is the mesh up? `penstock status` shows it",
        )


def _innermost(error: BaseException) -> BaseException:
    """Return what *error* began with: one cause tells more than libraries wrapping each other."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error


def _error_of(answer: Answer) -> PenstockError:
    try:
        found = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        kind: type[PenstockError] = AuthError if answer.status in (401, 403) else RemoteError
        return kind(
            f"the gateway answered with status {answer.status}",
            detail=answer.text[:200],
        )
    return error_of(found, answer.status)
