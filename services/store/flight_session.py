"""Session options of Flight, by which drivers ask for and choose catalog and schema.

Nothing is kept of a client between its calls. So an option can be set only to what it is: the one
catalog, and the database that the header `database` names with each call.
"""

from __future__ import annotations

from services.store import flightsql
from services.store.flight_lists import CATALOG

SET = "SetSessionOptions"
GET = "GetSessionOptions"
CLOSE = "CloseSession"
#: action → what it does
ACTIONS = {
    SET: "catalog and schema, as they are",
    GET: "catalog and schema",
    CLOSE: "nothing is kept of a session",
}
_CATALOG = "catalog"
_SCHEMA = "schema"


def answer(action: str, body: bytes, database: str) -> bytes:
    """Return the answer to one of the actions. Raises ValueError.

    Args:
        database: that the caller's header names; empty: it names none.
    """
    now = {_CATALOG: CATALOG} | ({_SCHEMA: database} if database else {})
    if action == GET:
        return flightsql.options(now)
    if action == CLOSE:
        return flightsql.CLOSED
    wrong = {
        name: flightsql.INVALID_VALUE if name in (_CATALOG, _SCHEMA) else flightsql.INVALID_NAME
        for name, value in flightsql.read_options(body).items()
        if value is None or value != now.get(name)
    }
    return flightsql.refused_options(wrong)
