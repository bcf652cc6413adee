"""Names of what a mesh runs, for whoever needs no more than the names."""

from __future__ import annotations

#: service → the package that `python -m` runs
PACKAGES = {
    "gateway": "gateway",
    "store": "services.store",
    "spark": "spark_jobs",
    "notifier": "services.notifier",
    "snode": "services.snode",
    "federation": "services.federation",
}
#: what runs a node of stream tables
NODE_PACKAGE = "services.tables"
SERVERS = ("kafka", "redis")
#: what answers a statement of SQL
SQL_SERVICES = ("gateway", "store")
ALL_SERVICES = (*SERVERS, *PACKAGES)
