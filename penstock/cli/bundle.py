"""What a bundle for whoever helps has in it, with every secret of the mesh taken out.

Secrets are known by their values: whatever the files of `secrets/` hold, and what the environment
has under a name that says so. They are replaced wherever they stand, whole, in Base64 and in the
form that an address gives them; so are passwords in addresses and in SQL.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from penstock.sql.secret import hide

HIDDEN = "***"
#: parts of names whose values are secrets
_SECRET_NAME = re.compile(r"PASS|SECRET|TOKEN|CREDENTIAL|(?:^|_)KEY(?:$|_)", re.IGNORECASE)
#: the same, but the value is the path of a file
_PATH_NAME = re.compile(r"_(?:FILE|PATH|DIR)$", re.IGNORECASE)
_LOGIN = re.compile(r"(?P<scheme>\b[\w+.-]+://)[^\s/@:\"']*(?P<password>:[^\s/@\"']*)?@")
_BEARER = re.compile(r"\b(?P<kind>Bearer|Basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
#: `sasl.password=x`, `"token": "x"`
_ASSIGNED = re.compile(
    r"(?P<name>[\w.-]*(?:password|secret|token|credential)[\w.-]*"
    r"(?<!_file)(?<!_path)(?<!_dir)[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>[^\s\"',;}]+)",
    re.IGNORECASE,
)
#: a shorter value stands in too many words to be replaced
_SHORTEST = 4
_WORDS = frozenset(("true", "false", "none", "null"))


def is_secret_name(name: str) -> bool:
    """Tell whether a setting of this name holds a secret itself."""
    return _SECRET_NAME.search(name) is not None and _PATH_NAME.search(name) is None


def secrets_of(directory: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the values that nobody else is to see, the longest first."""
    found = {value for name, value in environment.items() if is_secret_name(name)}
    found |= _passwords_in_addresses(environment.values())
    for path in (*sorted(directory.glob("*")), *_secret_files(environment)):
        try:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        found |= {text, *text.split()}
    fitting = (v for v in found if len(v) >= _SHORTEST and v.lower() not in _WORDS)
    return sorted(fitting, key=len, reverse=True)


def _passwords_in_addresses(values: Iterable[str]) -> set[str]:
    logins = (login for value in values for login in _LOGIN.finditer(value))
    return {login["password"][1:] for login in logins if login["password"]}


def _secret_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the files that settings name as those of a secret."""
    return [Path(v) for n, v in environment.items() if _SECRET_NAME.search(n) and "FILE" in n]


class Redactor:
    """Takes secrets out of text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = dict.fromkeys(form for secret in secrets for form in _forms(secret))
        longest_first = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def clean(self, text: str) -> str:
        """Return *text* without secrets."""
        made = text if self._values is None else self._values.sub(HIDDEN, text)
        made = _LOGIN.sub(rf"\g<scheme>{HIDDEN}@", made)
        made = _BEARER.sub(rf"\g<kind> {HIDDEN}", made)
        made = _ASSIGNED.sub(rf"\g<name>{HIDDEN}", made)
        return "\n".join(map(hide, made.split("\n")))

    def settings(self, values: Mapping[str, str]) -> str:
        """Return settings as lines, without the values of those that are secrets."""
        shown = {n: HIDDEN if is_secret_name(n) else v for n, v in values.items()}
        return self.clean("".join(f"{name}={value}\n" for name, value in sorted(shown.items())))


def _forms(secret: str) -> list[str]:
    """Return a secret as it stands in text, in JSON, in an address, and in a login of HTTP."""
    # what of Base64 does not depend on what stands before and behind it
    encoded = [
        base64.b64encode(b"x" * shift + secret.encode()).decode().rstrip("=")[_skip(shift) : -1]
        for shift in range(3)
    ]
    in_json = [json.dumps(secret, ensure_ascii=strict)[1:-1] for strict in (False, True)]
    return [
        secret,
        *in_json,
        quote(secret, safe=""),
        *(e for e in encoded if len(e) >= 2 * _SHORTEST),
    ]


def _skip(shift: int) -> int:
    """Return how many characters of Base64 the bytes before a secret have a share in."""
    return (0, 2, 3)[shift]


def pack(files: Mapping[str, str], redactor: Redactor, moment: float) -> bytes:
    """Return a tar.gz of *files* (text by name), each without secrets."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            data = redactor.clean(text).encode()
            entry = tarfile.TarInfo(f"penstock-bundle/{name}")
            entry.size = len(data)
            entry.mtime = int(moment)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()
