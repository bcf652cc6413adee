"""Any entry of the catalog."""

from __future__ import annotations

from penstock.catalog.model.databases import Database, Snode
from penstock.catalog.model.federation import External, View
from penstock.catalog.model.principals import Role, User
from penstock.catalog.model.registry import CompatibilityLevel
from penstock.catalog.model.streams import StreamEntry
from penstock.catalog.model.tables import Child, Table
from penstock.udf.function import UserFunction

Entry = (
    Database
    | Table
    | Child
    | StreamEntry
    | External
    | View
    | User
    | Role
    | Snode
    | UserFunction
    | CompatibilityLevel
)
