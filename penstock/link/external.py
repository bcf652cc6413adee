"""External streams: what their SETTINGS mean, where they are, and the secret file that holds each
one's password.

A password is in `<data directory>/secrets/external-<id>.password` (mode 0600) and nowhere else: not
in the catalog, a log, an error or an answer. Every service that opens links reads it there, so
`hosts` may change hands without the catalog knowing a secret.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog.model import External
from penstock.errors import CatalogError
from penstock.link.address import DEFAULT_PORT, DEFAULT_TLS_PORT, Address
from penstock.link.description import Description
from penstock.outbound.reach import Reach
from penstock.sql.plan import Column
from penstock.sql.words import in_backticks, quote_name, quote_string

#: ports that are dialled when a host names none, by type: plain, secure. `timeplus` is another name
#: of our own link.
PORTS = {"penstock": (DEFAULT_PORT, DEFAULT_TLS_PORT), "timeplus": (8463, 9440)}
KNOWN = ("type", "hosts", "db", "user", "password", "password_file", "secure", "stream", "ca_file")
MAX_ADDRESSES = 64


@dataclass(frozen=True, repr=False)
class Settings:
    """The SETTINGS of an external stream, checked."""

    type: str
    shards: tuple[tuple[str, ...], ...]
    db: str
    user: str
    password: str
    secure: bool
    stream: str
    ca_file: str

    def addresses(self, allowed: Reach | None = None) -> list[tuple[Address, ...]]:
        """Replicas of each shard; each link to them is made if its host is *allowed* at that
        time.
        """
        return [
            _replicas(shard, self.user, self.password, self.secure, self.ca_file, allowed)
            for shard in self.shards
        ]


def _check_keys(given: Mapping[str, str]) -> None:
    unknown = [key for key in given if key not in KNOWN]
    if unknown:
        raise _bad(f"there is no setting {unknown[0]}", f"settings are {', '.join(KNOWN)}")


def _check_filled(given: Mapping[str, str]) -> None:
    for key in ("hosts", "stream"):
        if not given.get(key, "").strip():
            raise _bad(f"Setting `{key}` cannot be empty", f"{key}='…'")


def read_settings(given: Mapping[str, str], data_dir: Path) -> Settings:
    """Read the settings of an external stream. Raises CatalogError (`E_BAD_OPTION`).

    Args:
        given: key and text of each.
        data_dir: the deployment's; `password_file` names a file in its `secrets/external/`, and no
            other, since what is in it goes to a host that the statement names.
    """
    _check_keys(given)
    kind = given.get("type", "").lower()
    if kind not in PORTS:
        raise _bad(f"type '{kind}' is not known", "type is 'penstock', 'timeplus' or 'kafka'")
    _check_filled(given)
    secure = given.get("secure", "false").lower()
    if secure not in ("true", "false", "1", "0"):
        raise _bad("secure is true or false", "")
    password = password_of(given, data_dir)
    is_secure = secure in ("true", "1")
    port = PORTS[kind][is_secure]
    shards = tuple(
        tuple(host_and_port(host, port) for host in shard.split("|"))
        for shard in given["hosts"].split(",")
    )
    if sum(map(len, shards)) > MAX_ADDRESSES:
        raise _bad(f"more than {MAX_ADDRESSES} hosts", "")
    stream = given["stream"]
    db = given.get("db") or "default"
    return Settings(
        kind,
        shards,
        db,
        given.get("user", "default"),
        password,
        is_secure,
        stream,
        given.get("ca_file", ""),
    )


def password_of(given: Mapping[str, str], data_dir: Path) -> str:
    """What `password` says, or the file that `password_file` names; empty without both. Raises
    CatalogError (`E_BAD_OPTION`).
    """
    if "password" in given and "password_file" in given:
        raise _bad("password and password_file say the same thing", "give one of them")
    if "password_file" not in given:
        return given.get("password", "")
    name = given["password_file"]
    if Path(name).name != name or name.startswith("."):
        raise _bad(
            "password_file is the name of a file in secrets/external/ of the data directory",
            "put the password there",
        )
    try:
        return (data_dir / "secrets" / "external" / name).read_text(encoding="utf-8").strip()
    except OSError as wrong:
        raise _bad("password_file cannot be read", str(wrong.strerror)) from None


def host_and_port(text: str, port: int) -> str:
    """`host:port` of an address that may leave out its port. Raises CatalogError
    (`E_BAD_OPTION`).
    """
    text = text.strip()
    host, colon, number = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host = text
        colon = ":"
        number = str(port)
    elif not colon:
        host = text
        number = str(port)
    if (
        not host
        or any(c in host for c in "/@?# ")
        or not number.isdigit()
        or not 0 < int(number) < 65536
    ):
        raise _bad(
            f"'{text}' is no host",
            "host or host:port; shards are separated by commas, replicas of a shard by |",
        )
    return f"{host}:{number}"


def _bad(message: str, hint: str) -> CatalogError:
    return CatalogError(message, code="E_BAD_OPTION", hint=hint)


def _replicas(
    shard: tuple[str, ...],
    user: str,
    password: str,
    secure: bool,
    ca_file: str,
    allowed: Reach | None = None,
) -> tuple[Address, ...]:
    found = []
    for place in shard:
        host, _, port = place.rpartition(":")
        found.append(
            Address(host.strip("[]"), int(port), user, password, secure, ca_file or None, allowed)
        )
    return tuple(found)


def addresses(
    entry: External, data_dir: Path, allowed: Reach | tuple[str, ...]
) -> list[tuple[Address, ...]]:
    """Replicas of each shard, with the password from its file.

    Args:
        entry: the external stream.
        data_dir: of the deployment.
        allowed: where its links may go, asked when each is made; or an allow-list alone.
    """
    password = secret(data_dir, entry.id)
    reach = (
        allowed
        if isinstance(allowed, Reach)
        else Reach(allowed, anywhere=lambda: not allowed, link=True)
    )
    return [
        _replicas(shard, entry.user, password, entry.secure, entry.ca_file, reach)
        for shard in entry.shards
    ]


def secret(data_dir: Path, entry_id: int) -> str:
    """The password that was kept; empty where there is none."""
    try:
        return secret_path(data_dir, entry_id).read_text(encoding="utf-8").rstrip("\n")
    except FileNotFoundError:
        return ""


def secret_path(data_dir: Path, entry_id: int) -> Path:
    return data_dir / "secrets" / f"external-{entry_id}.password"


def keep_secret(data_dir: Path, entry_id: int, password: str) -> None:
    """Write the password's file, readable by its owner only."""
    path = secret_path(data_dir, entry_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(password + "\n")
    fresh.rename(path)


def forget_secret(data_dir: Path, entry_id: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        secret_path(data_dir, entry_id).unlink()


def description_of(entry: External) -> Description:
    """What was known of the table when it was looked at."""
    return Description(
        entry.id,
        entry.database,
        entry.name,
        entry.columns,
        entry.tags,
        entry.precision,
        entry.key_column,
        numbered=entry.numbered,
    )


def definition_sql(entry: External) -> str:
    """Return CREATE EXTERNAL STREAM as it could be written again, but for the password."""
    hosts = ",".join("|".join(shard) for shard in entry.shards)
    settings = {
        "type": entry.type,
        "hosts": hosts,
        "db": entry.remote_database,
        "user": entry.user,
        "password": "******",
    }
    text = ", ".join(f"{k} = {quote_string(v)}" for k, v in settings.items())
    text += f", secure = {'true' if entry.secure else 'false'}" + (
        f", ca_file = {quote_string(entry.ca_file)}" if entry.ca_file else ""
    )
    columns = ", ".join(f"{in_backticks(c.name)} {c.type}" for c in (*entry.columns, *entry.tags))
    return (
        f"CREATE EXTERNAL STREAM {in_backticks(entry.name)} ({columns}) SETTINGS {text}, stream ="
        f" {quote_string(entry.remote_name)}"
    )


def statement(
    name: str,
    replicas: Sequence[Address],
    description: Description,
    columns: Sequence[Column] | None,
) -> str:
    """CREATE EXTERNAL STREAM for a table that is answered for at *replicas*; *columns*: only
    these.
    """
    first = replicas[0]
    settings = {
        "type": "penstock",
        "hosts": "|".join(f"[{a.host}]:{a.port}" if ":" in a.host else a.shown for a in replicas),
        "db": description.database,
        "user": first.user,
        "password": first.password,
        "secure": "true" if first.secure else "false",
        "stream": description.child or description.name,
    }
    if first.ca_file is not None:
        settings["ca_file"] = first.ca_file
    listed = (
        " (" + ", ".join(f"{quote_name(c.name)} {c.type}" for c in columns) + ")"
        if columns is not None
        else ""
    )
    shown = ".".join(quote_name(part) for part in name.split("."))
    return f"CREATE EXTERNAL STREAM {shown}{listed} SETTINGS " + ", ".join(
        f"{k} = {quote_string(v)}" for k, v in settings.items()
    )
