"""Names of tables as URIs: `pq://query/scope/table?…`, `dh://host/scope/table`, `dh+plain://…`;
read and written, never resolved here.

    pq        "pq://" (name | serial | "name:" name) "/scope/" table ["?" options] dh        ("dh" |
    "dh+plain") "://" host [":" port] ("/scope/" name | "/field/" name | "/app/" id "/field/" name)
    proxy     … "://" host [":" port] "?uri=" inner options   snapshot[=bool] columns=a,b
    onDisconnect=clear|retain retryWindowMillis=n maxRetries=n blink[=bool|require]
    waitTimeout=PT20S

`%XX` is decoded once, as UTF-8; `+` is itself; names are compared in NFC. An unknown or repeated
option is an error, never ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from penstock.errors import PenstockError

DEFAULT_RETRY_WINDOW_MS = 300_000
#: ports of dh URIs without one
DH_PORTS = {"dh": 443, "dh+plain": 10_000}
_SAFE = re.compile(r"[A-Za-z0-9.\-*_]+\Z")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.%~-]+)(?::([0-9]+))?\Z")
_PERIOD = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.(?P<f>\d{1,3}))?S)?)?\Z",
    re.ASCII,
)
_MAX_NUMBER = 2**63 - 1


class UriError(PenstockError):
    code = "E_URI"


@dataclass(frozen=True)
class TableUri:
    """The parts of a URI. `query` (or `serial`) is for pq; `host`, `port`, `app` and `proxied` for
    dh.
    """

    scheme: Literal["pq", "dh", "dh+plain"]
    table: str
    query: str | None = None
    serial: int | None = None
    host: str | None = None
    port: int | None = None
    kind: Literal["scope", "field"] = "scope"
    app: str | None = None
    #: the URI that this host shall resolve
    proxied: TableUri | None = None
    snapshot: bool = False
    columns: tuple[str, ...] = ()
    on_disconnect: Literal["clear", "retain"] = "clear"
    retry_window_ms: int = DEFAULT_RETRY_WINDOW_MS
    #: 0: as many as the window allows
    max_retries: int = 0
    blink: bool = False
    #: the table over there must be a blink table itself
    blink_required: bool = False
    wait_timeout_ms: int | None = None


def parse(text: str) -> TableUri:
    """Raises UriError, with a message of its own for each kind of fault."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in ("pq", "dh", "dh+plain"):
        raise UriError(
            f"no resolver for scheme {scheme!r}" if separator else "this is no URI",
            hint="pq://, dh:// or dh+plain://",
        )
    if "#" in rest:
        raise UriError("a table's URI has no fragment", hint="write # as %23")
    path, has_options, options = rest.partition("?")
    authority, slash, path = path.partition("/")
    if "@" in authority:
        raise UriError(
            "a URI never holds credentials",
            hint="they belong to the session: penstock.uri.session(…)",
        )
    if scheme == "pq":
        return _pq(authority, slash + path, options if has_options else None)
    return _dh(
        "dh" if scheme == "dh" else "dh+plain",
        authority,
        slash + path,
        options if has_options else None,
    )


def _pq(authority: str, path: str, options: str | None) -> TableUri:
    if not authority:
        raise UriError(
            "the URI names no query", hint="pq://name/scope/table or pq://serial/scope/table"
        )
    if not path.startswith("/scope/"):
        raise UriError(
            "there is no /scope/ behind the query's name", hint="a / within the name is written %2F"
        )
    table = decode(path[len("/scope/") :])
    if not table:
        raise UriError("the URI names no table", hint="pq://name/scope/table")
    name: str | None
    serial: int | None
    if authority.isascii() and authority.isdigit():
        name = None
        serial = _number("serial", authority)
    else:
        name = decode(authority.removeprefix("name:"))
        serial = None
        if not name:
            raise UriError("the URI names no query", hint="pq://name/scope/table")
    return _with_options(TableUri("pq", table, name, serial), options)


