"""What a connection of the PostgreSQL wire says of itself: SET, SHOW, and transactions, of which
there are none: BEGIN and COMMIT are taken, because clients that only read send them, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from gateway import times
from gateway.postgres.translate import CATALOG, PgStatement
from penstock.errors import PenstockError, SqlSemanticError

#: the version that clients take this for: they choose what they ask of `pg_catalog` by it
SERVER_VERSION: Final = "15.0"
SERVER_NUMBER: Final = "150000"
#: names under which settings are told to clients when a connection begins, and when they change
REPORTED: Final = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
}
_DEFAULTS = {
    "server_version": SERVER_VERSION,
    "server_version_num": SERVER_NUMBER,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "transaction_isolation": "read committed",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_monetary": "C",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "off",
}
#: settings that cannot be changed, and what may be written for those that have one value
_FIXED = {
    "client_encoding": ("utf8", "unicode"),
    "standard_conforming_strings": ("on", "true", "1", "yes"),
    "server_version": (),
    "server_version_num": (),
    "server_encoding": (),
    "is_superuser": (),
    "in_hot_standby": (),
    "integer_datetimes": (),
    "max_identifier_length": (),
    "max_index_keys": (),
    "lc_collate": (),
    "lc_ctype": (),
    "session_authorization": (),
}
_WRITABLE = ("default_transaction_read_only", "transaction_read_only")
#: settings that are kept of a client's own
_MOST_OWN = 64
_LONGEST_VALUE = 1024
_SET = re.compile(
    r"SET\s+(?:SESSION\s+|LOCAL\s+)?(?P<name>TIME\s+ZONE\b|NAMES\b|[\w.]+|\"[\w.]+\")\s*(?:=|\bTO\b)?\s*"
    r"(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SHOW = re.compile(
    r"SHOW\s+(?P<name>TRANSACTION\s+ISOLATION\s+LEVEL|TIME\s+ZONE|[\w.]+|\"[\w.]+\")\s*\Z",
    re.IGNORECASE,
)
_TRANSACTION = re.compile(r"SET\s+(?:SESSION\s+CHARACTERISTICS\b|TRANSACTION\b)", re.IGNORECASE)
_MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
#: statements that end a transaction, and what they are answered with
_ENDS = {"COMMIT": "COMMIT", "END": "COMMIT", "ROLLBACK": "ROLLBACK", "ABORT": "ROLLBACK"}
#: statements that are taken and change nothing
_TAKEN = {
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
    "DISCARD": "DISCARD ALL",
    "UNLISTEN": "UNLISTEN",
    "CLOSE": "CLOSE CURSOR",
}
#: what clients call UTC
_UTC = ("utc", "default", "local", "z", "gmt", "etc/utc", "0")
_ALIASES = {
    "time zone": "timezone",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
}


@dataclass(frozen=True)
class PgAnswer:
    """An answer: rows or none, and the word that ends it; None: the number of rows makes it."""

    table: pa.Table | None
    tag: str | None = None


@dataclass
class PgSession:
    """One connection's state; its event loop only."""

    user: str
    remote: str
    with_password: bool
    #: what the client calls the database that it is connected to
    connected_to: str = CATALOG
    #: of names without one
    database: str | None = None
    timezone: str = "UTC"
    #: `I`, or in a transaction `T`, or `E` once something failed in it
    status: str = "I"
    own: dict[str, str] = field(default_factory=dict)
    #: what its client began with, to which RESET goes back
    begun: dict[str, list[str]] = field(default_factory=dict)

    def begin(self, settings: Mapping[str, str]) -> None:
        """Take the settings that a client begins with. Raises SqlSemanticError."""
        for name, value in settings.items():
            values = [part.strip(' "') for part in value.split(",")]
            self.change(name, values)
            self.begun[name] = values

    def value(self, name: str) -> str | None:
        """Return a setting; None: there is no such one."""
        computed = {
            "timezone": self.timezone,
            "search_path": _quoted(self.database or ""),
            "session_authorization": self.user,
            "role": "none",
        }
        if name in computed:
            return computed[name]
        return self.own.get(name, _DEFAULTS.get(name))

    def settings(self) -> Mapping[str, str]:
        """Return all settings by name."""
        names = ("timezone", "search_path", "session_authorization")
        computed = {name: self.value(name) or "" for name in names}
        return dict(sorted({**_DEFAULTS, **self.own, **computed}.items()))

    @property
    def seconds(self) -> float | None:
        """Return how long a statement may take, as the client has set it; None: it has not."""
        text = self.own.get("statement_timeout", "0")
        return int(text) / 1000 or None

    # ---------------------------------------------------------------- statements

    def run(self, statement: PgStatement) -> PgAnswer | None:
        """Answer a statement about the session; None: it is none. Raises SqlSemanticError."""
        word = statement.first_word
        self._refuse_after_failure(word)
        if word in ("BEGIN", "START"):
            self.status = "T"
            return PgAnswer(None, "BEGIN" if word == "BEGIN" else "START TRANSACTION")
        if word in _ENDS:
            return self._end(word, statement)
        if statement.theirs.upper().split() == ["DISCARD", "ALL"]:
            self._reset("all")
        if word in _TAKEN:
            return PgAnswer(None, _TAKEN[word])
        if word == "SET":
            return self._set(statement)
        if word == "RESET":
            words = re.sub(r"RESET\s+", "", statement.theirs, count=1, flags=re.IGNORECASE)
            self._reset(_setting(words))
            return PgAnswer(None, "RESET")
        return self._show(statement) if word == "SHOW" else None

    def _refuse_after_failure(self, word: str) -> None:
        if self.status == "E" and word not in _ENDS:
            raise SqlSemanticError(
                "the transaction has failed, what follows is refused until it ends",
                code="E_FAILED_TRANSACTION",
                hint="send ROLLBACK",
            )

    def _end(self, word: str, statement: PgStatement) -> PgAnswer:
        if re.search(r"\bTO\b", statement.ours, re.IGNORECASE) and word == "ROLLBACK":
            self.status = "T" if self.status == "E" else self.status
            return PgAnswer(None, "ROLLBACK")
        failed = self.status == "E"
        self.status = "I"
        return PgAnswer(None, "ROLLBACK" if failed else _ENDS[word])

    def _set(self, statement: PgStatement) -> PgAnswer:
        if _TRANSACTION.match(statement.theirs):
            if re.search(r"\bREAD\s+WRITE\b", statement.theirs, re.IGNORECASE):
                raise _only_reads()
            return PgAnswer(None, "SET")
        match = _SET.match(statement.theirs)
        if match is None:
            raise SqlSemanticError("this SET is not known", code="E_BAD_OPTION")
        name = _setting(match["name"])
        if match["value"].strip().upper() == "DEFAULT":
            self._reset(name)
        else:
            self.change(name, _values(match["value"]))
        return PgAnswer(None, "SET")

    def change(self, name: str, values: list[str]) -> None:
        """Give a setting another value. Raises SqlSemanticError."""
        value = ", ".join(values)
        self._require_allowed(name, value)
        if name == "timezone":
            self.timezone = _zone(value)
        elif name == "search_path":
            self.database = next((v for v in values if _is_schema(v)), None)
        elif name == "statement_timeout":
            self.own[name] = str(_milliseconds(value))
        elif name not in _FIXED and (name in self.own or len(self.own) < _MOST_OWN):
            self.own[name] = value

    def _require_allowed(self, name: str, value: str) -> None:
        """Raise SqlSemanticError if a setting may not have a value."""
        if len(value) > _LONGEST_VALUE or len(name) > _LONGEST_VALUE:
            raise SqlSemanticError("the value of a setting is too long", code="E_TOO_LONG")
        # PostgreSQL reads letters and digits of an encoding's name only: asyncpg begins with quotes
        written = re.sub(r"[\W_]", "", value) if name == "client_encoding" else value
        if name in _FIXED and written.lower() not in _FIXED[name]:
            raise SqlSemanticError(
                f"{name} is {self.value(name)} and stays so", code="E_BAD_OPTION"
            )
        if name in _WRITABLE and value.lower() in ("off", "false", "0", "no"):
            raise _only_reads()

    def _reset(self, name: str) -> None:
        """Give a setting, or `all`, the value that it had when the connection began."""
        names = [name]
        if name == "all":
            self.own.clear()
            names = ["timezone", "search_path", *self.begun]
        for each in names:
            self.own.pop(each, None)
            if each == "timezone":
                self.timezone = "UTC"
            elif each == "search_path":
                self.database = None if self.connected_to == CATALOG else self.connected_to
            if each in self.begun:
                self.change(each, self.begun[each])

    def _show(self, statement: PgStatement) -> PgAnswer | None:
        match = _SHOW.match(statement.theirs)
        name = _setting(match["name"]) if match is not None else ""
        if name == "all":
            shown = self.settings()
            columns = {"name": list(shown), "setting": list(shown.values())}
            empty = pa.array([""] * len(shown))
            return PgAnswer(pa.table({**columns, "description": empty}), "SHOW")
        value = self.value(name)
        # what is no setting is a list of ours: SHOW TABLES
        return None if value is None else PgAnswer(pa.table({name: [value]}), "SHOW")


