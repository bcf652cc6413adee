"""Times of answers over Flight: they are in UTC, and say so to drivers that can read it."""

from __future__ import annotations

import pyarrow as pa

#: how gRPC for Java names itself
_JAVA = "grpc-java"


def reads_zones(user_agent: str) -> bool:
    """Tell whether a driver can read times that have a zone. Arrow's JDBC driver (18.3) gives the
    type TIMESTAMP_WITH_TIMEZONE to them, for which its `getObject` is not implemented.
    """
    return _JAVA not in user_agent.lower()


def with_zone(rows: pa.Table) -> pa.Table:
    """Return rows whose times say that they are in UTC; no value changes."""
    return rows.cast(schema_with_zone(rows.schema))


def schema_with_zone(schema: pa.Schema) -> pa.Schema:
    """Return the schema of `with_zone`."""
    return pa.schema([_with_zone(field) for field in schema], schema.metadata)


def _with_zone(field: pa.Field) -> pa.Field:
    kind = field.type
    if not pa.types.is_timestamp(kind) or kind.tz is not None:
        return field
    return field.with_type(pa.timestamp(kind.unit, "UTC"))