def _dh(
    scheme: Literal["dh", "dh+plain"], authority: str, path: str, options: str | None
) -> TableUri:
    host, port = _host_and_port(scheme, authority)
    if options is not None:
        return _parse_proxied(scheme, host, port, path, options)
    parts = path.split("/")[1:]
    if len(parts) >= 2 and parts[0] == "scope":
        return TableUri(scheme, _safe("/".join(parts[1:])), host=host, port=port)
    if len(parts) == 2 and parts[0] == "field":
        if host is None:
            raise UriError("/field/ needs a host before it")
        return TableUri(scheme, _safe(parts[1]), host=host, port=port, kind="field")
    if len(parts) == 4 and parts[0] == "app" and parts[2] == "field":
        return TableUri(
            scheme, _safe(parts[3]), host=host, port=port, kind="field", app=_safe(parts[1])
        )
    raise UriError(
        f"the path {path[:60]!r} names no table",
        hint="/scope/name, /field/name or /app/id/field/name",
    )


def _host_and_port(scheme: str, authority: str) -> tuple[str | None, int | None]:
    if not authority:
        if scheme == "dh+plain":
            raise UriError("the URI names no host")
        return None, None
    match = _HOST.match(authority)
    if match is None:
        raise UriError(f"{authority!r} is no host", hint="host or host:port")
    port = int(match.group(2)) if match.group(2) else DH_PORTS[scheme]
    if not 0 < port < 65536:
        raise UriError(f"{port} is no port")
    return match.group(1), port


def _parse_proxied(
    scheme: Literal["dh", "dh+plain"], host: str | None, port: int | None, path: str, options: str
) -> TableUri:
    """Parse `?uri=…`, which the host resolves; a dh URI has no other options."""
    if not options.startswith("uri=") or path.strip("/"):
        raise UriError(
            f"options are for pq:// URIs: {options[:60]}",
            hint="give them to the builder, or use pq://",
        )
    if host is None:
        raise UriError("the URI names no host that could resolve another")
    inner = options[len("uri=") :]
    target = parse(inner if inner.startswith(("dh://", "dh+plain://")) else decode(inner))
    if target.proxied is not None:
        raise UriError("one host may resolve for another, not a chain of them")
    return TableUri(scheme, target.table, host=host, port=port, proxied=target)


def _safe(name: str) -> str:
    name = decode(name)
    if not _SAFE.match(name):
        raise UriError(
            f"{name!r} cannot stand in a dh URI",
            hint="letters, digits and . - * _; pq:// takes any name, percent-encoded",
        )
    return name


def decode(text: str) -> str:
    """Decode `%XX` as UTF-8, once. Raises UriError where that is not possible."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "%":
            out += text[at].encode("utf-8", "surrogatepass")
            at += 1
            continue
        digits = text[at + 1 : at + 3]
        if len(digits) < 2 or any(c not in "0123456789abcdefABCDEF" for c in digits):
            raise UriError(f"bad percent-encoding in {text[:60]!r}", hint="% itself is written %25")
        out.append(int(digits, 16))
        at += 3
    try:
        return unicodedata.normalize("NFC", out.decode("utf-8"))
    except UnicodeDecodeError:
        raise UriError(f"{text[:60]!r} is no UTF-8") from None


def _split_options(options: str | None) -> dict[str, str | None]:
    """Return the text of each option; None for one without `=`."""
    given: dict[str, str | None] = {}
    for item in options.split("&") if options else ():
        key, equals, text = item.partition("=")
        if key not in _OPTIONS:
            raise UriError(f"there is no option {key!r}", hint="options are " + ", ".join(_OPTIONS))
        if key in given:
            raise UriError(f"{key} is given twice")
        given[key] = text if equals else None
    return given


def _with_options(uri: TableUri, options: str | None) -> TableUri:
    given = _split_options(options)
    fields: dict[str, object] = {}
    for key, value in given.items():
        fields.update(_OPTIONS[key](key, value))
    if fields.get("snapshot"):
        live = [key for key in _LIVE_OPTIONS if key in given]
        if live and (live != ["blink"] or fields.get("blink")):
            raise UriError(f"{live[0]} has no meaning for a snapshot")
    return replace(uri, **fields)  # type: ignore[arg-type]


def _bool(key: str, value: str | None) -> bool:
    if value is None:
        return True
    if value not in ("true", "false"):
        raise UriError(f"{key} is true or false, not {value!r}")
    return value == "true"


def _number(key: str, value: str | None) -> int:
    if value is None or not value.isascii() or not value.isdigit() or int(value) > _MAX_NUMBER:
        raise UriError(f"{key} is a whole number from 0 on, not {value!r}")
    return int(value)


def _columns(key: str, value: str | None) -> dict[str, object]:
    names = tuple(decode(part) for part in (value or "").split(","))
    if not all(names):
        raise UriError("a name in columns is empty")
    if len({n.lower() for n in names}) < len(names):
        raise UriError("a name in columns is there twice")
    return {"columns": names}


def _on_disconnect(key: str, value: str | None) -> dict[str, object]:
    if value not in ("clear", "retain"):
        raise UriError(f"onDisconnect is clear or retain, not {value!r}")
    return {"on_disconnect": value}


def _blink(key: str, value: str | None) -> dict[str, object]:
    if value == "require":
        return {"blink": True, "blink_required": True}
    return {"blink": _bool(key, value)}


def _wait(key: str, value: str | None) -> dict[str, object]:
    return {"wait_timeout_ms": period(value or "")}


_OPTIONS: dict[str, Callable[[str, str | None], dict[str, object]]] = {
    "snapshot": lambda k, v: {"snapshot": _bool(k, v)},
    "columns": _columns,
    "onDisconnect": _on_disconnect,
    "retryWindowMillis": lambda k, v: {"retry_window_ms": _number(k, v)},
    "maxRetries": lambda k, v: {"max_retries": _number(k, v)},
    "blink": _blink,
    "waitTimeout": _wait,
}


#: options of a table that is followed
_LIVE_OPTIONS = ("onDisconnect", "retryWindowMillis", "maxRetries", "blink")


def period(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration of days, hours, minutes and seconds. Raises
    UriError.
    """
    match = _PERIOD.match(text)
    if match is None or not any(match.groups()) or text.endswith("T"):
        raise UriError(
            f"waitTimeout is an ISO 8601 duration, not {text!r}", hint="PT20S, PT1M30S, PT0.5S"
        )
    days, hours, minutes, seconds = (int(match.group(k) or 0) for k in "dhms")
    millis = int((match.group("f") or "0").ljust(3, "0"))
    total = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + millis
    if total > _MAX_NUMBER:
        raise UriError(f"waitTimeout {text!r} is too long")
    return total