def _setting(text: str) -> str:
    name = " ".join(text.strip().strip('"').lower().split())
    return _ALIASES.get(name, name)


def _values(text: str) -> list[str]:
    """Return the values of a SET, without their quotes."""
    found = re.findall(r"'((?:[^']|'')*)'|\"([^\"]*)\"|([^\s,'\"]+)", text)
    return [a.replace("''", "'") or b or c for a, b, c in found]


def _quoted(name: str) -> str:
    """Return a name with quotes, if PostgreSQL's words need them."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*|", name) else f'"{name}"'


def _is_schema(name: str) -> bool:
    return bool(name) and name.lower() not in ("$user", "public", "pg_catalog", CATALOG)


def _zone(value: str) -> str:
    named = "UTC" if value.lower() in _UTC else value
    try:
        times.zone(named)
    except PenstockError as unknown:
        raise SqlSemanticError(
            "there is no such time zone", code="E_BAD_OPTION", detail=unknown.detail
        ) from None
    return named


def _milliseconds(value: str) -> int:
    match = re.fullmatch(r"(\d{1,9})\s*(ms|s|min|h|)", value.strip().lower())
    if value.lower() == "default":
        return 0
    if match is None:
        raise SqlSemanticError("statement_timeout is a number of milliseconds", code="E_BAD_OPTION")
    return int(match[1]) * _MILLISECONDS[match[2]]


def _only_reads() -> SqlSemanticError:
    return SqlSemanticError(
        "the PostgreSQL wire is for reading",
        code="E_READ_ONLY",
        hint="write over HTTP: POST /v1/query, /rest/sql or /v1/tables/…/rows",
    )
