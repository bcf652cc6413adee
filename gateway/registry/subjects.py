"""Subjects, versions and schemas as one user may see them: a table that is not theirs has no
subject here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

from gateway.guard import user_of
from gateway.registry.answers import invalid_version, no_schema, no_subject, no_version
from penstock.auth.access import Access, visible
from penstock.catalog.model import Table
from penstock.catalog.view import Catalog
from penstock.codec import subjects as registry
from penstock.codec.subjects import Registered

_LARGEST_ID = 2**31 - 1
T = TypeVar("T")


@dataclass(frozen=True)
class VisibleSubjects:
    """Answers for requests that came through the guard; raises RegistryRefusal for what is not
    there.
    """

    catalog: Callable[[], Catalog]
    access: Access

    def names(self, request: web.Request) -> list[str]:
        """Return the subjects that begin with `?subjectPrefix=`. None is ever deleted softly."""
        # the second is how confluent-kafka writes it
        if asks(request, "deletedOnly") or asks(request, "deleted_only"):
            return []
        prefix = request.query.get("subjectPrefix", "")
        return [s for s in registry.subjects(self._visible(request)) if s.startswith(prefix)]

    def table(self, request: web.Request) -> Table:
        """Return the table of the subject in the path."""
        subject = request.match_info["subject"]
        found = registry.table_of(self._visible(request), subject)
        if found is None:
            raise no_subject(subject)
        return found

    def versions(self, request: web.Request) -> list[Registered]:
        """Return all versions of the subject in the path, the newest last."""
        return registry.versions_of(self.table(request))

    def version(self, request: web.Request) -> Registered:
        """Return the version in the path."""
        known = self.versions(request)
        wanted = request.match_info["version"]
        if wanted in ("latest", "-1"):
            return known[-1]
        if not _is_number(wanted) or int(wanted) == 0:
            raise invalid_version(wanted)
        if int(wanted) > len(known):
            raise no_version(wanted)
        return known[int(wanted) - 1]

    def schema(self, request: web.Request) -> str:
        """Return the schema of the id in the path."""
        wanted = request.match_info["id"]
        found = None
        if _is_number(wanted):
            found = registry.schema_text(self._visible(request), int(wanted))
        if found is None:
            raise no_schema(wanted)
        return found

    def of_id(self, request: web.Request) -> list[Registered]:
        """Return where the id in the path is used; a schema of the mesh's own has no subject."""
        self.schema(request)
        found = registry.of_id(self._visible(request), int(request.match_info["id"]))
        return [found] if found is not None else []

    def _visible(self, request: web.Request) -> Catalog:
        return visible(self.catalog(), self.access, user_of(request))


def page(request: web.Request, found: list[T]) -> list[T]:
    """Return the part of a list that `?offset=` and `?limit=` name; a negative limit is none."""
    start = _count(request.query.get("offset", ""), 0)
    return found[start : start + _count(request.query.get("limit", ""), len(found))]


def _count(text: str, usual: int) -> int:
    return int(text) if _is_number(text) else usual


def asks(request: web.Request, name: str) -> bool:
    """Tell whether a parameter of the query is `true`."""
    return request.query.get(name, "").lower() == "true"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _LARGEST_ID