def render(uri: TableUri) -> str:
    """Return the canonical text: `parse(render(x)) == x`."""
    if uri.scheme == "pq":
        options = _options(uri)
        end = "?" + "&".join(options) if options else ""
        return f"pq://{_query_name(uri)}/scope/{quote(uri.table, safe='')}{end}"
    port = "" if uri.host is None or uri.port == DH_PORTS[uri.scheme] else f":{uri.port}"
    head = f"{uri.scheme}://{uri.host or ''}{port}"
    if uri.proxied is not None:
        inner = render(uri.proxied)
        return f"{head}?uri={inner if uri.proxied.scheme != 'pq' else quote(inner, safe='')}"
    if uri.app is not None:
        return f"{head}/app/{uri.app}/field/{uri.table}"
    return f"{head}/{uri.kind}/{uri.table}"


def _query_name(uri: TableUri) -> str:
    if uri.serial is not None:
        return str(uri.serial)
    encoded = quote(uri.query or "", safe="")
    # a name that looks like a serial, or like one that is marked as a name
    ambiguous = (encoded.isascii() and encoded.isdigit()) or encoded.startswith("name:")
    return f"name:{encoded}" if ambiguous else encoded


def _options(uri: TableUri) -> list[str]:
    options = []
    if uri.snapshot:
        options.append("snapshot=true")
    if uri.columns:
        options.append("columns=" + ",".join(quote(c, safe="") for c in uri.columns))
    if uri.on_disconnect != "clear":
        options.append(f"onDisconnect={uri.on_disconnect}")
    if uri.retry_window_ms != DEFAULT_RETRY_WINDOW_MS:
        options.append(f"retryWindowMillis={uri.retry_window_ms}")
    if uri.max_retries:
        options.append(f"maxRetries={uri.max_retries}")
    if uri.blink:
        options.append("blink=require" if uri.blink_required else "blink")
    if uri.wait_timeout_ms is not None:
        options.append(f"waitTimeout={_spell_period(uri.wait_timeout_ms)}")
    return options


def _spell_period(milliseconds: int) -> str:
    seconds, millis = divmod(milliseconds, 1000)
    return f"PT{seconds}.{millis:03d}S" if millis else f"PT{seconds}S"
