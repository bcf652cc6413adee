"""Waiting until rows are through, and what gateways and nodes tell each other."""

from __future__ import annotations

from gateway.api.operation import (
    JSON,
    Body,
    LoginSpec,
    Operation,
    Operations,
    ParameterSpec,
    json_answer,
)
from gateway.api.shapes import (
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    mapping,
    nullable,
    record,
    refer,
)
from gateway.drain import MAX_DEPTH
from gateway.forward import PATH
from gateway.http import STATUS

TAG = "mesh"
ABOUT = "The mesh: waiting until everything is through, groups of nodes, gateways among themselves."

SHAPES: dict[str, Shape] = {
    "Drained": record(
        {"drained": described(array(TEXT), "Topics."), "rounds": INTEGER},
    ),
    "Groups": record(
        {
            "groups": array(
                record(
                    {
                        "id": INTEGER,
                        "alias": TEXT,
                        "members": array(TEXT),
                        "learners": array(TEXT),
                        "leader": described(nullable(TEXT), "Null: nobody leads now."),
                    }
                )
            ),
            "nodes": mapping(nullable(TEXT), "Address by name; null: it is not known."),
            "alive": described(array(TEXT), "Names of nodes."),
            "tables": mapping(INTEGER, "Group by name of the stream table."),
        }
    ),
    "Forwarded": record(
        {"user": TEXT},
        {
            "sql": TEXT,
            "database": nullable(TEXT),
            "timezone": TEXT,
            "widen": described({"type": "object"}, "A table to be made or widened for points."),
        },
    ),
    "Revision": record({"revision": described(INTEGER, "Of the catalog, with the change in it.")}),
}

OPERATIONS: Operations = {
    ("POST", "/v1/drain"): Operation(
        "drain",
        TAG,
        "Return when everything written so far has gone through",
        json_answer(refer("Drained")),
        parameters=(
            ParameterSpec("db", "Only what was written to this database."),
            ParameterSpec(
                "depth",
                "Streams on streams that results have to pass; 1.",
                {"type": "integer", "minimum": 0, "maximum": MAX_DEPTH},
            ),
        ),
        errors=(400, 404, 504),
    ),
    ("GET", "/v1/groups"): Operation(
        "groups",
        TAG,
        "List the groups of stream tables, their nodes and tables",
        json_answer(refer("Groups")),
    ),
    ("POST", PATH): Operation(
        "forward",
        TAG,
        "Take a definition from another gateway",
        json_answer(refer("Revision")),
        body=Body({JSON: refer("Forwarded")}),
        errors=tuple(sorted(set(STATUS.values()))),
        login=LoginSpec.GATEWAY,
        internal=True,
    ),
}
