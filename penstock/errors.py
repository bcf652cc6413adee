"""Every error Penstock shows to a person or a program.

PenstockError(code, message, detail, hint)
├── ConfigError          all problems of one start-up in one error
├── SqlError             line, column, snippet with a caret
│   ├── SqlSyntaxError       the text is not the dialect
│   └── SqlSemanticError     unknown name, wrong type, refused clause
├── CatalogError         exists already, not found, in use
├── SchemaError          unknown schema id, record does not fit its table
├── BusError             Kafka: topic, partition, offset when known; retryable
├── LeaseLost            name, epoch: the holder must stop writing now
├── StateError           a state file is missing, damaged or newer than this build
├── AuthError            who are you, or you may not
├── OverloadError        quota or queue full: try again later
└── RemoteError          another process or deployment refused or timed out

`code` is stable and documented in docs/errors.md; `message` is one short line, `detail` says what
was found, `hint` what to do. Library exceptions never leave the file that calls the library. No
message ever holds a secret.
"""

from __future__ import annotations

from typing import Any

#: exit status of a process that was configured wrongly (sysexits.h): its supervisor does not try
#: again
EXIT_CONFIG = 78


class PenstockError(Exception):
    """Base of all; never raised itself."""

    code = "E_INTERNAL"

    def __init__(
        self, message: str, *, code: str | None = None, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [f"{self.code}: {self.message}"]
        if self.detail:
            parts.append(f"detail: {self.detail}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON form for HTTP and WebSocket answers."""
        return {
            k: v
            for k, v in {
                "code": self.code,
                "message": self.message,
                "detail": self.detail,
                "hint": self.hint,
            }.items()
            if v
        }


class ConfigError(PenstockError):
    code = "E_CONFIG"


class SqlError(PenstockError):
    """`line` and `column` count from 1; `snippet` is the source line with a caret line below."""

    code = "E_SQL"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
        line: int = 0,
        column: int = 0,
        snippet: str = "",
    ) -> None:
        super().__init__(message, code=code, detail=detail, hint=hint)
        self.line = line
        self.column = column
        self.snippet = snippet

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line else ""
        text = f"{self.code}: {self.message}{where}"
        for label, value in (("", self.snippet), ("detail: ", self.detail), ("hint: ", self.hint)):
            if value:
                text += f"\n{label}{value}"
        return text

    def to_dict(self) -> dict[str, Any]:
        more = {"line": self.line, "column": self.column, "snippet": self.snippet}
        return {**super().to_dict(), **{k: v for k, v in more.items() if v}}


class SqlSyntaxError(SqlError):
    code = "E_SYNTAX"


class SqlSemanticError(SqlError):
    code = "E_SEMANTIC"


class CatalogError(PenstockError):
    code = "E_CATALOG"


class SchemaError(PenstockError):
    code = "E_SCHEMA"


class BusError(PenstockError):
    code = "E_BUS"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
        topic: str = "",
        partition: int = -1,
        offset: int = -1,
        retryable: bool = False,
    ) -> None:
        where = f"{topic}[{partition}]@{offset}" if topic else ""
        super().__init__(
            message, code=code, detail=" ".join(x for x in (where, detail) if x), hint=hint
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.retryable = retryable


class LeaseLost(PenstockError):
    code = "E_LEASE_LOST"

    def __init__(self, name: str, epoch: int) -> None:
        super().__init__(
            f'lease "{name}" of epoch {epoch} is lost',
            hint="another process leads now; stop writing",
        )
        self.name = name
        self.epoch = epoch


class StateError(PenstockError):
    code = "E_STATE"


class AuthError(PenstockError):
    code = "E_AUTH"


class OverloadError(PenstockError):
    code = "E_OVERLOAD"


class RemoteError(PenstockError):
    code = "E_REMOTE"
