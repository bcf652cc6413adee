"""Our errors as PostgreSQL tells errors: with a SQLSTATE, and the place in the statement."""

from __future__ import annotations

from penstock.errors import AuthError, OverloadError, PenstockError, SqlError, SqlSyntaxError

READ_ONLY = "25006"
IN_FAILED_TRANSACTION = "25P02"
CANCELLED = "57014"
STOPPING = "57P01"
#: the states of codes that clients tell apart; others have one by what they are
SQL_STATES: dict[str, str] = {
    "E_SYNTAX": "42601",
    "E_READ_ONLY": READ_ONLY,
    "E_FAILED_TRANSACTION": IN_FAILED_TRANSACTION,
    "E_CANCELLED": CANCELLED,
    "E_NO_COLUMN": "42703",
    "E_COLUMN_NOT_EXIST": "42703",
    "E_UNKNOWN_COLUMN": "42703",
    "E_NO_TABLE": "42P01",
    "E_TABLE_NOT_EXIST": "42P01",
    "E_NO_STREAM": "42P01",
    "E_NO_VIEW": "42P01",
    "E_NO_DATABASE": "3F000",
    "E_DATABASE_NOT_EXIST": "3F000",
    "E_WHICH_DATABASE": "3F000",
    "E_NO_FUNCTION": "42883",
    "E_UNKNOWN_FUNCTION": "42883",
    "E_PARAMETER": "22P02",
    "E_BODY": "08P01",
    "E_TOO_LARGE": "54000",
    "E_TOO_LONG": "54000",
    "E_RESULT_TOO_LARGE": "54000",
    "E_UNSUPPORTED_STATEMENT": "0A000",
    "E_UNSUPPORTED_QUERY": "0A000",
    "E_SEVERAL_STATEMENTS": "42601",
    "E_BAD_OPTION": "22023",
    "E_AUTH": "28P01",
    "E_FORBIDDEN": "42501",
    "E_OVERLOAD": "53400",
    "E_TIMEOUT": CANCELLED,
    "E_STORE_DOWN": "57P03",
    "E_KAFKA_DOWN": "57P03",
    "E_REDIS_DOWN": "57P03",
    "E_INTERNAL": "XX000",
    "E_STATEMENT_EXISTS": "42P05",
    "E_NO_STATEMENT": "26000",
    "E_NO_PORTAL": "34000",
}


def state_of(error: PenstockError) -> str:
    """Return the SQLSTATE of an error."""
    if error.code in SQL_STATES:
        return SQL_STATES[error.code]
    if isinstance(error, SqlSyntaxError):
        return SQL_STATES["E_SYNTAX"]
    if isinstance(error, AuthError):
        return SQL_STATES["E_AUTH"]
    if isinstance(error, OverloadError):
        return SQL_STATES["E_OVERLOAD"]
    return "42000" if isinstance(error, SqlError) else "58000"


def error_fields(
    error: PenstockError, position: int = 0, severity: str = "ERROR"
) -> dict[str, str]:
    """Return the fields of an ErrorResponse.

    Args:
        error: what went wrong.
        position: the character of the statement that it is about, from 1; 0: none.
        severity: `FATAL` when the connection ends with it.
    """
    detail = error.detail
    return {
        "S": severity,
        "V": severity,
        "C": state_of(error),
        "M": f"{error.message} ({error.code})",
        "D": detail,
        "H": error.hint,
        "P": str(position) if position > 0 else "",
    }
