"""Type codes, and what the standard asks of a module."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock import dbapi
from penstock.dbapi.errors import standard_errors
from penstock.dbapi.kinds import code_of
from penstock.errors import (
    AuthError,
    CatalogError,
    PenstockError,
    RemoteError,
    SchemaError,
    SqlSemanticError,
)


@pytest.mark.parametrize(
    ("arrow", "code", "kind"),
    [
        (pa.int8(), "TINYINT", dbapi.NUMBER),
        (pa.uint64(), "BIGINT UNSIGNED", dbapi.NUMBER),
        (pa.float32(), "FLOAT", dbapi.NUMBER),
        (pa.float64(), "DOUBLE", dbapi.NUMBER),
        (pa.decimal128(10, 2), "DECIMAL", dbapi.NUMBER),
        (pa.bool_(), "BOOL", dbapi.NUMBER),
        (pa.timestamp("ns", "UTC"), "TIMESTAMP", dbapi.DATETIME),
        (pa.binary(), "VARBINARY", dbapi.BINARY),
        (pa.string(), "VARCHAR", dbapi.STRING),
        (pa.large_string(), "VARCHAR", dbapi.STRING),
    ],
)
def test_a_column_has_the_name_of_its_type(arrow: pa.DataType, code: str, kind: object) -> None:
    assert code_of(arrow) == code
    kinds = (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID)
    assert [k for k in kinds if k == code] == [kind]


def test_what_the_standard_asks_for_is_there() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(dbapi.Warning, Exception) and issubclass(dbapi.InterfaceError, dbapi.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        suffix = "Error"
        assert issubclass(getattr(dbapi, name + suffix), dbapi.DatabaseError)
    assert dbapi.DateFromTicks(86_400).isoformat() == "1970-01-02"
    assert dbapi.TimestampFromTicks(1.5).isoformat() == "1970-01-01T00:00:01.500000+00:00"
    assert dbapi.TimeFromTicks(61).isoformat() == "00:01:01"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SqlSemanticError("no column", code="E_UNKNOWN_COLUMN"), dbapi.ProgrammingError),
        (CatalogError("no table", code="E_NO_TABLE"), dbapi.ProgrammingError),
        (SqlSemanticError("too few", code="E_PARAMETER"), dbapi.DataError),
        (SchemaError("does not fit"), dbapi.DataError),
        (AuthError("who"), dbapi.OperationalError),
        (RemoteError("nobody answers"), dbapi.OperationalError),
        (RemoteError("a fault", code="E_INTERNAL"), dbapi.InternalError),
    ],
)
def test_errors_are_of_the_standards_kinds(error: PenstockError, kind: type[Exception]) -> None:
    with pytest.raises(dbapi.Error) as raised, standard_errors():
        raise error
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error and error.code in str(raised.value)
