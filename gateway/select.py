"""SELECT: sent to the store over Arrow Flight, after what this gateway has acked; and errors
brought back as they were.

Owns the Flight client. Results larger than the settings allow are refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

from penstock.basic_auth import basic_header
from penstock.errors import (
    OverloadError,
    PenstockError,
    RemoteError,
    SqlSemanticError,
    SqlSyntaxError,
)
from penstock.rows.parameters import Parameters, encode
from penstock.runtime import tls
from penstock.runtime.limits import Turns

#: queries at a time of all users; a thread each, which waits for the store
_THREADS = 64


@dataclass(frozen=True)
class Question:
    """One query, as the store is asked.

    Args:
        sql: the SELECT as its user wrote it.
        database: for names without one.
        timezone: of times without one.
        revision: of the catalog, which the answer must be of, or of a later one.
        after: (topic, partition) → offset that the answer must include.
        parameters: for the placeholders in *sql*; the store binds them as the gateway did.
    """

    sql: str
    database: str | None
    timezone: str
    revision: int
    after: Mapping[tuple[str, int], int]
    parameters: Parameters | None = None

    def ticket(self) -> bytes:
        """Return the ticket that asks for its rows."""
        fields = {
            "sql": self.sql,
            "database": self.database or "",
            "timezone": self.timezone,
            "revision": self.revision,
            "after": {f"{t}:{p}": o for (t, p), o in self.after.items()},
        }
        if self.parameters:
            fields["parameters"] = encode(self.parameters)
        return json.dumps(fields).encode()


class StoreClient:
    """Reads rows. `select` blocks: call it from a worker thread."""

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        *,
        max_rows: int,
        max_bytes: int,
        timeout: float,
        turns: Turns,
        ca: Path | None = None,
    ) -> None:
        """
        Args:
            turns: how many queries each user may have.
        """
        self._client = flight.FlightClient(url, **tls.flight_client(url, ca))
        header = basic_header(user, password).encode()
        self._options = flight.FlightCallOptions(
            headers=[(b"authorization", header)], timeout=timeout
        )
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="select")
        self._turns = turns

    async def select_for(
        self,
        user: str,
        question: Question,
    ) -> pa.Table:
        """Do what `select` does in a thread, when it is *user*'s turn.

        Raises:
            OverloadError: too many queries of *user* wait.
        """
        async with self._turns.turn(user):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self.select, question)

    def select(self, question: Question) -> pa.Table:
        """Return the rows of one query.

        Raises:
            SqlError: the query is wrong; as the store says it.
            RemoteError: the store is not there.
        """
        try:
            reader = self._client.do_get(flight.Ticket(question.ticket()), self._options)
            batches = []
            count = 0
            size = 0
            while True:
                try:
                    chunk = reader.read_chunk().data
                except StopIteration:
                    break
                batches.append(chunk)
                count += chunk.num_rows
                size += chunk.nbytes
                if count > self._max_rows or size > self._max_bytes:
                    reader.cancel()
                    bound = (
                        f"{self._max_rows} rows"
                        if count > self._max_rows
                        else f"{self._max_bytes} bytes"
                    )
                    hint = "add LIMIT, name fewer columns, or `penstock export`"
                    raise OverloadError(
                        f"the result has more than {bound}", code="E_TOO_LARGE", hint=hint
                    )
            return aware(pa.Table.from_batches(batches, reader.schema))
        except pa.ArrowException as error:
            raise error_of(error) from None

    def close(self) -> None:
        self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def aware(table: pa.Table) -> pa.Table:
    """Return *table* with times in UTC, which DuckDB leaves out."""
    fields = [
        (
            field.with_type(pa.timestamp(field.type.unit, "UTC"))
            if pa.types.is_timestamp(field.type) and field.type.tz is None
            else field
        )
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, table.schema.metadata))


def error_of(error: pa.ArrowException) -> PenstockError:
    text = str(error)
    try:
        body, _ = json.JSONDecoder().raw_decode(
            text, text.index("{")
        )  # gRPC adds its own words behind
    except ValueError:
        body = None
    if not isinstance(body, dict) or "message" not in body:
        if isinstance(error, flight.FlightTimedOutError):
            return RemoteError(
                "the query takes too long",
                code="E_TIMEOUT",
                hint=(
                    "narrow it by time or add LIMIT, or raise PENSTOCK_GATEWAY_QUERY_TIMEOUT; a"
                    " store far behind Kafka makes queries wait"
                ),
            )
        return RemoteError(
            "the store cannot be reached",
            code="E_STORE_DOWN",
            detail=str(error)[:200],
            hint="`penstock status` shows its state",
        )
    code = str(body.get("code", "E_REMOTE"))
    message = str(body["message"])
    detail = str(body.get("detail", ""))
    hint = str(body.get("hint", ""))
    if code == "E_OVERLOAD":
        return OverloadError(message, detail=detail, hint=hint)
    if code in ("E_INTERNAL", "E_REQUEST", "E_AUTH"):
        return RemoteError(message, detail=f"{code} {detail}", hint=hint)
    kind = SqlSyntaxError if code == "E_SYNTAX" else SqlSemanticError
    return kind(
        message,
        code=code,
        detail=detail,
        hint=hint,
        line=int(body.get("line", 0)),
        column=int(body.get("column", 0)),
        snippet=str(body.get("snippet", "")),
    )
