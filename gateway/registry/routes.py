"""Paths of Confluent's Schema Registry: Kafka tools decode `in.*` topics with them, look schemas up
and check new ones before they alter a table.

Nothing is registered here: tables are made by SQL, and every subject is read-only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web

from gateway.guard import RequestGuard, user_of
from gateway.registry.answers import (
    RegistryRefusal,
    answer,
    error,
    fixed_mode,
    incompatible,
    no_own_level,
    no_schema,
    no_subject,
    read_only,
)
from gateway.registry.levels import SubjectLevels
from gateway.registry.subjects import VisibleSubjects, asks, page
from gateway.registry.submitted import level_of, read_object, schema_of
from penstock.codec import compatibility
from penstock.codec.compatibility import AvroSchema
from penstock.codec.subjects import Registered

_MODE = {"mode": "READONLY"}
_MOST_FAULTS = 100
_Find = Callable[[web.Request], object]
_Do = Callable[[web.Request], Awaitable[object]]


class SchemaRegistryRoutes:
    """Subjects are `<topic>-<table>`; versions count from 1."""

    def __init__(self, subjects: VisibleSubjects, levels: SubjectLevels) -> None:
        self._subjects = subjects
        self._levels = levels

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [
            *(web.get(path, _wrap(guard, _at_once(find))) for path, find in self._reads().items()),
            *(
                web.route(method, path, _wrap(guard, do))
                for (method, path), do in self._others().items()
            ),
        ]

    def _reads(self) -> dict[str, _Find]:
        known = self._subjects
        return {
            "/schemas/types": lambda _: ["AVRO"],
            "/schemas/ids/{id}": lambda r: {"schema": known.schema(r)},
            "/schemas/ids/{id}/schema": lambda r: json.loads(known.schema(r)),
            "/schemas/ids/{id}/subjects": lambda r: page(r, [f.subject for f in known.of_id(r)]),
            "/schemas/ids/{id}/versions": lambda r: page(
                r, [{"subject": f.subject, "version": f.version} for f in known.of_id(r)]
            ),
            "/subjects": lambda r: page(r, known.names(r)),
            "/subjects/{subject}/versions": lambda r: page(
                r, [v.version for v in known.versions(r)]
            ),
            "/subjects/{subject}/versions/{version}": lambda r: _to_json(known.version(r)),
            "/subjects/{subject}/versions/{version}/schema": lambda r: json.loads(
                known.version(r).schema
            ),
            "/config": lambda _: {"compatibilityLevel": self._levels.of_all()},
            "/config/{subject}": self._level,
            "/mode": lambda _: _MODE,
            "/mode/{subject}": self._mode,
        }

    def _others(self) -> dict[tuple[str, str], _Do]:
        versions = "/compatibility/subjects/{subject}/versions"
        return {
            ("POST", "/subjects/{subject}"): self._look_up,
            ("POST", "/subjects/{subject}/versions"): self._register,
            ("POST", versions): self._check_all,
            ("POST", versions + "/{version}"): self._check_one,
            ("PUT", "/config"): self._put_level,
            ("PUT", "/config/{subject}"): self._put_level,
            ("DELETE", "/config"): self._clear_level,
            ("DELETE", "/config/{subject}"): self._clear_level,
            ("PUT", "/mode"): _refuse_mode,
            ("PUT", "/mode/{subject}"): _refuse_mode,
        }

    # ---------------------------------------------------------------- schemas

    async def _look_up(self, request: web.Request) -> object:
        """Return the version of a subject that has the schema that was sent."""
        known = self._subjects.versions(request)
        sent = await read_object(request)
        found = await asyncio.to_thread(lambda: _find_same(schema_of(sent), known))
        if found is None:
            raise no_schema()
        return _to_json(found)

    async def _register(self, request: web.Request) -> object:
        """Return the id of a schema that a table has; who sends another one has to ALTER it."""
        sent = await read_object(request)
        try:
            table = self._subjects.table(request)
        except RegistryRefusal:
            raise read_only(request.match_info["subject"]) from None
        known = self._subjects.versions(request)
        level = self._levels.effective(table)

        def compare() -> tuple[Registered | None, list[str]]:
            schema = schema_of(sent)
            found = _find_same(schema, known)
            return found, [] if found is not None else _check(level, schema, known)

        found, faults = await asyncio.to_thread(compare)
        if found is not None:
            return {"id": found.id}
        raise incompatible(table.subject, faults) if faults else read_only(table.subject)

    async def _check_all(self, request: web.Request) -> object:
        """Check a schema against as many versions as the subject's level names."""
        return await self._check(request, self._subjects.versions(request))

    async def _check_one(self, request: web.Request) -> object:
        """Check a schema against one version."""
        return await self._check(request, [self._subjects.version(request)])

    async def _check(self, request: web.Request, known: Sequence[Registered]) -> object:
        level = self._levels.effective(self._subjects.table(request))
        sent = await read_object(request)
        faults = await asyncio.to_thread(lambda: _check(level, schema_of(sent), known))
        told: dict[str, Any] = {"is_compatible": not faults}
        return {**told, "messages": faults} if asks(request, "verbose") else told

    # ---------------------------------------------------------------- levels

    def _level(self, request: web.Request) -> object:
        table = self._subjects.table(request)
        level = self._levels.own(table)
        if level is None and not asks(request, "defaultToGlobal"):
            raise no_own_level(table.subject)
        return {"compatibilityLevel": level or self._levels.of_all()}

    async def _put_level(self, request: web.Request) -> object:
        table = self._subjects.table(request) if "subject" in request.match_info else None
        level = level_of(await read_object(request))
        await self._levels.put(user_of(request), table, level)
        return {"compatibility": level}

    async def _clear_level(self, request: web.Request) -> object:
        """Take a level away; return the one that was there."""
        table = None
        level: str | None = self._levels.of_all()
        if "subject" in request.match_info:
            table = self._subjects.table(request)
            level = self._levels.own(table)
            if level is None:
                raise no_subject(table.subject)
        await self._levels.put(user_of(request), table, None)
        return {"compatibilityLevel": level}

    def _mode(self, request: web.Request) -> object:
        self._subjects.table(request)
        return _MODE


async def _refuse_mode(request: web.Request) -> object:
    raise fixed_mode()


def _wrap(guard: RequestGuard, do: _Do) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def call(request: web.Request) -> web.Response:
        try:
            return answer(await do(request))
        except RegistryRefusal as refusal:
            return refusal.answer()

    return guard.wrap(call, error)


def _at_once(find: _Find) -> _Do:
    async def call(request: web.Request) -> object:
        return find(request)

    return call


def _find_same(schema: AvroSchema, known: Sequence[Registered]) -> Registered | None:
    """Return the newest of *known* that is the same schema."""
    for one in reversed(known):
        if compatibility.is_same(schema, compatibility.parse(one.schema)):
            return one
    return None


def _check(level: str, schema: AvroSchema, known: Sequence[Registered]) -> list[str]:
    """Return the first faults of *schema* as the next version behind *known*."""
    earlier = [compatibility.parse(one.schema) for one in known]
    return compatibility.check(level, schema, earlier)[:_MOST_FAULTS]


def _to_json(found: Registered) -> dict[str, object]:
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "schema": found.schema,
    }
