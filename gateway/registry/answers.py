"""Answers of the schema registry: its media type, and its errors with their numbers and words."""

from __future__ import annotations

import json

from aiohttp import web

from gateway import http
from penstock.codec.compatibility import LEVELS
from penstock.errors import AuthError, PenstockError

_JSON = "application/vnd.schemaregistry.v1+json"


class RegistryRefusal(Exception):
    """An error that the registry's clients know by its number; the status is in front of it."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.number = number
        self.words = words

    def answer(self) -> web.Response:
        """Return the error as an answer."""
        status = int(str(self.number)[:3])
        return answer({"error_code": self.number, "message": self.words}, status)


def no_subject(subject: str) -> RegistryRefusal:
    return RegistryRefusal(40401, f"Subject '{subject}' not found.")


def no_version(version: str) -> RegistryRefusal:
    return RegistryRefusal(40402, f"Version {version} not found.")


def no_schema(number: str = "") -> RegistryRefusal:
    return RegistryRefusal(40403, f"Schema {number} not found" if number else "Schema not found")


def no_own_level(subject: str) -> RegistryRefusal:
    words = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryRefusal(40408, words)


def incompatible(subject: str, faults: list[str]) -> RegistryRefusal:
    words = "Schema being registered is incompatible with an earlier schema for subject"
    return RegistryRefusal(409, f'{words} "{subject}", details: [{"; ".join(faults)}]')


def invalid_schema(why: str) -> RegistryRefusal:
    return RegistryRefusal(42201, f"Invalid schema: {why}" if why else "Invalid schema")


def invalid_version(version: str) -> RegistryRefusal:
    words = (
        f"The specified version '{version}' is not a valid version id. Allowed values are between"
        ' [1, 2^31-1] and the string "latest"'
    )
    return RegistryRefusal(42202, words)


def invalid_level() -> RegistryRefusal:
    known = ", ".join(level.lower() for level in LEVELS)
    return RegistryRefusal(42203, f"Invalid compatibility level. Valid values are {known}")


def fixed_mode() -> RegistryRefusal:
    return RegistryRefusal(42205, "Mode changes are not allowed: CREATE and ALTER TABLE register")


def read_only(subject: str) -> RegistryRefusal:
    words = f"Subject {subject} is in read-only mode: CREATE and ALTER TABLE register its versions"
    return RegistryRefusal(42205, words)


def answer(body: object, status: int = 200) -> web.Response:
    """Return *body* as JSON of the registry."""
    return web.Response(body=json.dumps(body).encode(), status=status, content_type=_JSON)


def error(wrong: PenstockError) -> web.Response:
    """Return an error of ours in the registry's form."""
    status = http.status_of(wrong)
    number = status * 100 + (1 if status == 404 else 0)
    response = answer({"error_code": number, "message": wrong.message}, status)
    if isinstance(wrong, AuthError) and status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="penstock"'
    return response
