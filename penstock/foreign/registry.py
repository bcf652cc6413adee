"""A Confluent Schema Registry of somebody else, asked for the schemas of messages."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from penstock.errors import RemoteError, SchemaError
from penstock.foreign.avro import parse
from penstock.foreign.descriptors import Descriptors
from penstock.outbound.reach import Reach

_TIMEOUT_S = 10.0
#: most that a registry may take for one answer, and send
_WHOLE_S = 20.0
_MAX_ANSWER = 1 << 20
#: files that one schema of Protobuf may be made of
_MOST_FILES = 100


def _no_answer() -> RemoteError:
    return RemoteError(
        "the schema registry's answer cannot be read",
        code="E_REGISTRY",
        hint="is that the address of a schema registry?",
    )


class SchemaRegistry:
    """A Schema Registry's schemas, each asked for once. Blocks; one thread at a time.

    Each question goes to an address that was checked just before, and nowhere else: neither a
    redirect nor a proxy of the environment is followed. Errors hold no word of the answer.
    """

    def __init__(self, url: str, reach: Reach | None = None) -> None:
        """*reach*: where registries may be; by default anywhere."""
        self._url = urlsplit(url)
        self._reach = reach if reach is not None else Reach()
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False, follow_redirects=False)
        self._schemas: dict[int, Any] = {}
        self._descriptors: dict[int, Descriptors] = {}
        #: schemas of these ids are none that we take: every message of theirs would be a question
        self._refused: dict[int, SchemaError] = {}

    def schema(self, schema_id: int) -> Any:
        """Return Avro's schema of this id. Raises SchemaError (there is none, or none that we take)
        or RemoteError (the registry does not answer).
        """
        if schema_id not in self._schemas:
            with self._remember_refusal(schema_id):
                text = self._get(f"/schemas/ids/{schema_id}").get("schema")
                self._schemas[schema_id] = parse(text)
        return self._schemas[schema_id]

    def descriptors(self, schema_id: int) -> Descriptors:
        """Return Protobuf's schema of this id, with the files that it imports. Raises SchemaError,
        RemoteError.
        """
        if schema_id not in self._descriptors:
            with self._remember_refusal(schema_id):
                made = Descriptors()
                self._add_file(made, f"/schemas/ids/{schema_id}", set())
                self._descriptors[schema_id] = made
        return self._descriptors[schema_id]

    @contextmanager
    def _remember_refusal(self, schema_id: int) -> Iterator[None]:
        """Raise again what was raised about this schema, if it is one that we do not take. One that
        the registry does not know may come: that is asked again.
        """
        if schema_id in self._refused:
            raise self._refused[schema_id]
        try:
            yield
        except SchemaError as refused:
            if refused.code != "E_UNKNOWN_SCHEMA":
                self._refused[schema_id] = refused
            raise

    def _add_file(self, made: Descriptors, path: str, seen: set[str]) -> None:
        """Read the file at *path* behind the files that it imports."""
        seen.add(path)
        if len(seen) > _MOST_FILES:
            raise SchemaError(
                f"the registry's schema is of more than {_MOST_FILES} files",
                code="E_REMOTE_SCHEMA",
            )
        found = self._get(path + "?format=serialized")
        references = found.get("references") or []
        if not isinstance(references, list) or not all(isinstance(r, dict) for r in references):
            raise _no_answer()
        for reference in references:
            subject = quote(str(reference.get("subject")), safe="")
            inner = f"/subjects/{subject}/versions/{quote(str(reference.get('version')), safe='')}"
            if inner not in seen:
                self._add_file(made, inner, seen)
        try:
            file = base64.b64decode(str(found.get("schema")), validate=True)
        except ValueError:
            raise SchemaError(
                "the registry gives no descriptor of this schema",
                code="E_REMOTE_SCHEMA",
                detail="it must be a schema of Protobuf, and a registry with format=serialized",
            ) from None
        made.add(file)

    def newest(self, subject: str) -> tuple[int, Any]:
        """Return id and schema that messages of *subject* are written with now."""
        found = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        schema_id = found.get("id")
        if not isinstance(schema_id, int) or not 0 <= schema_id < 1 << 32:
            raise _no_answer()
        return schema_id, parse(found.get("schema"))

    def _get(self, path: str) -> dict[str, Any]:
        try:
            status, body = self._fetch(path)
        except httpx.HTTPError as down:
            raise RemoteError(
                "the schema registry does not answer", code="E_REGISTRY", detail=type(down).__name__
            ) from None
        if status == 404:
            raise SchemaError(
                "the schema registry does not know this schema",
                code="E_UNKNOWN_SCHEMA",
                detail=path,
            )
        if status != 200:
            raise RemoteError(
                "the schema registry refuses", code="E_REGISTRY", detail=f"status {status}"
            )
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise _no_answer() from None
        if not isinstance(found, dict):
            raise _no_answer()
        return found

    def _fetch(self, path: str) -> tuple[int, bytes]:
        """Ask by GET. Return status and body. Raises httpx.HTTPError, CatalogError,
        RemoteError.
        """
        url = self._url
        host = self._url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = self._reach.addresses(host, port)
        if not addresses:
            raise RemoteError(
                "the schema registry does not answer",
                code="E_REGISTRY",
                detail="nobody has that name",
            )
        headers = {"Host": url.netloc, "Accept": "application/json", "Accept-Encoding": "identity"}
        until = time.monotonic() + _WHOLE_S
        for address in addresses:
            place = f"[{address}]" if ":" in address else address
            request = self._client.build_request(
                "GET",
                f"{url.scheme}://{place}:{port}{url.path}{path}",
                headers=headers,
                extensions={"sni_hostname": host},
            )
            try:
                answer = self._client.send(request, stream=True)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
                continue
            break
        return answer.status_code, _read_body(answer, until)

    def close(self) -> None:
        self._client.close()


def _read_body(answer: httpx.Response, until: float) -> bytes:
    """Read what comes until the time *until*, up to the most that an answer may have."""
    body = b""
    try:
        for piece in answer.iter_raw():
            body += piece
            if len(body) > _MAX_ANSWER or time.monotonic() > until:
                raise _no_answer()
    finally:
        answer.close()
    return body
